"""A whole model: every parameter with its split, the memory of a device, the collectives of a step, and what
another split changes; and a checkpoint: its arrays as saved and as restored, and what each device reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import get_args

from rich.text import Text

from shardviz.errors import plural, quote
from shardviz.models.answer import (
    ModelAnswer,
    ModelChange,
    ModelMemory,
    ModelQuestion,
    ModelStep,
    PlannedPart,
)
from shardviz.models.checkpoint import Restore
from shardviz.models.rule_set import SplitModel, folded
from shardviz.models.serving import ServingAnswer
from shardviz.notation.spec_string import write_spec
from shardviz.planner.pricing.priced_plan import PricedStep
from shardviz.planner.problem import Phase
from shardviz.render.caption import axes_text, mesh_text, split_text
from shardviz.render.cost_view import machine_words, padding_lines
from shardviz.render.lines import bar, listed, sentence, sentences
from shardviz.render.palette import PLAIN, Palette
from shardviz.render.plan_view import time_words
from shardviz.render.tables import Cell, as_text, columns, giving_way, rest_line, table
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import whole_axis
from shardviz.units import human_bytes, may_fit_words, percent, seconds, times

HEADINGS = ("parameter", "shape", "split", "per device", ">", ">×")
SHOWN = 4
"""Parameters, or rules, that a sentence names."""
_LAYERS = re.compile(r"(.*?\d+[–,][\d–,]*\d)[./](.*)")
NAME, SIZE = 18, 9
"""Columns of a memory bar's name and of its bytes."""
MOST = 24
"""Rows of a checkpoint on a page that was not asked for more."""
ARROW = "→"


