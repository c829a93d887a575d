"""The compiler's account of HBM (memory space 0): buffer assignment and live ranges → a `MemoryReport`."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from shardviz.hlo.text.instruction import parse_instruction
from shardviz.hlo.text.source_locations import SourceLocations
from shardviz.timeline.live_memory import MAX_BUFFERS
from shardviz.timeline.program_timeline import BufferKind, LiveBuffer, MemoryReport, live_bytes

GIB = 2**30

_LINE = re.compile(
    r"^(?:allocation \d+: size (?P<size>\d+), (?:color (?P<color>\d+), |page \d+, )*+(?P<kind>[^\n]*)"
    r"| value: <\d+ (?P<name>\S+?)(?P<index>\{[\d,]*\})? @(?P<space>\d+)>"
    r" \(size=(?P<bytes>\d+),offset=(?P<offset>\d+)\): (?P<shape>[^\n]*))\n",
    re.MULTILINE,
)
_LAYOUT = re.compile(r"\{[^{}]*\}")
_INSTRUCTION = re.compile(r"^    \d+:(\S+)$", re.MULTILINE)
_RANGE = re.compile(r"^    (\S+?)(\{[\d,]*\}):(\d+)-(\d+)$", re.MULTILINE)
_OVER = re.compile(r"\(([\d.]+)([KMGT]?)\) exceeds available (\w+) \(([\d.]+)([KMGT]?)\)")
"""libtpu: ``… required for HLO temporaries (18.00G) exceeds available HBM (15.75G)``."""
_ON_CHIP = re.compile(
    r"memory space (\w+) while allocating on stack for %(\S+) = (\S+) .*"
    r"size ([\d.]+)([KMGT]?) and limit ([\d.]+)([KMGT]?) exceeded"
)
"""libtpu: ``… for %f.1 = f32[8,8]{1,0} custom-call(…) … Scoped allocation with size 64.00M and limit 16.00M
exceeded scoped vmem limit by 48.00M``."""
_WHOLE: tuple[BufferKind, ...] = ("argument", "constant")
"""Kinds that are live all the time."""
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": GIB, "T": 2**40}


@dataclass(frozen=True)
class _Value:
    """A value at a place, an allocation and the offset in it; `start` and `end` number the instructions
    between which it is live, None where the reports do not tell."""

    name: str
    shape: str
    bytes: int
    place: tuple[int, int]
    kind: BufferKind
    start: int | None = None
    end: int | None = None


def read_memory(
    sizes: Mapping[str, int], assignment: str, live_ranges: str, module: str, limit_bytes: int | None = None
) -> MemoryReport:
    """The report of one compilation: `sizes` are those of `memory_analysis()` by `MemoryReport`'s names
    ("argument", "output", "alias", "temporary", "peak"); what it lacks is taken from the buffer assignment.
    Texts may be damaged, cut off or empty. `module` tells the buffers' source lines."""
    order = _INSTRUCTION.findall(live_ranges)
    sums, values = _assigned(assignment, live_ranges, len(order))
    places: defaultdict[tuple[int, int], list[_Value]] = defaultdict(list)
    for value in values:
        if value.kind not in _WHOLE:
            places[value.place].append(value)
    spans = (span for those in places.values() for span in _spans(those, len(order)))
    curve = live_bytes(spans, len(order), sum(sums[kind] for kind in _WHOLE))
    most = max(curve, default=0)
    return MemoryReport(
        "compiler",
        sizes.get("argument", sums["argument"]),
        sizes.get("output", sums["output"]),
        sizes.get("alias", 0),
        sizes.get("temporary", sums["temporary"]),
        _peak(sizes, sums.total(), most),
        limit_bytes,
        tuple(_buffers(values, order, curve.index(most) if curve else 0, module)),
        order=tuple(zip(order, curve, strict=True)),
    )


def _peak(sizes: Mapping[str, int], allocated: int, live: int) -> int:
    """The bytes at the peak: what `memory_analysis()` says, where that is more than what is `live` by the
    reports and than arguments and outputs, and less than all that is `allocated`, else the closest bound. In
    jaxlib 0.10 its figure lacks the temporaries on CPUs, where no report tells what is live: then it is to
    have half of them; on TPUs it has on-chip memory."""
    told = sizes.get("peak", 0)
    held = sizes.get("argument", 0) + sizes.get("output", 0) - sizes.get("alias", 0)
    most = allocated or held + sizes.get("temporary", 0)
    least = live or held + sizes.get("temporary", 0) // 2
    return told if max(held + 1, least) <= told < most or not most else most


def memory_over_limit(report: MemoryReport, message: str) -> MemoryReport:
    """The report of a program that does not fit, with what the compiler's message says of it, which counts
    everything that is needed, and rounds to a hundredth. One about other memory than HBM changes nothing."""
    match = _OVER.search(message)
    if match is None or match[3] != "HBM":
        return report
    needed, limit = _bytes(match[1], match[2]), _bytes(match[4], match[5])
    peak = report.peak_bytes if abs(report.peak_bytes - needed) <= GIB // 100 else needed
    return replace(report, peak_bytes=peak, limit_bytes=report.limit_bytes or limit)


def does_not_fit(report: MemoryReport) -> str:
    """A sentence: by how much a program is too large, and its largest buffer; "" for one that fits."""
    if not report.over_bytes or report.limit_bytes is None:
        return ""
    over = f"does not fit: {_four_digits(report.over_bytes)} over {_four_digits(report.limit_bytes)} of HBM"
    if not report.buffers:
        return over
    largest = report.buffers[0]
    line = f" ({largest.source})" if largest.source and largest.source != largest.name else ""
    holds = f"{_four_digits(largest.bytes)} is {largest.name} {largest.shape}{line}"
    return f"{over}, {_four_digits(report.peak_bytes)} needed; {holds}"


