"""Failures by the logs of XLA and libtpu: memory that a device did not have, with the largest arrays, and
devices that wait for others at a collective."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import starmap

from shardviz.hlo.collective import Collective
from shardviz.hlo.text.source_locations import SourceLocations
from shardviz.units import human_bytes

MARKS = ("ut of memory", "would exceed memory", "That was not possible", "Failed to allocate request")
"""A log of such a failure has one of them."""
_SIZE = r"(\d[\d,]*(?:\.\d+)?) ?([KMGTP]?)(?:iB|B)?\b"
_ASKED = (
    ("the program needs", "HBM", rf"memory space hbm\. Used {_SIZE} of {_SIZE}"),
    ("the program's temporaries need", "HBM", rf"\({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    ("a kernel needs", "on-chip memory", rf"stack for .*?size {_SIZE} and limit {_SIZE} exceeded"),
    ("an allocation asks for", "", rf"Attempting to (?:allocate|reserve) {_SIZE}.*?There are {_SIZE} free"),
    ("an allocation asks for", "HBM", rf"Allocation \(size={_SIZE}\) would exceed memory \(size={_SIZE}\)"),
    (
        "an allocation asks for",
        "",
        rf"ut of memory (?:(?:while )?trying to allocate|allocating) {_SIZE}(?!.*not a failure)",
    ),
    ("an allocation asks for", "", rf"Failed to allocate request for {_SIZE}"),
)
"""The sentences of a failure, with the bytes that were wanted and those that there were."""
_ARRAY = re.compile(rf"\bSize: {_SIZE}(.*?)(?:====|(?=\bSize: )|\Z)", re.DOTALL)
_SHAPE = re.compile(r"(?:\b(?:Shape|Subshape): |shape = '|stack for %\S+ = )([a-z]\w*\[[\d,]*\])")
_NAME = re.compile(r"(?:\bXLA [Ll]abel: (?:ROOT )?%?|tag = '(?:output of )?|stack for %)([\w.-]+)")
_PADDING = re.compile(rf"due to padding: {_SIZE}")
_OPERANDS = re.compile(r"(/[\w-]+)\[.*", re.DOTALL)
"""JAX's parameters of an operation, behind its name in old versions."""


@dataclass(frozen=True)
class LargeArray:
    """An array of a program that found no memory: JAX's name of its operation, else XLA's; its type as XLA
    writes it, the `padding_bytes` among its `bytes`, and the user's line, or ""."""

    name: str
    shape: str
    bytes: int
    padding_bytes: int = 0
    source: str = ""


@dataclass(frozen=True)
class OutOfMemory:
    """A failure: the program, its temporaries, a kernel or an allocation wanted some bytes of a `memory`, of
    which a device had, or had left, `found_bytes`, None where the log is silent; the largest arrays first."""

    asked: str
    wanted_bytes: int
    found_bytes: int | None = None
    memory: str = ""
    arrays: tuple[LargeArray, ...] = ()

    @property
    def words(self) -> str:
        """``the program needs 63.8 GiB of HBM, and a device has 30.8 GiB: 33.1 GiB too much``."""
        of = f" of {self.memory}" if self.memory else ""
        said = f"{self.asked} {human_bytes(self.wanted_bytes)}{of}"
        if self.found_bytes is None:
            return f"{said}, and the device does not have it"
        over = self.wanted_bytes - self.found_bytes
        what = f"{human_bytes(over)} too much" if over > 0 else "not in one piece"
        verb = "a device has" if self.memory else "the device has left"
        return f"{said}, and {verb} {human_bytes(self.found_bytes)}: {what}"


