"""The cost of a plan: its totals, the sizes at which it is compute-bound, and what other plans save and
cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.text import Text

from shardviz.hardware.machine import Machine
from shardviz.planner.plan import Plan, axes_words
from shardviz.planner.pricing.costs import Alternative, PlanCost, Threshold
from shardviz.planner.pricing.priced_plan import ALIKE, PricedPlan, overtaking
from shardviz.planner.problem import PaddedDim, Problem
from shardviz.render.caption import collectives_text
from shardviz.render.lines import listed, sentence
from shardviz.render.palette import Palette
from shardviz.render.plan_view import INDENT, REASON_INDENT, time_words
from shardviz.units import flops, human_bytes, may_fit_words, rate, seconds


def fit_lines(cost: PlanCost, width: int) -> list[Text]:
    """By how much the plan exceeds a device's memory; nothing where it fits."""
    if not cost.over_bytes:
        return []
    step = cost.steps.index(cost.peak_step) + 1
    limit = human_bytes(cost.limit_bytes or 0)
    needs = f"at step {step} each device holds {human_bytes(cost.peak_bytes)}"
    if cost.layers > 1:
        needs = f"with all {cost.layers} layers each device holds {human_bytes(cost.layers_peak_bytes)}"
    words = f"{human_bytes(cost.over_bytes)} over the {limit} of {cost.machine.chip}: {needs}"
    return sentence(words, width, lead="✗ does not fit: ")


def padding_lines(padding: Sequence[PaddedDim], width: int, indent: int = 0) -> list[Text]:
    """``padded: v=50,257 to 50,260, divisible by the axes. JAX rejects …``; nothing where all divides."""
    dims = ", ".join(f"{dim.dim}={dim.size:,} to {dim.padded:,}" for dim in padding)
    words = f"{dims}, divisible by the axes. JAX rejects unpadded arguments; compilers get the padded ones"
    return sentence(words, width, indent, "padded: ") if padding else []


def machine_words(cost: PlanCost) -> str:
    """``v5p:4x4x8: 459 TFLOP/s in bf16, HBM 2.8 TB/s``, and where nobody named it that it is assumed."""
    machine = cost.machine
    arithmetic = peak_words(machine, cost.plan.problem.forward[-1].result.dtype)
    bandwidth = machine.device.hbm_bandwidth
    memory = "HBM of unknown bandwidth" if bandwidth is None else f"HBM {rate(bandwidth)}"
    if machine.family.lacks_links:
        memory += f", {machine.family.link_name} of unpublished bandwidth"
    assumed = ", assumed, each mesh axis a ring" if machine.assumed else ""
    matmuls = matmul_words(machine, cost.plan.problem.forward[-1].result.dtype)
    return f"{machine.name}{assumed}: {arithmetic}, {memory}" + f", {matmuls}" * (matmuls != "at peak")


def peak_words(machine: Machine, dtype: str) -> str:
    """``197 TFLOP/s in f32, one bf16 pass``, ``no peak in f64 is published``."""
    device = machine.device
    peak = device.flops_per_second(dtype)
    if peak is None:
        return f"no peak in {dtype} is {machine.lacking}"
    return f"{flops(peak, True)} in {dtype}" + ", one bf16 pass" * device.in_bf16_passes(dtype)


def matmul_words(machine: Machine, dtype: str) -> str:
    """``at peak``, or that a dtype's matmuls were measured."""
    return "matmuls as measured" if machine.device.matmul_time(dtype) else "at peak"


def total_words(cost: PlanCost) -> list[str]:
    """The totals, a sentence each: seconds, thresholds, intensity and utilisation, memory."""
    said = (
        _unknown_words(cost),
        _seconds_words(cost),
        _phases_words(cost),
        layers_words(cost),
        threshold_words(cost.thresholds),
        _intensity_words(cost),
        memory_words(cost),
        own_words(cost.plan.problem),
        _training_words(cost),
    )
    return [*filter(None, said)]


def _unknown_words(cost: PlanCost) -> str:
    if not cost.unknown:
        return ""
    numbers = ", ".join(str(cost.steps.index(step) + 1) for step in cost.unknown)
    if any(step.seconds is None for step in cost.unknown):
        return f"the time of step {numbers} is unknown and not in the totals: {cost.missing_figure}"
    counted = "HBM" if cost.machine.device.hbm_bandwidth else "FLOPs"
    return f"the time of step {numbers} counts only {counted}: the totals are lower bounds"


