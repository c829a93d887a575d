"""Timelines against an event simulation: every run of every loop, one event after the other, in fractions.

The simulation shares no code with the engine. It is slow, and knows nothing but the rules: the device does
one thing after the other; a transfer begins when the links that it needs are free, first come, first served;
the longest branch counts. Sizes are such that every time is a whole number of eighths of a nanosecond: links
carry a byte in a nanosecond and have no latency, as does HBM, and a cycle is a nanosecond.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest

from shardviz.hardware.links import LinkSpec
from shardviz.hardware.machine import assumed_machine
from shardviz.sharding import Mesh
from shardviz.timeline.of_program import timed_program
from shardviz.timeline.program_timeline import ProgramTimeline
from shardviz.timeline.unrolled import unrolled

MESH = Mesh(("X", "Y"), (4, 2))
PROGRAMS, MORE = 15, 90
GATHERS = {
    ("X",): "{{0,2,4,6},{1,3,5,7}}",
    ("Y",): "{{0,1},{2,3},{4,5},{6,7}}",
    ("X", "Y"): "{{0,1,2,3,4,5,6,7}}",
}
"""Groups of a mesh X=4, Y=2 along its axes."""
SHIFTS = {
    1: "{{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}",
    -1: "{{2,0},{4,2},{6,4},{0,6},{3,1},{5,3},{7,5},{1,7}}",
}
"""Permutes along X, to the next place and to the one before."""


@dataclass
class Work:
    """The device computes for so many cycles."""

    name: str
    cycles: int


@dataclass
class Transfer:
    """A collective, or a copy ("copy"), of so many bytes; `shift` of a permute. A `Done` ends it if async."""

    name: str
    op: str
    axes: tuple[str, ...]
    bytes: int
    is_async: bool
    shift: int = 0


@dataclass
class Done:
    """The device waits for the transfer of this name; "^" for the one that the loop's state carries."""

    name: str


@dataclass
class Repeat:
    """A loop. With `carries` each iteration waits for the permute before and begins the next at its end."""

    name: str
    count: int
    body: list[Part]
    carries: Transfer | None = None


@dataclass
class Choice:
    """A conditional."""

    name: str
    branches: list[list[Part]]


@dataclass
class Call:
    """A computation that is called."""

    name: str
    body: list[Part]


Part = Work | Transfer | Done | Repeat | Choice | Call


@dataclass
class Maker:
    """Makes one program; all names in it differ."""

    random: Random
    depth: int = 3
    names: int = 0
    computations: list[str] = field(default_factory=list)

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}.{self.names}"

    def parts(self, depth: int = 0) -> list[Part]:
        found: list[Part] = []
        under_way: list[str] = []
        for _ in range(self.random.randint(1, 7)):
            kind = self.random.random()
            if kind < 0.4:
                found.append(Work(self.name("work"), self.random.randint(1, 5000)))
            elif kind < 0.75:
                transfer = self.transfer()
                found.append(transfer)
                if transfer.is_async:
                    under_way.append(transfer.name)
            elif depth < self.depth:
                found.append(self.nested(depth))
            if under_way and self.random.random() < 0.4:
                found.append(Done(under_way.pop(self.random.randrange(len(under_way)))))
        self.random.shuffle(under_way)
        return found + [Done(name) for name in under_way]

    def nested(self, depth: int) -> Part:
        kind = self.random.choice(("loop", "loop", "carrying", "choice", "call"))
        if kind == "choice":
            branches = [self.parts(depth + 1) for _ in range(self.random.randint(2, 3))]
            return Choice(self.name("conditional"), branches)
        if kind == "call":
            return Call(self.name("call"), self.parts(depth + 1))
        count = self.random.choice((1, 2, 3, 9 if depth else 40))
        if kind == "loop":
            return Repeat(self.name("while"), count, self.parts(depth + 1))
        carried = Transfer(
            self.name("collective-permute-start"),
            "collective-permute",
            ("X",),
            4 * self.random.randint(1, 2000),
            True,
            self.random.choice((1, -1)),
        )
        body: list[Part] = [*self.parts(depth + 1), Done("^"), *self.parts(depth + 1)]
        return Repeat(self.name("while"), count, body, carried)

    def transfer(self) -> Transfer:
        is_async = self.random.random() < 0.6
        op = self.random.choice(("all-gather", "all-reduce", "collective-permute", "copy"))
        suffix = "-start" if is_async or op == "copy" else ""
        if op == "copy":
            return Transfer(self.name("copy-start"), op, (), 4 * self.random.randint(1, 3000), True)
        if op == "collective-permute":
            shift = self.random.choice((1, -1))
            size = 4 * self.random.randint(1, 2000)
            return Transfer(self.name(op + suffix), op, ("X",), size, is_async, shift)
        axes = self.random.choice(tuple(GATHERS))
        return Transfer(self.name(op + suffix), op, axes, 96 * self.random.randint(1, 80), is_async)


