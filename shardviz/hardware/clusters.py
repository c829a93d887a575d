"""Slices of TPUs and nodes of GPUs, by the names that `--target` and `--machine` take: ``v5e:2x4``,
``h100:2x8``.

They are checked here, as the compiler for TPUs would take an axis of 0, divide by it, and die. Read as well:
Google Cloud's accelerator types, ``v5p-128``, and counts of chips, ``8xh100``, ``v5e8``. The number of a type
counts the TensorCores of v2, v3, v4, v5p and tpu7x, two a chip, and the chips of v5e and v6e (Cloud TPU's
documentation of each version; its `xpk` names slices so)."""

from __future__ import annotations

import math
import re

from shardviz.errors import most_like, plural, quote
from shardviz.hardware.chip_torus import ChipTorus
from shardviz.hardware.chips import (
    CHIPS,
    COMPILED,
    GPUS,
    MAX_DEVICES,
    MAX_GPUS,
    TPU_ALIASES,
    TPUS,
    Gpu,
    TpuChip,
    slices_name,
    times,
)
from shardviz.hardware.family import SwitchedNodes
from shardviz.hardware.machine import Machine, published_machine


def machines_of_size(devices: int) -> list[Machine]:
    """Hardware that has a compiler, with so many devices, TPUs first and the newest of them."""
    chips: list[TpuChip | Gpu] = [*reversed(TPUS.values()), *reversed(GPUS.values())]
    names = (name for chip in chips if chip.name in COMPILED for name in chip.names_of_size(devices))
    return [machine for name in names if (machine := parse_cluster(name)) is not None]


def hardware_words(machine: Machine) -> str:
    """``2 slices of 16 chips of TPU v5 lite``, ``2 nodes of 8 H100``."""
    chip, family = CHIPS[machine.chip], machine.family
    if isinstance(chip, Gpu):
        gpus, nodes = (one.size for one in family.dimensions)
        return f"{f'{nodes} nodes of ' * (nodes > 1)}{gpus} {chip.name.upper()}"
    slices = f"{family.slices} slices of " * (family.slices > 1)
    return f"{slices}{plural(math.prod(family.torus_sizes), 'chip')} of {chip.device_kind}"


_PARTS = re.compile(r"(?:(?P<count>[^:*]*)\*)?(?P<chip>[^:*]*)(?P<colon>:)?(?P<sizes>.*)", re.DOTALL)
MAX_DIGITS = 9

_NUMBER = re.compile(r"[0-9]++", re.ASCII)
_CHIP = f"(?P<chip>{'|'.join(sorted((*TPUS, *TPU_ALIASES, *GPUS), key=len, reverse=True))})"
_COUNTED = re.compile(
    rf"(?P<before>[0-9]++) *[x×]? *(?:tpu|nvidia)?[ _-]?{_CHIP}s?"
    rf"|(?:tpu|nvidia)?[ _-]?{_CHIP.replace('chip', 'kind')}(?P<by> *[-x×_ ] *|(?<=[a-z]))(?P<after>[0-9]++)",
    re.ASCII,
)
"""A chip and how many, either first; between a name that ends in a digit and a number stands something."""
_NAMED = re.compile(rf"(?<![a-wyz0-9]){_CHIP}(?![a-z])(?:[^0-9]?(?P<sizes>[0-9]{{1,3}}(?:x[0-9]{{1,3}})+))?")
"""A chip anywhere in a name, and sizes behind it."""

_LIKELY = re.compile(
    r"(?:tpu[-_ ]?)?v?[0-9]{1,2}[a-z]{0,7}|tpu\w{0,6}|(?:gb|mi|[abhlv])[0-9]{2,3}[sx]?"
    r"|gpus?|cuda|nvidia|amd|trn[0-9]|trainium[0-9]?",
    re.ASCII,
)
_OTHERS = ", ".join(name for name in GPUS if name in COMPILED and name != "h100")
_MAKERS = {
    "amd": "GPU and how many: mi300x:8 (also mi355x)",
    "trainium": "generation and its NeuronCores: trn2:64 (also trn1)",
    **dict.fromkeys(("gpu", "gpus", "cuda", "nvidia"), f"GPU and how many: h100:8 (also {_OTHERS})"),
    **dict.fromkeys(
        ("tpu", "tpus"),
        f"generation and its chips: v5e:2x4 (also {', '.join(name for name in TPUS if name != 'v5e')})",
    ),
}
"""What to name instead of words for all chips of a maker."""