def on_chip_misfit(report: MemoryReport, message: str) -> tuple[str, str]:
    """A problem and a hint for a message about on-chip memory, which kernels fill; both "" for another."""
    match = _ON_CHIP.search(message)
    if match is None:
        return "", ""
    space, name, shape = match[1], match[2], _LAYOUT.sub("", match[3])
    needed, limit = _bytes(match[4], match[5]), _bytes(match[6], match[7])
    sources = (buffer.source for buffer in report.buffers if buffer.name == name)
    line = "".join(f" ({source})" for source in sources if source)
    needs = f"{name} {shape}{line} needs {_four_digits(needed)} of on-chip memory ({space})"
    hint = "give its kernel smaller blocks, or set the option xla_tpu_scoped_vmem_limit_kib="
    return f"{needs}, and {_four_digits(limit)} are allowed", hint + str(math.ceil(needed / 2**10))


def ways_to_fit(report: MemoryReport) -> str:
    """A hint by the largest part of a program's memory."""
    outputs = max(report.output_bytes - report.alias_bytes, 0)
    temporaries = "most are temporaries: give a device less of the batch, or use jax.checkpoint"
    parts = (
        (report.argument_bytes, "most are arguments: split them over more devices, or take a chip with more"),
        (report.temporary_bytes, temporaries),
        (outputs, "most are outputs: donate arguments that they replace, jax.jit(…, donate_argnums=…)"),
    )
    return max(parts)[1]


def _assigned(
    assignment: str, live_ranges: str, instructions: int
) -> tuple[Counter[BufferKind], list[_Value]]:
    """The bytes of the allocations in HBM by kind, and the values in them; parts of tuples as their own."""
    ranges = {
        (name, index): (int(start), min(int(end), instructions - 1))
        for name, index, start, end in _RANGE.findall(live_ranges)
    }
    sums: Counter[BufferKind] = Counter()
    values: list[_Value] = []
    in_hbm, kind = False, _kind("")
    for number, line in enumerate(_LINE.finditer(assignment)):
        if line["size"]:
            allocation, in_hbm, kind = number, line["color"] in (None, "0"), _kind(line["kind"])
            sums[kind] += int(line["size"]) if in_hbm else 0
        elif in_hbm:
            known = None if kind in _WHOLE else ranges.get((line["name"], line["index"] or "{}"))
            shape, location = _LAYOUT.sub("", line["shape"]), (allocation, int(line["offset"]))
            live = known or (None, None)
            values.append(_Value(line["name"], shape, int(line["bytes"]), location, kind, *live))
    return sums, values


def _kind(text: str) -> BufferKind:
    """The kind of an allocation; a donated argument is live out too."""
    if text.startswith("parameter"):
        return "argument"
    if "maybe-live-out" in text:
        return "output"
    return "constant" if text.startswith("constant") else "temporary"


def _spans(buffer: Iterable[_Value], instructions: int) -> list[tuple[int, int, int]]:
    """(from, until, bytes) of the values at one offset: of those that are live at once the largest."""
    spans: list[tuple[int, int, int]] = []
    for start, last, size in sorted(
        (value.start or 0, instructions - 1 if value.end is None else value.end, value.bytes)
        for value in buffer
    ):
        end = min(last + 1, instructions)
        if spans and start < spans[-1][1]:
            before = spans.pop()
            if size <= before[2]:
                spans.append(before)
                start = before[1]
            else:
                spans += [(before[0], start, before[2]), (start, end, size)]
                start = max(start, end)
                end, size = before[1], before[2]
        if start < end:
            spans.append((start, end, size))
    return spans


def _buffers(values: list[_Value], order: list[str], at: int, module: str) -> Iterable[LiveBuffer]:
    """The largest buffers that are live at an instruction, each place in an allocation once."""
    places: dict[tuple[int, int], _Value] = {}
    for value in values:
        is_live = value.start is None or value.end is None or value.start <= at <= value.end
        if is_live and value.bytes > (places[value.place].bytes if value.place in places else 0):
            places[value.place] = value
    largest = sorted(places.values(), key=lambda value: -value.bytes)[:MAX_BUFFERS]
    names, locations = {value.name for value in largest}, SourceLocations(module)
    every = re.finditer(r"^\s*(?:ROOT )?%?(\S+) = .*", module, re.MULTILINE)
    lines = {line[1]: line[0] for line in every if line[1] in names}
    for value in largest:
        first, last = ("" if n is None or n >= len(order) else order[n] for n in (value.start, value.end))
        made = parse_instruction(lines.get(value.name, ""))
        source = "" if made is None else locations.of(made.attributes)
        # Of an argument it is the user's name of it: ``params['w'][0]``.
        is_named = value.kind == "argument" and source and not {*source} & {*"/:"}
        name = source if is_named else value.name
        yield LiveBuffer(name, value.kind, value.shape, value.bytes, source, first=first, last=last)


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _BINARY[unit])


def _four_digits(count: int) -> str:
    """``15.75 GiB``: compilers' limits have four digits."""
    unit, size = next((pair for pair in (("GiB", GIB), ("MiB", 2**20)) if count >= pair[1]), ("KiB", 2**10))
    return f"{count / size:,.4g} {unit}"