def _seconds_words(cost: PlanCost) -> str:
    """``162 µs without overlap, 140 µs with perfect overlap: compute 21.8 µs, Y 140 µs``."""
    unknown = {step.step.axes for step in cost.unknown if step.seconds is None}
    sent = [
        f"{axes_words(axes)} {'?' if axes in unknown else seconds(time)}"
        for axes, time in cost.communication_by_axes.items()
    ]
    is_known = not cost.unknown
    serial = time_words(cost.serial_seconds, is_known)
    if not sent:
        return f"{serial} total: nothing is sent"
    if not cost.compute_seconds:
        return f"{serial} total: {', '.join(sent)}"
    return (
        f"{serial} without overlap, {overlapped_words(cost)}: "
        f"compute {time_words(cost.compute_seconds, is_known)}, {', '.join(sent)}"
    )


def overlapped_words(cost: PlanCost, layers: int = 1) -> str:
    """``140 µs with perfect overlap``; of a train step also the time where activations are waited for."""
    words = f"{time_words(cost.overlapped_seconds * layers, not cost.unknown)} with perfect overlap"
    if cost.plan.problem.training is None:
        return words
    step = seconds(cost.step_seconds * layers)
    if step != seconds(cost.overlapped_seconds * layers):
        words += f" ({step} if only parameter and gradient communication overlaps)"
    usual = None if cost.unknown else cost.published_seconds
    if usual is None or _is_alike(usual, cost.overlapped_seconds):
        return words
    return f"{words}, {seconds(usual * layers)} as published {cost.machine.chip} runs go"


def overtaking_words(times: Sequence[tuple[float, float]]) -> str:
    """``With perfect overlap rows 3 and 7 take less than the row above.``; "" where the order holds."""
    rows = [str(row) for row in overtaking(times)]
    if not rows:
        return ""
    verb = "row {} takes" if len(rows) == 1 else "rows {} take"
    return f"With perfect overlap {verb.format(listed(rows, 3))} less than the row above."


def _phases_words(cost: PlanCost) -> str:
    """``forward 1.12 ms, backward 2.31 ms, optimizer 75 µs``, what overlaps; nothing for a forward pass."""
    if cost.plan.problem.training is None:
        return ""
    times = cost.seconds_by_phase.items()
    words = ", ".join(f"{phase} {time_words(time, not cost.unknown)}" for phase, time in times)
    hidden = "; each pass overlaps only its own communication" if cost.communication_seconds else ""
    return words + hidden


def layers_words(cost: PlanCost) -> str:
    """``all 32 layers: 346 ms without overlap, 273 ms with perfect overlap; 46.2 TFLOP, 6 GiB sent``."""
    if cost.layers == 1:
        return ""
    sent = f", {human_bytes(cost.wire_bytes * cost.layers)} sent" if cost.wire_bytes else ""
    overlapped = overlapped_words(cost, cost.layers)
    return (
        f"all {cost.layers} layers: {time_words(cost.layers_seconds, not cost.unknown)} without overlap, "
        f"{overlapped}; {flops(cost.flops * cost.layers)}{sent}"
    )


def threshold_words(thresholds: Sequence[Threshold]) -> str:
    """``compute-bound from b = 12,240 on (now 1,024); at every size of d; at no size of f``."""
    always = [threshold.dim for threshold in thresholds if threshold.is_every_size]
    never = [threshold.dim for threshold in thresholds if threshold.least is None]
    said = []
    for threshold in thresholds:
        least, largest = threshold.least, threshold.largest
        if least is None or threshold.is_every_size:
            continue
        words = f"from {threshold.dim} = {least:,}" + (" on" if largest is None else f" to {largest:,}")
        if largest is not None and least == threshold.multiple:
            words = f"up to {threshold.dim} = {largest:,}"
        said.append(f"{words} (now {threshold.size:,})")
    if always:
        said.append(f"at every size of {', '.join(always)}")
    if never and not said:
        return f"not compute-bound at any size of {', '.join(never)}"
    if never:
        said.append(f"at no size of {', '.join(never)}")
    return f"compute-bound {'; '.join(said)}" if said else ""


def _intensity_words(cost: PlanCost) -> str:
    """FLOPs per byte of memory and per byte sent, beside what the machine needs, and the part of the peak."""
    if not cost.flops or cost.flops_per_hbm_byte is None:
        return ""
    words = f"{_ratio(cost.flops_per_hbm_byte)} FLOPs per HBM byte"
    peak, bandwidth = cost.peak_flops, cost.machine.device.hbm_bandwidth
    if peak is not None and bandwidth is not None:
        words += f" ({cost.machine.chip} is compute-bound above {_ratio(peak / bandwidth)})"
    if cost.flops_per_wire_byte is not None:
        words += f", {_ratio(cost.flops_per_wire_byte)} per byte sent"
    serial, overlapped = cost.serial_utilisation, cost.overlapped_utilisation
    if serial is not None and overlapped is not None:
        words += f"; {_percent(serial)} of the peak"
        if _percent(serial) != _percent(overlapped):
            words += f", overlapped {_percent(overlapped)}"
    return words