def _parsed(name: str) -> re.Match[str]:
    match = _PARTS.fullmatch(name)
    assert match is not None
    return match


class Fault(Exception):
    """An error in a name: the offending piece stands from `start` to `stop` in it."""

    def __init__(self, problem: str, start: int, stop: int, hint: str) -> None:
        super().__init__(problem)
        self.problem, self.start, self.stop, self.hint = problem, start, max(stop, start + 1), hint


def cluster_named(name: str) -> Machine | None:
    try:
        return parse_cluster(name.strip().lower())
    except Fault:
        return None


def parse_cluster(name: str, devices: int = 0) -> Machine | None:
    """The machine of a name in lower case; None for a word that names no chip. Raises `Fault`, which for a
    chip without a size suggests those with so many `devices`."""
    match = _parsed(name)
    chip = match["chip"].strip()
    if TPU_ALIASES.get(chip, chip) in TPUS:
        return _tpu(TPUS[TPU_ALIASES.get(chip, chip)], match, devices)
    if chip in GPUS:
        return _gpu(GPUS[chip], match, devices)
    if not match["colon"] and (counted := _COUNTED.fullmatch(chip)):
        return _counted(counted, match)
    named = None if match["colon"] else _NAMED.search(name)
    if named is None and (
        match["colon"] or match["count"] is not None or (len(chip) <= 40 and _LIKELY.fullmatch(chip))
    ):
        if not chip:
            raise Fault("a chip is missing", *match.span("chip"), _everything())
        if maker := _MAKERS.get(chip):
            raise Fault(f"{chip} is not a chip,", *match.span("chip"), f"name the {maker}")
        close = most_like(chip, (*TPUS, *TPU_ALIASES, *GPUS))
        meant = f"did you mean {TPU_ALIASES.get(close, close)}? " if close else ""
        raise Fault(f"unknown chip {quote(match['chip'], 30)}", *match.span("chip"), meant + _everything())
    if named is not None:
        known = TPU_ALIASES.get(named["chip"], named["chip"])
        example = _example(TPUS[known]) if known in TPUS else f"{known}:8"
        meant = f"{known}:{named['sizes']}" if named["sizes"] else example
        raise Fault(f"unknown target {quote(name, 30)}", *match.span(), f"did you mean {meant}?")
    return None


def _counted(counted: re.Match[str], match: re.Match[str]) -> Machine:
    alias = counted["chip"] or counted["kind"]
    known = TPU_ALIASES.get(alias, alias)
    group = "before" if counted["before"] else "after"
    count = _number(counted[group], match.start("chip") + counted.start(group), _everything())
    if known in GPUS:
        return _gpus(GPUS[known], count, match)
    chip = TPUS[known]
    if group == "before":
        return _slices(chip, count, 1, match)
    if chip.cores == 1 or counted["by"].strip() == "-":
        return _slices(chip, count, chip.cores, match)
    whole = _slices(chip, count, 1, match)
    hint = f"did you mean {whole.name} for {plural(count, 'chip')}, or {known}-{count}, which counts cores?"
    raise Fault(f"{quote(match['chip'], 30)} may count chips or cores", *match.span("chip"), hint)