def text_of(parts: list[Part], maker: Maker) -> str:
    """The HLO text of a program."""
    maker.computations = []
    entry = _computation("ENTRY %main", parts, maker, None)
    head = "HloModule random, is_scheduled=true, num_partitions=8\n"
    work = "%work (p: f32[1]) -> f32[1] {\n  %p = f32[1]{0} parameter(0)\n  ROOT %q = f32[1]{0} negate(%p)\n}"
    add = "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    add += "  ROOT %s = f32[] add(%a, %b)\n}"
    false = "%done (c: f32[1]) -> pred[] {\n  %c = f32[1]{0:S(1)} parameter(0)\n"
    false += "  ROOT %f = pred[] constant(false)\n}"
    return "\n\n".join([head, work, add, false, *maker.computations, entry]) + "\n"


def _computation(head: str, parts: list[Part], maker: Maker, carries: Transfer | None) -> str:
    """A computation. Its parameter is (an array on the chip, what is carried if anything)."""
    lines = []
    state = "f32[1]{0:S(1)}"
    if carries is None:
        lines.append(f"%x = {state} parameter(0)")
    else:
        lines.append(f"%s = ({state}, {_shape(carries)}) parameter(0)")
        lines.append(f"%x = {state} get-tuple-element(%s), index=0")
        lines.append(f"%carried = {_shape(carries)} get-tuple-element(%s), index=1")
    for part in parts:
        _line(part, lines, maker)
    if carries is None:
        lines.append(f"ROOT %r = {state} bitcast(%x)")
    else:
        lines.append(_start(carries, carries.name, "x"))
        lines.append(f"ROOT %r = ({state}, {_shape(carries)}) tuple(%x, %{carries.name})")
    return f"{head} (x: f32[1]) -> f32[1] {{\n" + "\n".join(f"  {line}" for line in lines) + "\n}"


def _line(part: Part, lines: list[str], maker: Maker) -> None:
    state = "f32[1]{0:S(1)}"
    if isinstance(part, Work):
        config = f'backend_config={{"window_config":{{"estimated_cycles":"{part.cycles}"}}}}'
        lines.append(f"%{part.name} = {state} fusion(%x), kind=kLoop, calls=%work, {config}")
    elif isinstance(part, Transfer):
        lines.append(_start(part, part.name, "x"))
    elif isinstance(part, Done):
        name = "carried" if part.name == "^" else part.name
        op = part.name.split("-start")[0] if part.name != "^" else "collective-permute"
        lines.append(f"%{maker.name(op + '-done')} = f32[1]{{0}} {op}-done(%{name})")
    elif isinstance(part, Repeat):
        body = maker.name("body")
        maker.computations.append(_computation(f"%{body}", part.body, maker, part.carries))
        config = f'backend_config={{"known_trip_count":{{"n":"{part.count}"}}}}'
        if part.carries is None:
            lines.append(f"%{part.name} = {state} while(%x), condition=%done, body=%{body}, {config}")
            return
        first, shape = f"{part.carries.name}.first", _shape(part.carries)
        lines.append(_start(part.carries, first, "x"))
        lines.append(f"%{part.name}.t = ({state}, {shape}) tuple(%x, %{first})")
        lines.append(
            f"%{part.name} = ({state}, {shape}) while(%{part.name}.t), condition=%done, "
            f"body=%{body}, {config}"
        )
        lines.append(f"%{part.name}.g = {shape} get-tuple-element(%{part.name}), index=1")
        lines.append(f"%{part.name}.d = f32[1]{{0}} collective-permute-done(%{part.name}.g)")
    elif isinstance(part, Choice):
        names = [maker.name("branch") for _ in part.branches]
        for name, branch in zip(names, part.branches, strict=True):
            maker.computations.append(_computation(f"%{name}", branch, maker, None))
        called = ", ".join(f"%{name}" for name in names)
        given = ", ".join("%x" for _ in names)
        lines.append(f"%{part.name} = {state} conditional(%x, {given}), branch_computations={{{called}}}")
    else:
        name = maker.name("called")
        maker.computations.append(_computation(f"%{name}", part.body, maker, None))
        lines.append(f"%{part.name} = {state} call(%x), to_apply=%{name}")