def memory_words(cost: PlanCost) -> str:
    """``memory at most 24.5 MiB, at step 2, of 15.8 GiB``; of several layers with the arguments of all."""
    step = cost.steps.index(cost.peak_step) + 1
    limit = "" if cost.limit_bytes is None else f", of {human_bytes(cost.limit_bytes)}"
    words = f"memory at most {human_bytes(cost.peak_bytes)}, at step {step}"
    may = may_fit_words(cost.layers_peak_bytes, cost.allocated_bytes, cost.limit_bytes)
    if cost.layers > 1:
        words += f" of one layer, {human_bytes(cost.layers_peak_bytes)} with all {cost.layers}"
    return words + limit + f": {may}" * bool(may)


def own_words(problem: Problem) -> str:
    """``each of the 80 layers has its own W1, W2; X passes through all``: what memory counts per layer."""
    if problem.layers == 1:
        return ""
    passed = problem.passed_on
    words = f"each of the {problem.layers} layers has its own {', '.join(problem.own_arguments)}"
    if not problem.own_arguments:
        words = f"the {problem.layers} layers have no arguments of their own"
    if problem.shared:
        gradient = ", without a gradient" * (problem.training is not None)
        words += f"; all share {', '.join(problem.shared)}{gradient}"
    if passed is None:
        return f"{words}; no layer takes the result of the layer before"
    return f"{words}; {passed.name} passes through all"


def _training_words(cost: PlanCost) -> str:
    """``parameters 84 MiB, gradients 168 MiB, optimizer 31.5 MiB, kept activations 172 MiB``."""
    memory, problem = cost.training_memory, cost.plan.problem
    if memory is None:
        return ""
    parts = {
        "parameters": memory.parameters,
        "gradients": memory.gradients,
        "optimizer": memory.optimizer,
        "kept activations": memory.activations,
    }
    words = ", ".join(f"{name} {human_bytes(size)}" for name, size in parts.items() if size)
    if fixed := [name for name in problem.parameters if name not in dict(problem.gradients)]:
        words += f"; no gradient of {', '.join(fixed)}"
    return words if problem.layers == 1 else f"in all {problem.layers} layers {words}"


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _percent(share: float) -> str:
    percent = share * 100
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.2g} %"