def out_of_memory(log: str, text: str = "") -> tuple[OutOfMemory, ...]:
    """The failures of a log, each once. `text` is HLO whose tables tell source lines."""
    failures = sorted(
        ((match, asked, memory) for asked, memory, pattern in _ASKED for match in re.finditer(pattern, log)),
        key=lambda each: each[0].start(),
    )
    ends = [match.start() for match, *_ in failures[1:]] + [len(log)]
    in_use = re.findall(r"\bLimit:\s+(\d+)\s.*?\bInUse:\s+(\d+)\s", log, re.DOTALL)  # of a GPU's allocator
    left = [int(limit) - int(used) for limit, used in in_use]
    locations = SourceLocations(text)
    told: dict[tuple[str, str], OutOfMemory] = {}
    for (match, asked, memory), end in zip(failures, ends, strict=False):
        wanted, *known = starmap(_bytes, zip(*[iter(match.groups())] * 2, strict=True))
        arrays = sorted(_arrays(log[match.start() : end], wanted, locations), key=lambda one: -one.bytes)
        failure = OutOfMemory(asked, wanted, min(known or left, default=None), memory, tuple(arrays))
        # An exception is printed again where it is raised again.
        if (key := (asked, human_bytes(wanted))) not in told or len(told[key].arrays) < len(arrays):
            told[key] = failure
    return tuple(told.values())


def _arrays(log: str, wanted: int, locations: SourceLocations) -> Iterator[LargeArray]:
    """The arrays that a failure lists, or the one that its allocation is for."""
    listed = [(_bytes(*match.groups()[:2]), match[3]) for match in _ARRAY.finditer(log)]
    for size, block in listed or [(wanted, log.partition("\n")[0])]:
        shape, name, padding = _SHAPE.search(block), _NAME.search(block), _PADDING.search(block)
        if shape is None:
            continue
        metadata = metadata_in(block)
        own = _OPERANDS.sub(r"\1", metadata.get("op_name", "")).replace("\\'", "'")
        source = locations.of(metadata)
        yield LargeArray(
            own or (name[1] if name else "an argument" if "Parameter" in block else ""),
            shape[1],
            size,
            _bytes(*padding.groups()) if padding else 0,
            source if source != metadata.get("op_name") else "",
        )


def metadata_in(text: str) -> dict[str, str]:
    """The metadata of an operation, as XLA prints it: its name, and the place in the user's program."""
    found = re.findall(r'\b(op_name|source_file|source_line|stack_frame_id)=("(?:[^"\\]|\\.)*"|\d+)', text)
    return {key: value.strip('"') for key, value in found}


def _bytes(number: str, unit: str) -> int:
    power = " KMGTP".index(unit or " ")
    return int(float(number.replace(",", "")) * 2.0 ** (10 * power))


STUCK = "threads to join the rendezvous"
_WARNING = re.compile(
    r"(?:\[id=(?P<place>\d+)\] )?(?P<kind>This thread has been waiting for|Termination timeout for)"
    r" `(?P<name>.*?)` (?:for|of) (?P<seconds>\d+) seconds.*?Expected (?P<expected>\d+) "
    + STUCK
    + r"(?:, but only (?P<arrived>\d+))?"
)
_RANK = re.compile(r" for rank (\d+)")


def stuck_collectives(log: str, text: str = "", collectives: Iterable[Collective] = ()) -> tuple[str, ...]:
    """A sentence for each collective to which some devices have not come: each thread that waits has warned,
    by the place in which it came, or by its rank, or by neither; before XLA ends the process it may say how
    many came. `text` is the HLO of the program with the `collectives`."""
    warned: dict[str, list[re.Match[str]]] = {}
    for match in _WARNING.finditer(log):
        warned.setdefault(_RANK.sub("", match["name"]), []).append(match)
    sources = {one.name: f", {one.source}" for one in collectives if one.source}
    said = []
    for name, matches in warned.items():
        ranks = sorted({int(rank) for warning in matches for rank in _RANK.findall(warning["name"])})
        threads = Counter(warning["kind"] for warning in matches if not warning["place"]).values()
        places = {warning["place"] for warning in matches if warning["place"]}
        arrived = (int(warning["arrived"] or 0) for warning in matches)
        waiting = max(*arrived, len(ranks) or max(threads, default=0), len(places))
        which = f" (ranks {', '.join(map(str, ranks))})" if ranks else ""
        channel = re.search(r"op[_ ]id[=:](\d+)", name)
        line = channel and re.search(rf"([\w.-]+) = .*channel_id={channel[1]}\b", text)
        at = re.split(" RendezvousKey|;", name.removeprefix("rendezvous of "))[0]
        at += sources.get(line[1], "") if line else ""
        seconds = max(int(warning["seconds"]) for warning in matches)
        said.append(
            f"{waiting} of {matches[0]['expected']} devices{which} wait for the others at {at}: {seconds} s"
        )
    return tuple(said)