def _shape(part: Transfer) -> str:
    array = f"f32[{part.bytes // 4}]{{0}}"
    if part.op == "copy":
        return f"(f32[{part.bytes // 4}]{{0:S(1)}}, {array}, u32[])"
    if not part.is_async or part.op == "all-reduce":
        return array
    given = f"f32[{part.bytes // 4 // _members(part)}]{{0}}" if part.op == "all-gather" else array
    return f"({given}, {array})"


def _members(part: Transfer) -> int:
    return {("X",): 4, ("Y",): 2, ("X", "Y"): 8}[part.axes]


def _start(part: Transfer, name: str, operand: str) -> str:
    if part.op == "copy":
        return f"%{name} = {_shape(part)} copy-start(%{operand})"
    suffix = "-start" if part.is_async else ""
    line = f"%{name} = {_shape(part)} {part.op}{suffix}(%{operand}), channel_id=1"
    if part.op == "collective-permute":
        return f"{line}, source_target_pairs={SHIFTS[part.shift]}"
    line += f", replica_groups={GATHERS[part.axes]}, use_global_device_ids=true"
    return f"{line}, dimensions={{0}}" if part.op == "all-gather" else f"{line}, to_apply=%add"


def nanoseconds(part: Transfer) -> Fraction:
    """The time of a transfer, by hand: X is a ring of 4 with two directions, Y a pair with one link."""
    size = Fraction(part.bytes)
    if part.op in ("copy", "collective-permute"):
        return size
    once = {
        ("X",): size * 3 / 4 / 2,
        ("Y",): size / 2,
        ("X", "Y"): size * 7 / 8 / 3,
    }[part.axes]
    return 2 * once if part.op == "all-reduce" else once


def links(part: Transfer) -> list[str]:
    if part.op == "copy":
        return ["HBM"]
    if part.op == "collective-permute":
        return ["X up" if part.shift == 1 else "X down"]
    return [f"{axis} {way}" for axis in part.axes for way in ("up", "down")]


def lane(part: Transfer) -> str:
    return "HBM copies" if part.op == "copy" else ", ".join(part.axes)


@dataclass
class Events:
    """All that has happened. Of each name the (start, end) of all runs, and how long each was waited for."""

    now: Fraction = Fraction(0)
    free: dict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    runs: dict[str, list[tuple[Fraction, Fraction]]] = field(default_factory=lambda: defaultdict(list))
    waited: dict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    busy: dict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    ends: dict[str, tuple[Fraction, str]] = field(default_factory=dict)

    def begin(self, part: Transfer, name: str) -> None:
        start = max([self.now, *(self.free[link] for link in links(part))])
        end = start + nanoseconds(part)
        for link in links(part):
            self.free[link] = end
        self.busy[lane(part)] += nanoseconds(part)
        self.runs[name].append((start, end))
        self.ends[name] = end, lane(part)
        if not part.is_async:
            self.end(name)

    def end(self, name: str) -> None:
        end, where = self.ends[name]
        self.waited[where] += max(Fraction(0), end - self.now)
        self.now = max(self.now, end)

    def run(self, parts: list[Part], carried: str = "") -> None:
        for part in parts:
            if isinstance(part, Work):
                self.runs[part.name].append((self.now, self.now + part.cycles))
                self.busy["compute"] += part.cycles
                self.now += part.cycles
            elif isinstance(part, Transfer):
                self.begin(part, part.name)
            elif isinstance(part, Done):
                self.end(carried if part.name == "^" else part.name)
            elif isinstance(part, Call):
                self.run(part.body)
            elif isinstance(part, Choice):
                tried = []
                for branch in part.branches:
                    other = deepcopy(self)
                    other.run(branch)
                    tried.append(other)
                longest = max(tried, key=lambda each: each.now)
                self.__dict__.update(longest.__dict__)
            elif isinstance(part, Repeat):
                self.loop(part)

    def loop(self, part: Repeat) -> None:
        if part.carries is None:
            for _ in range(part.count):
                self.run(part.body)
            return
        name = f"{part.carries.name}.first"
        self.begin(part.carries, name)
        for _ in range(part.count):
            self.run(part.body, name)
            name = part.carries.name
            self.begin(part.carries, name)
        self.end(name)