def alternatives_view(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The way to divide the work, where another would be faster; each alternative with what it costs more or
    less and its collectives; then how far the plan may be from the best, unless it is proved to be it."""
    lines = sentence(division_words(cost.plan), width, INDENT)
    for alternative in cost.alternatives:
        words = alternative_words(alternative, cost)
        if _divides_differently(alternative, cost):
            words += f": {_saving_words(alternative.cost, cost)}."
        lines += sentence(words, width, INDENT)
        moves = collectives_text(alternative.plan, palette).plain
        lines += sentence(moves, width, REASON_INDENT, style="dim")
    return lines + sentence(bound_words(cost), width, INDENT)


def _divides_differently(alternative: Alternative, cost: PlanCost) -> bool:
    return alternative.name == "fastest" and cost.plan.objective == "given"


def alternative_words(alternative: Alternative, cost: PlanCost) -> str:
    if _divides_differently(alternative, cost):
        return faster_words(alternative.cost, cost)
    lead = "The plan with the fewest bytes"
    if alternative.name == "fastest":
        lead = "The fastest plan" + " found" * (not alternative.plan.optimal)
    return f"{lead} {comparison_words(alternative.cost, cost)}"


def division_words(plan: Plan) -> str:
    """A plan's way to divide the work, where it may not be the fastest; "" of a reshard, which has none."""
    if plan.objective == "bytes" or plan.teller == "shardy" or plan.question.is_reshard:
        return ""
    if plan.as_given is not None:
        longer = _change(plan.as_given, 1, "longer", "less")
        return f"The work is not divided as the given arrays are; that would take {longer}."
    if plan.objective == "time" or plan.optimal:
        return ""
    return "The work is divided as the given arrays are, as compilers and textbooks do."


def faster_words(other: PricedPlan, own: PricedPlan) -> str:
    """``A plan that divides the work differently is 22 % faster (38 % more bytes, 50 % more memory)``"""
    figures = [
        f"{_change(theirs, ours, 'more', less)} {what}"
        for theirs, ours, less, what in (
            (other.wire_bytes, own.wire_bytes, "fewer", "bytes"),
            (other.flops, own.flops, "fewer", "FLOPs"),
            (other.peak_bytes, own.peak_bytes, "less", "memory"),
        )
        if ours and not _is_alike(theirs, ours)
    ]
    if other.wire_bytes and not own.wire_bytes:
        figures.insert(0, f"{human_bytes(other.wire_bytes)} sent, where this plan sends nothing")
    beside = f" ({', '.join(figures)})" if figures else ""
    ratio = own.serial_seconds / other.serial_seconds
    faster = f"{_times(ratio, 1)} as fast" if ratio >= 2 else f"{_percents(100 - 100 / ratio)} % faster"
    if overtaking([(priced.serial_seconds, priced.overlapped_seconds) for priced in (other, own)]):
        faster += ", and slower with perfect overlap"
    return f"A plan that divides the work differently is {faster}{beside}"


def _saving_words(other: PricedPlan, own: PricedPlan) -> str:
    """The reason why another plan is faster, by the largest part of the seconds that it saves."""
    computes = own.compute_seconds - other.compute_seconds
    if computes < own.communication_seconds - other.communication_seconds:
        less = _change(other.communication_seconds, own.communication_seconds, "more", "less")
        return f"its collectives take {less} time"
    if other.flops < own.flops and not _is_alike(other.flops, own.flops):
        return f"each device computes {_change(other.flops, own.flops, 'more', 'less')}"
    return f"each device moves {_change(other.hbm_bytes, own.hbm_bytes, 'more', 'less')} through HBM"


def bound_words(cost: PlanCost) -> str:
    """``The search was not exhaustive; this plan takes at most …``; "" where the best is known."""
    plan = cost.plan
    by_time = plan.objective != "bytes"
    faster = [other.plan for other in cost.alternatives if by_time and other.name == "fastest"]
    if any(plan is not None and plan.optimal for plan in (plan, plan.faster, *faster)):
        return ""
    if plan.at_most is None:
        better = "a faster plan" if by_time else "a plan that sends less"
        return f"The search was not exhaustive; {better} may exist."
    does, what = ("takes", "time") if by_time else ("sends", "bytes")
    # ``1.35``, ``12.4``, ``1,235``: never less than the ratio.
    unit = 100 if plan.at_most < 10 else 10 if plan.at_most < 100 else 1
    most = f"{math.ceil(round(plan.at_most * unit, 6)) / unit:,.15g}"
    return f"The search was not exhaustive; this plan {does} at most {most} × the minimum {what}."


def comparison_words(other: PricedPlan, own: PricedPlan) -> str:
    """``sends 56 % less, computes 4 ×, takes 2.9 ×``: the other plan beside one's own."""
    sent = "sends nothing"
    if other.wire_bytes == own.wire_bytes:
        sent = "sends as much"
    elif not own.wire_bytes:
        sent = f"sends {human_bytes(other.wire_bytes)} where this plan sends nothing"
    elif other.wire_bytes:
        sent = f"sends {_change(other.wire_bytes, own.wire_bytes, 'more', 'less')}"
    words = [sent]
    if not _is_alike(other.flops, own.flops):
        words.append(f"computes {_change(other.flops, own.flops, 'more', 'less')}")
    if not (other.unknown or own.unknown):
        theirs, ours = other.serial_seconds, own.serial_seconds
        alike = not ours or _is_alike(theirs, ours)
        words.append("takes as long" if alike else f"takes {_change(theirs, ours, 'longer', 'less')}")
    if own.peak_bytes and not _is_alike(other.peak_bytes, own.peak_bytes):
        words.append(f"holds {_change(other.peak_bytes, own.peak_bytes, 'more', 'less')}")
    return ", ".join(words)


def _is_alike(other: float, own: float) -> bool:
    return abs(other - own) <= ALIKE * own


def _change(other: float, own: float, more: str, less: str) -> str:
    """``56 % less``, ``12 % more``; from twice on ``4 ×``; ``more`` than nothing."""
    if not own:
        return more
    if other >= 2 * own:
        return _times(other, own)
    percent = abs(other / own - 1) * 100
    return f"{_percents(percent)} % {more if other > own else less}"


def _percents(value: float) -> str:
    """``56``; ``0.2`` and ``99.6`` where a whole number would say nothing or everything."""
    near = min(value, 100 - value)
    digits = max(0, math.ceil(-math.log10(2 * near))) if near > 0 else 0
    return f"{value:.{digits}f}"


def _times(other: float, own: float) -> str:
    ratio = other / own
    return f"{ratio:,.0f} ×" if ratio >= 10 or ratio == round(ratio) else f"{ratio:.2g} ×"