def _tpu(chip: TpuChip, match: re.Match[str], devices: int = 0) -> Machine:
    slices, span = 1, match.span("count")
    example = _example(chip)
    if match["count"] is not None:
        slices = _number(match["count"], span[0], f"write 2*{example} for two slices")
        if slices < 1:
            raise Fault("no slices", *span, f"use 1 or more: {example} or 2*{example}")
    hint = f"say how many chips along each axis: {example}"
    if not match["colon"] and slices > 1 and (whole := chip.tori(slices)):
        one = slices_name(chip.name, whole[0])
        hint = f"write {one} for {slices} chips, {slices}*{example} for {slices} slices"
    torus = _sizes(match, chip.name, _fitting(chip, devices, slices) or hint)
    start, stop = match.span("sizes")
    if len(torus) != chip.rank:
        problem = f"{chip.name} is a torus of {chip.rank} axes, not {len(torus)},"
        raise Fault(problem, start, stop, _rank(chip, torus))
    if (axis := chip.split_host(torus)) is not None:
        # Both x and y may be odd.
        odd = [axis < 2 and size % 2 and size > 1 for axis, size in enumerate(torus)]
        lower, upper = (
            times(size + step * bool(is_odd) for size, is_odd in zip(torus, odd, strict=True))
            for step in (-1, 1)
        )
        problem = f"{torus[axis]} chips along {'xyz'[axis]} do not fill whole hosts of 2x2 chips,"
        hint = f"sizes along x and y are 1 or even: {chip.name}:{lower} or {chip.name}:{upper}"
        raise Fault(problem, start, stop, hint)
    alone = slices_name(chip.name, torus)
    if not chip.fits_a_pod(torus):
        largest = f"{chip.longest_axis}x{chip.longest_axis}" if chip.rank == 2 else f"{chip.pod:,} chips"
        joined = slices_name(chip.name, (4,) * chip.rank, 2)
        pods = f"pods of {chip.name} have up to {largest}"
        hint = f"{pods}; {joined} joins two slices by the data-center network"
        raise Fault(f"{alone} is larger than a pod", start, stop, hint)
    if not chip.has_routes(torus):
        others = [slices_name(chip.name, other) for other in chip.tori(math.prod(torus))]
        hint = f"use {' or '.join(others[:2] or [f'{chip.name}:4x4', f'{chip.name}:8x8'])}"
        raise Fault(f"the TPU compiler has no routes for {alone}", start, stop, hint)
    in_slice = math.prod(torus) * chip.devices_per_chip
    if slices * in_slice > MAX_DEVICES:
        problem = f"{slices * in_slice:,} devices are more than the {MAX_DEVICES:,} that can be asked about"
        most = MAX_DEVICES // in_slice
        raise Fault(problem, *span, f"use up to {most:,} slices of {alone}")
    return published_machine(ChipTorus.published(chip, torus, slices))