def simulated(parts: list[Part]) -> Events:
    events = Events()
    events.run(parts)
    return events


def timeline(text: str) -> ProgramTimeline:
    assumed = assumed_machine()
    device = replace(assumed.device, clock=1e9, hbm_bandwidth=1e9)
    family = assumed.family.with_links({"ring": LinkSpec(0.0, 1e9)})
    machine = replace(assumed, family=family, device=device)
    return timed_program(text, machine, mesh=MESH)[1]


def exact(seconds: float) -> Fraction:
    """Seconds as nanoseconds; times here are multiples of 1/8 of one."""
    return Fraction(round(seconds * 8e9), 8)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed):
    check(seed)


@pytest.mark.slow
def test_more_random_programs():
    for seed in range(PROGRAMS, MORE):
        check(seed)


def check(seed: int) -> None:
    maker = Maker(Random(seed))
    parts = maker.parts()
    expected, found = simulated(parts), timeline(text_of(parts, maker))
    assert found.unknown == ()
    assert exact(found.seconds) == expected.now
    assert exact(found.compute_seconds) == expected.busy["compute"]
    busy = {name: exact(seconds) for name, seconds in found.communication_seconds}
    assert busy == {name: took for name, took in expected.busy.items() if took and name != "compute"}
    exposed = {name: exact(seconds) for name, seconds in found.exposed_seconds if seconds}
    assert exposed == {name: took for name, took in expected.waited.items() if took}
    total = found.compute_seconds + sum(seconds for _, seconds in found.exposed_seconds)
    assert total == pytest.approx(found.seconds)
    check_runs(found, expected)
    if {span.kind for span in found.spans} <= {"call"}:
        check_starts(found, expected)
    check_drawing(found)
    check_unrolled(unrolled(found, 10**6), expected)


def check_runs(found: ProgramTimeline, expected: Events) -> None:
    """Every operation runs as often as it did, in a branch that is not taken not at all."""
    assert {op.name: op.runs for op in found.ops if op.runs} == {
        name: len(runs) for name, runs in expected.runs.items()
    }


def check_starts(found: ProgramTimeline, expected: Events) -> None:
    assert {op.name: (exact(op.start), exact(op.end)) for op in found.ops} == {
        name: run for name, (run,) in expected.runs.items()
    }


def check_drawing(found: ProgramTimeline) -> None:
    """On the drawn clock nothing lies outside of it, the device does one thing at a time, spans nest."""
    starts = [op.start for op in found.ops]
    assert starts == sorted(starts)
    assert all(0 <= op.start <= op.end <= found.drawn_seconds * (1 + 1e-12) for op in found.ops)
    compute = [op for op in found.ops if found.lanes[op.lane].kind == "compute"]
    for before, after in pairwise(compute):
        assert before.end <= after.start + 1e-15
    for span in found.spans:
        around = [
            other
            for other in found.spans
            if other.depth < span.depth and other.start <= span.start and span.end <= other.end
        ]
        assert len({other.depth for other in around}) == span.depth
    path = [found.ops[number] for number in found.critical_path]
    for before, after in pairwise(path):
        assert before.start <= after.start


def check_unrolled(found: ProgramTimeline, expected: Events) -> None:
    """With all runs of its loops a timeline ends when the program does, and has each run once."""
    assert exact(found.drawn_seconds) == expected.now
    if found.ops:
        assert exact(max(each.end for each in (*found.ops, *found.spans))) == expected.now
    if any(span.kind != "call" for span in found.spans):
        assert Counter(op.name for op in found.ops) == {
            name: len(runs) for name, runs in expected.runs.items()
        }
    compute = [op for op in found.ops if found.lanes[op.lane].kind == "compute"]
    for before, after in pairwise(compute):
        assert before.end <= after.start + 1e-13


def test_the_simulation_can_disagree():
    """The proof can fail: a program of other work has other times."""
    parts: list[Part] = [Work("work.1", 100), Transfer("all-gather.2", "all-gather", ("X",), 96, False)]
    found = timeline(text_of(parts, Maker(Random(0))))
    parts[0] = Work("work.1", 101)
    assert exact(found.seconds) == simulated(parts).now - 1