def model_lines(answer: ModelAnswer, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """The model; the time and memory of a step; a row for each parameter, and for the collectives of a part
    over the same axes. `verbose` has the memory as bars, every collective and the phases of a step."""
    question, step = answer.question, answer.step
    lines = [*_head_lines(question, width, palette), Text()]
    if step is not None:
        lines += sentences(_step_words(step, question), width)
    lines += sentences(_fit_words(answer.memory, question), width)
    lines += [Text(), *_parameter_lines(question, width, palette)]
    if verbose:
        lines += [Text(), *memory_lines(answer.memory, question, width, palette)]
    if step is not None:
        lines += [Text(), *(step_lines if verbose else _step_rows)(step, question, width, palette)]
        words = f"Tokens sharded {write_spec(question.tokens.spec)}, on {machine_words(step.layer.cost)}."
        lines += sentence(words, width, style="dim")
    return lines


def _head_lines(question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    model, rules = question.model, f"rules {question.split.rules.name}"
    size = f"{model.nbytes / 1e9:,.4g} GB" if model.nbytes >= 10**9 else human_bytes(model.nbytes)
    words = f"{model.elements:,} parameters in {', '.join(model.dtypes)}, {size}"
    lines = sentence(words, width, lead=f"{model.name}  ")
    lines += sentence(model.source, width, style="dim")
    mesh = Text("mesh ").append_text(mesh_text(question.mesh, palette))
    whole = mesh.copy().append(f"   {rules}")
    return lines + ([whole] if whole.cell_len <= width else [mesh, *sentence(rules, width)])


def _parameter_lines(question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    """A row for each parameter, those of alike layers together, and what the rules leave out."""
    rows: list[Sequence[Cell]] = []
    every = folded(question.split.parameters)
    for layers, group in groupby(every, lambda one: (_LAYERS.fullmatch(one.name) or ("", ""))[1]):
        parameters = [*group]
        if layers:
            held = sum(parameter.bytes_per_device for parameter in parameters)
            count = max(parameter.count for parameter in parameters)
            rows.append([(f"{layers} × {count}", "bold"), "", "", "", (human_bytes(held), "bold")])
        for parameter in parameters:
            first = parameter.first
            name = parameter.name[len(layers) + bool(layers) :].removesuffix(".weight")
            split = split_text(first.spec, first.mesh, palette) if first.is_matched else ("no rule", "italic")
            shapes = times(first.parameter.shape), times(first.shard_shape)
            cells = human_bytes(first.bytes_per_device), f"{first.replicas:,}"
            rows.append(["  " * bool(layers) + name, shapes[0], split, shapes[1], *cells])
    *without, last = giving_way("shape", "×", "per device")
    without += [("shape", "per device"), last]
    lines = table(rows, width, 0, HEADINGS, without, style="dim")
    return [*lines, *rule_lines(question.split, width)]


def rule_lines(split: SplitModel, width: int) -> list[Text]:
    """The parameters that no rule matches, the rules that match nothing, and what does not divide."""
    unmatched = listed([parameter.name for parameter in folded(split.unmatched)], SHOWN)
    rules = [quote(rule.subject) + (f" ({rule.place})" if rule.place else "") for rule in split.unused]
    words = f"{unmatched}; every device has a full copy" if unmatched else ""
    uneven = []
    for parameter in folded(split.uneven):
        first = parameter.first
        said = []
        for dim in first.uneven:
            axes = ", ".join(f"{axis}={first.mesh.axis_size(axis)}" for axis in first.spec.dims[dim.dim])
            said.append(f"{dim.size:,} over {axes} is padded to {dim.padded:,}")
        hint = "jax.device_put rejects it: pad the parameter, or shard another dimension"
        uneven.append(f"{parameter.name}: {', '.join(said)}; {hint}")
    return [
        *sentences([words], width, lead="no rule matches: "),
        *sentences([listed(rules, SHOWN)], width, lead="rules without a match: "),
        *sentences(uneven, width, lead="not divisible: "),
    ]


def memory_lines(memory: ModelMemory, question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    chip, limit = question.placed.machine.chip, memory.limit
    has = "" if limit is None else f", of {human_bytes(limit)} per {chip}"
    lines = sentence(f"bytes per device{has}", width, lead="memory  ")
    rows = _memory_rows(memory, question)
    most = max([memory.limit or 0, *(size for _, size in rows)])
    for name, size in rows:
        line = Text(f"  {name:<{NAME}}{human_bytes(size):>{SIZE}}  ")
        lines.append(line.append(bar(size, most, max(width - NAME - SIZE - 4, 1)), palette.lanes["memory"]))
    words = "gradients and activations are not all live at once: a step counts its peak, not their sum."
    is_peak = None not in (memory.working, memory.activations)
    return lines + (sentence(words, width, 2, style="dim") if is_peak else [])


def _memory_rows(memory: ModelMemory, question: ModelQuestion) -> list[tuple[str, int]]:
    """The uses of memory and their bytes: those of training where there is any, those of serving last."""
    rows = [("parameters", memory.parameters)]
    training = question.training
    if training is not None and training.optimizer is not None:
        rows.append((f"{training.optimizer.rule} state", memory.optimizer))
    if memory.working is not None:
        rows.append(("a step, at most", memory.working))
    if training is not None:
        lead = "" if memory.working is None else "  "
        rows.append((f"{lead}gradients", memory.gradients))
        if memory.activations is not None:
            rows.append((f"{lead}activations", memory.activations))
    if memory.keys_and_values is not None:
        rows.append((_cache_name(question), memory.keys_and_values))
    return rows


def _fit_words(memory: ModelMemory, question: ModelQuestion) -> Iterator[str]:
    """The sentences on what fits: ``a train step holds 21.6 GiB, at most 30.7 GiB as compiled: fits``."""
    if question.training is not None:
        without = "" if memory.working is not None else " without activations"
        yield f"a train step{without} holds {_verdict(memory, memory.training)}"
    if memory.keys_and_values is not None:
        batch, length = question.tokens.batch, question.tokens.sequence
        cached = f"a {_cache_name(question)} of {batch:,} × {length:,} tokens"
        yield f"inference with {cached} holds {_verdict(memory, memory.serving)}"


def _cache_name(question: ModelQuestion) -> str:
    """The name of the memory of earlier tokens; layers without attention have a state of one size."""
    of = question.model.architecture
    return "state" if of and all(kind.mixer == "mamba2" for kind in of.kinds) else "KV cache"


def _verdict(memory: ModelMemory, used: int) -> str:
    if memory.limit is None:
        return human_bytes(used)
    if over := memory.over(used):
        return f"{human_bytes(used)}: does not fit, {human_bytes(over)} too much"
    most = memory.allocated_bytes(used)
    if may := may_fit_words(used, most, memory.limit):
        return f"{human_bytes(used)}: {may}"
    return f"{human_bytes(used)}, at most {human_bytes(most)} as compiled: fits"


def serving_lines(answer: ServingAnswer, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """The time of a token and of the first, what fits, and batches; `verbose` has the collectives, too."""
    question, decode = answer.question, answer.decode
    rows: list[Sequence[Cell]] = [
        [
            (f"{one.batch:,}", "bold" * (one is decode)),
            time_words(one.step.seconds, not one.step.is_partial),
            "?" if one.tokens_per_s is None else f"{one.tokens_per_s:,.0f}",
            "?" if one.tokens_per_s_per_device is None else f"{one.tokens_per_s_per_device:,.0f}",
            human_bytes(one.memory),
            Text(one.bound),
        ]
        for one in answer.batches
    ]
    heads = (">sequences", ">decode step", ">tokens/s", ">per device", ">memory", "bound")
    lines = [*_head_lines(question, width, palette), Text()]
    lines += sentences(_serving_words(answer), width)
    lines += [Text(), *table(rows, width, 0, heads, giving_way("bound", "memory", "tokens/s"), style="dim")]
    for name, step in (("a decode step", decode.step), ("prefill", answer.prefill)) if verbose else ():
        lines += [Text(), Text(name, "bold"), *step_lines(step, question, width, palette)]
    return [*lines, *sentences([f"On {machine_words(decode.step.layer.cost)}."], width, style="dim")]


def _serving_words(answer: ServingAnswer) -> Iterator[str]:
    question, decode, memory = answer.question, answer.decode, answer.memory
    cache = _cache_name(question)
    chip = question.placed.machine.chip or "devices"

    def took(step: ModelStep) -> str:
        both = (step.seconds, step.overlapped_seconds)
        whole, hidden = (time_words(time, not step.is_partial) for time in both)
        return f"{whole}, {hidden} with perfect overlap"

    yield f"a decode step of {plural(decode.batch, 'sequence')} takes {took(decode.step)}"
    yield (
        f"each device holds {human_bytes(memory.parameters)} of weights and "
        f"{human_bytes(memory.keys_and_values or 0)} of {cache} in {answer.cache_dtype}, together "
        f"{_verdict(memory, memory.serving)}"
    )
    prompts = "a prompt" if answer.prompts == 1 else f"{answer.prompts} prompts, each"
    yield f"prefill of {prompts} of {question.tokens.sequence:,} tokens takes {took(answer.prefill)}"
    yield f"the {cache} of one prompt is {human_bytes(answer.cache_bytes)}, sent if other devices decode"
    if answer.critical_batch is not None:
        yield f"below {answer.critical_batch:,.0f} sequences, reading weights takes longer than the matmuls"
    if answer.largest_batch is not None:
        fit = f"{plural(answer.largest_batch, 'sequence')} fit{'s' * (answer.largest_batch == 1)} here"
        need = f"{decode.batch:,} need{'s' * (decode.batch == 1)} at least {answer.fewest_devices:,} {chip}"
        named = f", such as {answer.smallest_machine}" if answer.smallest_machine else ""
        yield f"{fit}; {need}{named}"
    yield from answer.dropped
    parts = (*decode.step.parts, *answer.prefill.parts)
    if missing := next((part.cost.missing_figure for part in parts if part.cost.unknown), ""):
        yield f"times are lower bounds: {missing}"


def memory_text(answer: ModelAnswer) -> str:
    """The memory as plain text, with the model, the rules and the mesh, for the message of a test."""
    question, memory = answer.question, answer.memory
    rules, mesh = question.split.rules.name, question.mesh
    verb = "does" if memory.over(memory.serving if question.training is None else memory.training) else "may"
    head = f"{question.model.name} {verb} not fit with rules {rules} on mesh {mesh}"
    lines = memory_lines(memory, question, 100, PLAIN)
    lines += sentences(_fit_words(memory, question), 100, 2)
    return "\n".join([head, *(line.plain for line in lines)])


def _step_rows(step: ModelStep, question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    """A row for the collectives of each part over the same axes: their operations, or their number."""
    named: list[Sequence[Cell]] = []
    counted: list[Sequence[Cell]] = []
    names = question.mesh.axis_names
    for part in step.parts:
        name = _part_name(part)
        by_axes: dict[tuple[str, ...], list[PricedStep]] = {}
        for _, priced in part.collectives():
            axes = tuple(sorted(priced.step.axes, key=lambda axis: names.index(whole_axis(axis))))
            by_axes.setdefault(axes, []).append(priced)
        for axes, steps in by_axes.items():
            ops = ", ".join(dict.fromkeys(priced.step.op for priced in steps))
            over = Text(" over ").append_text(axes_text(axes, question.mesh, palette, ","))
            named.append([name, Text(ops) + over, *_sums(steps)])
            counted.append([name, Text(f"{len(steps)}") + over, *_sums(steps)])
            name = ""
        if not by_axes:
            for rows in (named, counted):
                rows.append([name, "nothing is sent"])
    heads = ("part", "collectives", ">bytes", ">time")
    lines = columns(named, width, 0, heads, style="dim") or table(counted, width, 0, heads, style="dim")
    return [*lines, *_padding_lines(step, width)]


def step_lines(step: ModelStep, question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    """The collectives of a layer, embedding and logits by phase, alike ones together; then phases' times."""
    lines = [Text("collectives")]
    for part in step.parts:
        lines += _part_lines(part, question.mesh, width, palette)
    lines += _padding_lines(step, width)
    if len(step.seconds_by_phase) > 1:
        times = step.seconds_by_phase.items()
        by_phase = (f"{phase} {time_words(time, not step.is_partial)}" for phase, time in times)
        lines += sentence(", ".join(by_phase), width, 2)
    return lines


def _part_name(part: PlannedPart) -> str:
    return part.part.name + f" × {part.cost.layers}" * (part.cost.layers > 1)


def _padding_lines(step: ModelStep, width: int) -> list[Text]:
    padded = dict.fromkeys(dim for part in step.parts for dim in part.cost.plan.problem.padding)
    return padding_lines([*padded], width, 2)


def _sums(steps: Sequence[PricedStep]) -> tuple[str, str]:
    times = [priced.seconds for priced in steps if priced.seconds is not None]
    moved = human_bytes(sum(priced.step.bytes for priced in steps))
    return moved, "?" if len(times) < len(steps) else seconds(sum(times))


def _part_lines(part: PlannedPart, mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A row for each group of collectives; their arrays behind it where there is room, else below."""
    groups: dict[tuple[Phase, str, tuple[str, ...]], list[PricedStep]] = {}
    for phase, priced in part.collectives():
        groups.setdefault((phase, priced.step.op, priced.step.axes), []).append(priced)
    rows: list[Sequence[Cell]] = [
        [
            phase,
            Text(f"{len(steps)} {op} over ").append_text(axes_text(axes, mesh, palette, ",")),
            *_sums(steps),
            (", ".join(step.step.array for step in steps), "dim"),
        ]
        for wanted in get_args(Phase)
        for (phase, op, axes), steps in groups.items()
        if phase == wanted
    ]
    lines = [Text.assemble("  ", (_part_name(part), "bold"), "" if rows else "  nothing is sent")]
    head = ("", "", ">", ">")
    wide = columns(rows, width, 4, head)
    if wide is not None:
        return lines + wide
    narrow = table([row[:-1] for row in rows], width, 4, head)
    if len(narrow) > len(rows):
        return lines + narrow
    for line, row in zip(narrow, rows, strict=True):
        lines += [line, *sentence(as_text(row[-1]).plain, width, 6, style="dim")]
    return lines


def _step_words(step: ModelStep, question: ModelQuestion) -> Iterator[str]:
    """``a train step of 16 × 4,096 tokens takes 1.98 s without overlap``, and what its collectives send."""
    is_partial = step.is_partial
    what = "a forward pass" if question.training is None else "a train step"
    size = f"{question.tokens.batch:,} × {question.tokens.sequence:,}"
    both = (step.overlapped_seconds, step.seconds)
    overlapped, whole = (time_words(each, not is_partial) for each in both)
    at_peak = f"{overlapped} with perfect overlap, {whole} without overlap"
    if step.published_seconds is None or is_partial:
        yield f"{what} of {size} tokens takes {at_peak}"
    else:
        usual, chip = seconds(step.published_seconds), question.placed.machine.chip
        yield f"{what} of {size} tokens takes {usual}, scaled to published {chip} runs"
        speed = "with matmuls as measured" if question.placed.machine.device.matmuls else "at peak FLOP/s"
        yield f"{speed}: {at_peak}"
    sent = f"{plural(step.count, 'collective')} send {human_bytes(step.wire_bytes)} per device"
    yield f"{sent} in {time_words(step.communication_seconds, not is_partial)}"
    yield from step.dropped
    if is_partial:
        yield f"times are lower bounds: {step.layer.cost.missing_figure}"


def change_lines(change: ModelChange, width: int, palette: Palette) -> list[Text]:
    """The parameters that are split otherwise, then what that changes: memory, collectives, seconds."""
    lines = [Text("changes", "bold")]
    if not change.parameters:
        return [*lines, *sentence("none: every parameter keeps its sharding", width, 2)]
    before, after = change.before, change.after
    moved: list[Sequence[Cell]] = [
        [
            new.name.removesuffix(".weight"),
            split_text(old.first.spec, old.first.mesh, palette),
            ARROW,
            split_text(new.first.spec, new.first.mesh, palette),
            _bytes(old.bytes_per_device, new.bytes_per_device),
        ]
        for old, new in change.parameters
    ]
    held = zip(*(_memory_rows(each.memory, each.question) for each in (before, after)), strict=True)
    memory = [[name.strip(), _bytes(old, new)] for (name, old), (_, new) in held if old != new]
    sent: list[Sequence[Cell]] = [
        [
            one.part,
            one.phase,
            Text(f"{one.op} over ") + axes_text(one.axes, after.question.mesh, palette, ","),
            f" {ARROW} ".join(dict.fromkeys(f"{count} ×" for count in one.counts)),
            _bytes(*one.bytes),
        ]
        for one in change.collectives
    ]
    lines += [
        *table(moved, width, 2),
        *table(memory, width, 2),
        *table(sent, width, 2, ("", "", "", ">", ">")),
    ]
    if before.step is not None and after.step is not None:
        took = (before.step.seconds, after.step.seconds)
        waited = (before.step.communication_seconds, after.step.communication_seconds)
        whole, part = (f" {ARROW} ".join(map(seconds, pair)) for pair in (took, waited))
        lines += sentence(f"a step takes {whole}, its collectives {part}", width, 2)
    return lines


def _bytes(before: int, after: int) -> str:
    return human_bytes(after) if before == after else f"{human_bytes(before)} {ARROW} {human_bytes(after)}"


def checkpoint_lines(restore: Restore, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """The checkpoint, what restoring it reads, and a row for the arrays that are alike, the largest first."""
    checkpoint, split, is_moved = restore.checkpoint, restore.split, restore.is_moved
    model, saved = checkpoint.model, checkpoint.mesh or split.mesh
    untyped = [one.array.name for one in restore.arrays if one.bytes is None]
    size = f"{model.elements:,} elements" if untyped else human_bytes(model.nbytes)
    count = plural(len(model.parameters) + len(checkpoint.shapeless), "array")
    lines = sentence(f"{count}, {size}", width, lead=f"{model.name}  ")
    if model.source != model.name:
        lines += sentence(model.source, width, style="dim")
    if checkpoint.mesh is not None:
        lines.append(Text("saved on mesh ").append_text(mesh_text(checkpoint.mesh, palette)))
    if is_moved:
        lines.append(Text("restored on mesh ").append_text(mesh_text(split.mesh, palette)))
        by = "as saved, over the axes that this mesh has"
        by = by if split.rules.function else f"rules {split.rules.name}"
        lines += sentence(by, width, style="dim")
    lines += [Text(), *sentences(_restore_words(restore, untyped), width), Text()]
    ordered = sorted(restore.arrays, key=lambda one: -one.array.elements)
    rows: list[Sequence[Cell]] = [
        (
            one.array.name,
            f"{own.dtype or 'unknown dtype'} {times(own.shape)}",
            ("not sharded", "dim") if own.spec is None else split_text(own.spec, saved, palette),
            split_text(one.array.first.spec, split.mesh, palette) if is_moved else "",
            "?" if one.bytes is None else human_bytes(one.bytes),
            f"{one.array.first.replicas:,}",
            percent(one.held) if is_moved else "",
        )
        for one in (ordered if verbose else ordered[:MOST])
        for own in (one.array.first.parameter,)
    ]
    restored, held = ("restored", ">held") if is_moved else ("", "")
    heads = ("array", "shape", "saved", restored, ">per device", ">copies", held)
    lines += table(rows, width, 0, heads, giving_way("copies", "held"), style="dim")
    lines += rest_line(len(ordered) - len(rows), "more row")
    return lines + (rule_lines(split, width) if is_moved else [])


def _restore_words(restore: Restore, untyped: Sequence[str]) -> Iterator[str]:
    """``each device needs 4 GiB, and held 25 % of that when it was saved``, and what is not known."""
    needed, shapeless = restore.bytes, restore.checkpoint.shapeless
    if needed and restore.is_moved:
        held = percent(restore.held_bytes / needed)
        yield f"each device needs {human_bytes(needed)}, and held {held} of that when it was saved"
        yield f"the stored pieces that it reads, each whole, have {human_bytes(restore.piece_bytes)}"
    elif needed:
        yield f"each device holds {human_bytes(needed)}"
    yield f"unknown dtype, in no figure: {listed(untyped, SHOWN)}" if untyped else ""
    yield f"unknown shape: {listed(shapeless, SHOWN)}" if shapeless else ""
    if untyped or shapeless:
        hint = "; --dtype bf16 assumes one" if untyped else ""
        yield f"tensorstore, installed beside shardviz, reads them from the checkpoint's database{hint}"