def _slices(chip: TpuChip, count: int, cores: int, match: re.Match[str]) -> Machine:
    """The most compact slice of so many cores, `cores` to a chip, or chips where that is 1."""
    noun = "core" if cores == 2 else "chip"
    compact = [] if count % cores else chip.tori(count // cores)
    if not compact:
        counts = "cores, 2 a chip" if cores == 2 else "chips"
        problem = f"no slice of {chip.name} has {plural(count, noun)}"
        hint = f"the number counts {counts}; write the sizes of the slice: {_example(chip)}"
        raise Fault(problem, *match.span("chip"), hint)
    slices, one = match["count"] or "", slices_name(chip.name, compact[0])
    return _tpu(chip, _parsed(f"{slices}*{one}" if match["count"] is not None else one))


def _example(chip: TpuChip) -> str:
    return f"{chip.name}:{'2x2x1' if chip.rank == 3 else '2x4'}"


def _gpus(gpu: Gpu, count: int, match: re.Match[str]) -> Machine:
    span = match.span("chip")
    if match["count"] is not None:
        raise Fault("slices are for TPUs,", *match.span("count"), f"write {gpu.name}:2x{gpu.node}")
    if count > MAX_GPUS:
        raise _too_many_gpus(gpu, count, span)
    if not (names := gpu.names_of_size(count) if count else []):
        for_one, for_two = f"{gpu.name}:{gpu.node} for one", f"{gpu.name}:2x{gpu.node} for two"
        hint = f"a node holds {gpu.node}: write {for_one}, {for_two}"
        raise Fault(f"{count:,} {gpu.name.upper()} are not whole nodes", *span, hint)
    return _gpu(gpu, _parsed(names[0]))


def _rank(chip: TpuChip, torus: tuple[int, ...]) -> str:
    """The sizes that were probably meant, where the number of axes is another."""
    if len(torus) == 1 and (compact := chip.tori(torus[0])):
        return f"write {slices_name(chip.name, compact[0])} for {plural(torus[0], 'chip')}"
    meant = tuple(size for size in torus if size != 1) if len(torus) > chip.rank else torus
    if len(meant) <= chip.rank:
        return f"write {chip.name}:{times((*meant, *(1,) * (chip.rank - len(meant))))}"
    return f"write {_example(chip)}, or another chip with {len(torus)} axes"


def _gpu(gpu: Gpu, match: re.Match[str], devices: int = 0) -> Machine:
    if match["count"] is not None:
        if not match["colon"] and _NUMBER.fullmatch(match["count"].strip()):
            return _gpus(gpu, _number(match["count"], match.start("count"), ""), _parsed(gpu.name))
        hint = f"write {gpu.name}:2x{gpu.node} for two nodes of {gpu.node}"
        raise Fault("slices are for TPUs,", *match.span("count"), hint)
    example = f"{gpu.name}:{gpu.node} for one node, {gpu.name}:2x{gpu.node} for two"
    sizes = _sizes(match, gpu.name, _fitting(gpu, devices) or f"say how many GPUs: {example}")
    start, stop = match.span("sizes")
    if len(sizes) > 2:
        problem = f"{gpu.name} takes nodes x GPUs, not {len(sizes)} sizes,"
        raise Fault(problem, start, stop, f"write {example}")
    nodes, gpus = sizes if len(sizes) == 2 else (1, *sizes)
    if gpus > gpu.node:
        whole, rest = divmod(nodes * gpus, gpu.node)
        meant = f"{gpu.name}:{whole}x{gpu.node}" if not rest else example
        raise Fault(f"a node holds {gpu.node} GPUs, not {gpus:,}", start, stop, f"write {meant}")
    if nodes * gpus > MAX_GPUS:
        raise _too_many_gpus(gpu, nodes * gpus, (start, stop))
    return published_machine(SwitchedNodes.published(gpu, nodes, gpus))


def _too_many_gpus(gpu: Gpu, count: int, span: tuple[int, int]) -> Fault:
    problem = f"{count:,} GPUs are more than the {MAX_GPUS:,} that can be asked about"
    return Fault(problem, *span, f"use at most {gpu.name}:{MAX_GPUS // gpu.node}x{gpu.node}")


def _fitting(chip: TpuChip | Gpu, devices: int, slices: int = 1) -> str:
    names = chip.names_of_size(devices, slices) if devices else []
    return f"write {' or '.join(names)}: the mesh has {plural(devices, 'device')}" if names else ""


def _sizes(match: re.Match[str], chip: str, hint: str) -> tuple[int, ...]:
    if not match["sizes"].strip():
        raise Fault(f"{chip} has no size", *match.span("chip"), hint)
    sizes, start = [], match.start("sizes")
    for piece in re.split("[x×]", match["sizes"]):
        size = _number(piece, start, hint)
        if size < 1:
            raise Fault(f"{chip} has no axis of {size}", start, start + len(piece), "sizes are 1 or more")
        sizes.append(size)
        start += len(piece) + 1
    return tuple(sizes)


def _number(text: str, start: int, hint: str) -> int:
    number = text.strip()
    if not _NUMBER.fullmatch(number):
        problem = f"{quote(text, 30)} is not a number" if number else "a number is missing"
        raise Fault(problem, start, start + len(text), hint)
    if len(number.lstrip("0")) > MAX_DIGITS:
        raise Fault(f"{quote(text, 30)} is too large", start, start + len(text), hint)
    return int(number)


def _everything() -> str:
    return f"the chips are {', '.join(TPUS)}, {', '.join(GPUS)}"
