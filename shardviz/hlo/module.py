"""HLO text → its collectives, with how often each runs and along which mesh axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from shardviz.errors import NotationError, QuestionError, plural, quote
from shardviz.garbage import uncollected
from shardviz.hlo.arguments import Origins, arguments_in
from shardviz.hlo.collective import Collective, CollectiveMatmul
from shardviz.hlo.collective_matmuls import collective_matmuls
from shardviz.hlo.device_numbers import DeviceNumbers, program_mesh, slice_positions, written_meshes
from shardviz.hlo.gradients import gradient_uses, gradients
from shardviz.hlo.named_scopes import NamelessCollectives
from shardviz.hlo.overlap import Schedules
from shardviz.hlo.records import Records
from shardviz.hlo.text.call_graph import Call, CallGraph, program_order, run_counts
from shardviz.hlo.text.cross_slice import cross_slice_transfers, slices_named
from shardviz.hlo.text.instruction import Computation, Instruction, line_at
from shardviz.hlo.text.instructions import NOTABLE, Instructions
from shardviz.hlo.text.opcodes import BRANCHES, COMMUNICATING
from shardviz.hlo.text.source_locations import SourceLocations
from shardviz.hlo.text.values import Values
from shardviz.sharding import Mesh

MAX_UNREAD = 100
"""Complaints about one text, at most."""
MAX_WRAPPERS = 8
"""Fusions within one another that are asked where a collective comes from."""

_PLACES = frozenset(("stack_frame_id", "source_file"))
_SHARDING, _WRITTEN_MESH = " sharding={", " sharding={mesh["
_MODULE = re.compile(r"HloModule\s+([^\s,]+)")
_HEADER_NUMBER = re.compile(r"\b(num_partitions|replica_count)=(\d{1,12})")
_INSTRUCTION = re.compile(r"^[ \t]*+(?:ROOT )?%?[\w.-]++ = \(?[a-z][a-z0-9]*\[", re.MULTILINE)
_ANY_INSTRUCTION = re.compile(r"^[ \t]*+(?:ROOT )?%?[^\s=,(){}]++ = [a-z(]", re.MULTILINE)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?')
_QUOTE = re.compile(r'(?<!\\)"')
_RUNNING = {" while(": ("body",), " conditional(": BRANCHES, " async-start(": ("calls",)}
"""Opcodes that run other computations, and the attributes that name those."""
_METADATA = re.compile(
    r'[ {](stack_frame_id|source_file|source_line|op_name)=(?:"((?:[^"\\\n]|\\.)*+)"|(\d{1,9}))'
)
"""A place in the user's program."""
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True)
class HloModule:
    """A module and its collectives in program order, each once with its `count`.

    With `is_scheduled` that order is the schedule. `unread` says, a sentence each, what of the text could
    not be read, and `unread_collectives` counts the collectives among that. `awaits_partitioner` tells that
    this is the program before XLA's partitioner, which inserts most collectives. A text of a program on
    several TPU slices is that of one slice: `num_slices` of them run it, with `num_partitions` each. `mesh`
    is the one that was given, its devices in the order in which the text has them, or inferred. Where the
    text has them in several (`mesh_orders`), only axes that a collective's groups name are known.
    `unknown_loops` are the while instructions with collectives whose number of runs the text does not tell.
    Of one that was read with origins `index` has the instructions, and `lines` that of each collective: what
    else is asked of where values come from is looked up when it is first asked for."""

    name: str
    num_partitions: int
    replica_count: int
    is_scheduled: bool
    collectives: tuple[Collective, ...]
    unread: tuple[str, ...] = ()
    num_slices: int = 1
    mesh: Mesh | None = None
    unread_collectives: int = 0
    awaits_partitioner: bool = False
    mesh_orders: int = 1
    unknown_loops: tuple[str, ...] = ()
    index: Instructions | None = field(default=None, repr=False, compare=False)
    lines: Sequence[Instruction] = field(default=(), repr=False, compare=False)
    find_matmuls: Callable[[], tuple[CollectiveMatmul, ...]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def collective_matmuls(self) -> tuple[CollectiveMatmul, ...]:
        """The collective matmuls, whose permutes are also among the `collectives`."""
        return self.find_matmuls()

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """The paths of the program's arguments by their numbers."""
        arguments = arguments_in(self.index) if self.index else ()
        paths = {argument.number: argument.path for argument in arguments}
        return tuple(paths.get(number, "") for number in range(max(paths, default=-1) + 1))

    @cached_property
    def gradients(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers of the arguments whose gradients each collective sums, by its name, if certain."""
        with uncollected():
            return gradients(Values(self.index), self.argument_names) if self.index else {}

    @cached_property
    def gradient_uses(self) -> frozenset[str]:
        """The names of the collectives outside of what is differentiated that move what gradients make."""
        with uncollected():
            pairs = zip(self.collectives, self.lines, strict=True)
            return gradient_uses(Values(self.index), pairs) if self.index else frozenset()


def is_hlo(text: str) -> bool:
    """Return whether a text looks like HLO: a module's header, or at least an instruction."""
    return _MODULE.search(text) is not None or _INSTRUCTION.search(text) is not None


@uncollected()
def read_hlo(
    text: str,
    mesh: Mesh | None = None,
    *,
    infer: bool = False,
    origins: bool = False,
    slices: Sequence[int] | None = None,
) -> HloModule:
    """The collectives in HLO text as XLA prints it, before or after any pass.

    With a `mesh`, each collective gets the axes that its groups follow, and its groups are ids of that mesh's
    devices (`Mesh.device_order`); without one they are XLA's own numbers, positions in the module's device
    assignment. `infer` asks for the coarsest mesh that explains the groups where none is given. A collective
    in a loop counts as often as the loop is known to run, in a called computation once for each call, in a
    branch of a conditional once (`in_branch`). A start and its done are one.

    `origins` asks where each operand comes from, which takes longer. Of a program on several TPU slices the
    text is that of one slice; the mesh is that of all, and `slices` says on which slice each of its positions
    is (by default they follow one another). Of damaged text `HloModule.unread` tells what cannot be read.
    Raises `NotationError` for text that is not HLO, `QuestionError` for a mesh of other devices."""
    return Reader(text, mesh, slices).read(infer=infer, origins=origins)


class Reader:
    """One reading of one text, with the index of it; raises what `read_hlo` raises."""

    def __init__(self, text: str, mesh: Mesh | None, slices: Sequence[int] | None) -> None:
        if not is_hlo(text):
            hint = "HLO begins with HloModule; print one with compiled.as_text()"
            raise NotationError("this is not HLO text", text, 0, hint=hint)
        self.lines, written_text = Instructions(text), text
        self.text = text = self.lines.text
        self.computations = self.lines.computations
        self.values = Values(self.lines)
        self.calls = CallGraph(self.values)
        self.mesh = mesh
        self.unread: list[str] = []
        self.unread_collectives = 0
        notable = self.computations.notable
        self._running = [position for position, mark in notable.items() if mark in _RUNNING]
        self._places: dict[str, dict[str, str]] = {}
        self.collectives = self._collectives()
        module = _module(text)
        start, stop = line_at(text, module.start()) if module else (0, 0)
        self.header = text[start:stop]
        self.name = module[1] if module else ""
        unquoted = _STRING.sub("", self.header)
        self.is_scheduled = "is_scheduled=true" in unquoted
        written = {key: int(number) for key, number in reversed(_HEADER_NUMBER.findall(unquoted))}
        partitions, replicas = written.get("num_partitions") or 1, written.get("replica_count") or 1
        if module is None and mesh is not None:
            partitions = mesh.size
        self.transfers, self._recvs = cross_slice_transfers(self.collectives)
        self.num_slices = slices_named(self.transfers.values()) if slices is None else len(set(slices))
        if mesh is not None and mesh.size == partitions * replicas:
            self.num_slices = 1
        self._sharding = next((at for at, mark in notable.items() if mark == _WRITTEN_MESH), -1)
        positions = None
        if self.num_slices > 1:
            if slices is None and mesh is not None and mesh.device_order is not None:
                slices = [device // (partitions * replicas) for device in mesh.device_order]
            positions = slice_positions(self.num_slices, partitions * replicas, slices)
        self.numbers = DeviceNumbers(partitions, replicas, positions, any(written.values()))
        if self.computations.entry is None and _ANY_INSTRUCTION.search(text) is None:
            problem = "this HLO has no instruction on a line of its own"
            hint = "save compiled.as_text() with its line ends, all of it"
            raise NotationError(problem, written_text, 0, hint=hint)

    def read(self, *, infer: bool = False, origins: bool = False) -> HloModule:
        """The module, as `read_hlo` returns it."""
        devices = self.numbers.total
        if self.mesh is not None and devices > 1 and self.mesh.size != devices:
            raise QuestionError(
                f"{quote(self.name)} runs on {devices} devices, the mesh {self.mesh} has {self.mesh.size}",
                f"give a mesh of {devices} devices",
            )
        unlike = {line.form: line for lines in self.collectives.values() for line in lines}.values()
        written = written_meshes(self.header, self.text, self._sharding)
        self.mesh, self.numbers = program_mesh(written, unlike, self.numbers, self.mesh, infer=infer)
        calls = self.calls.calls_to(self.collectives)
        roots = self._roots(calls)
        counts, chosen = run_counts(roots, calls)
        placed = {home.start: lines for home, lines in self.collectives.items()}
        in_order = program_order(roots, calls, placed, lambda line: line.start)
        records = self.found = [*self._records(in_order, counts, chosen, origins)]
        self._note_gaps(counts)
        permutes = [
            (record, line)
            for record, line in records
            if record.op == "collective-permute" and not record.between_slices
        ]
        lengthless = (self.lines.at(call.position) for call in calls if call.times is None)
        entry = self.computations.entry
        # The partitioner calls what it makes of an entry ``main_spmd``, and leaves shardings at its ends.
        is_partitioned = self.is_scheduled or entry is None or "_spmd" in entry.name
        is_sharded = any(mark.startswith(_SHARDING) for mark in self.computations.notable.values())
        return HloModule(
            self.name,
            self.numbers.partitions,
            self.numbers.replicas,
            self.is_scheduled,
            tuple(record for record, _ in records),
            tuple(self.unread[:MAX_UNREAD]),
            unread_collectives=self.unread_collectives,
            awaits_partitioner=is_sharded and not is_partitioned,
            find_matmuls=partial(collective_matmuls, permutes, self.values, calls),
            num_slices=self.num_slices,
            mesh=self.mesh,
            mesh_orders=self.numbers.orders,
            unknown_loops=tuple(dict.fromkeys(loop.name for loop in lengthless if loop is not None)),
            index=self.lines if origins else None,
            lines=[line for _, line in records] if origins else (),
        )

    def _roots(self, calls: Iterable[Call]) -> dict[int, int | None]:
        """The runs of the computations with which the program begins, None where they are not known."""
        entry, called = self.computations.entry, {call.callee for call in calls}
        lacks_callers = entry is None or self.computations.breaks_off() is not None
        roots: dict[int, int | None] = {}
        callers = {call.caller: self.computations.around(call.position) for call in calls}.values()
        for home in sorted({*self.collectives, *callers}, key=lambda home: home.start):
            if home.is_entry or not home.name:
                roots[home.start] = 1
            elif home.start not in called and lacks_callers:
                roots[home.start] = 1 if not self.header and entry is None else None
        return roots

    def _records(
        self,
        in_order: Iterable[tuple[int, Sequence[Instruction]]],
        counts: Mapping[int, int | None],
        chosen: Collection[int],
        has_origins: bool,
    ) -> Iterator[tuple[Collective, Instruction]]:
        """The collectives `in_order` with their lines; with origins, nameless ones get places they serve."""
        records = Records(self.lines, self.numbers, self.mesh)
        schedules = Schedules(self.lines, self.collectives)
        repeated = schedules.repeated | self._recvs
        alike: dict[tuple[object, ...], Collective] = {}
        origins = Origins(self.values.moved, self.values.how)
        nameless = NamelessCollectives(self.values, self.transfers.values())
        for start, lines in in_order:
            runs = counts.get(start, 0), start in chosen
            for line in lines:
                if line.start in repeated:
                    continue
                transfer = self.transfers.get(line.start)
                written = line.written_operands and (start, line.written_operands)
                key = line.form, runs, self.lines.site(line.home), line in schedules.dones, written, transfer
                shared = alike.get(key)
                if shared is None:
                    try:
                        shared = records.of(line, transfer)
                    except NotationError as error:
                        self._complain(line.start, f"{quote(line.name)} cannot be read: {error.message}")
                        continue
                    is_async, algorithm = schedules.of(line, transfer)
                    shared = alike[key] = shared.having(
                        count=runs[0],
                        in_branch=runs[1],
                        **self._place(line),
                        is_async=is_async,
                        algorithm=algorithm,
                    )
                beside = schedules.beside(line, transfer) if shared.is_async else ()
                fields: dict[str, object] = {"name": line.name, "overlapped": beside}
                if has_origins:
                    fields["origin"] = origins.of(self.values.taken(line))
                if has_origins and "/" not in shared.op_name and ":" not in shared.source:
                    # What all operations have for which it is; of one with an argument's name, as XLA of jax
                    # 0.12 gives it, the first, those of the forward pass before others.
                    served = sorted(nameless.served(shared.op, line), key=lambda each: each.start)
                    places = [self._metadata(each) for each in served]
                    if shared.op_name:
                        places.sort(key=lambda metadata: "transpose(" in metadata.get("op_name", ""))
                        del places[1:]
                    words = ({metadata.get(key, "") for metadata in places} for key in ("source", "op_name"))
                    source, op_name = (word.pop() if len(word) == 1 else "" for word in words)
                    fields |= {"source": source, "op_name": op_name} if ":" in source else {}
                yield shared.having(**fields), line

    def _collectives(self) -> dict[Computation, list[Instruction]]:
        """The lines of each computation whose own opcode is a collective's, in the order of the text."""
        text, stop = self.text, 0
        last_line = text.rfind("\n") + 1 if self.computations.breaks_off() is not None else -1
        by_home: dict[Computation, list[Instruction]] = {}
        for position, mark in self.computations.notable.items():
            if position < stop or mark in _RUNNING or mark[-1] != "(":
                continue
            line = self.lines.at(position)
            is_one = line is not None and line.opcode in COMMUNICATING
            # Another instruction seems to stand in its line.
            if line is None or not is_one or line.says(" = "):
                start, stop = line_at(text, position)
                if _stray(text, start, stop, is_one):
                    self._complain(start, "a collective shares its line with another statement")
            if line is None or not is_one:
                continue
            stop = line.stop
            if line.start == last_line or text[stop - 1] == ",":
                self._complain(line.start, f"{quote(line.name)} is cut off")
            # A start that is a wrapper has its collective in the computation that it calls.
            elif not line.form.is_wrapper:
                by_home.setdefault(line.home, []).append(line)
        return by_home

    def _place(self, line: Instruction) -> dict[str, str]:
        """The `source` of a collective, or of the fusion or wrapper around it, and its op name."""
        metadata, caller = self._metadata(line), self.lines.site(line.home)
        for _ in range(MAX_WRAPPERS):
            if caller is None or not _PLACES.isdisjoint(metadata):
                break
            metadata, caller = {**self._metadata(caller), **metadata}, self.lines.site(caller.home)
            metadata["source"] = self.locations.of(metadata)
        return {"source": metadata.get("source", ""), "op_name": metadata.get("op_name", "")}

    @cached_property
    def locations(self) -> SourceLocations:
        """The places of the user's program that the text names."""
        return SourceLocations(self.text, self.computations.head)

    def source_of(self, line: Instruction) -> str:
        """The user's line that an instruction comes from, else its op name, else ""."""
        return self._metadata(line).get("source", "")

    def _metadata(self, line: Instruction) -> Mapping[str, str]:
        """The parts of an instruction's metadata that name its place, and the `source` that they are."""
        start = self.text.find(" metadata={", line.inside, line.stop)
        if start < 0:
            return {}
        stop = self.text.find(", backend_config=", start, line.stop)
        metadata = self.text[start : line.stop if stop < 0 else stop]
        parts = self._places.get(metadata)
        if parts is None:
            written = reversed(_METADATA.findall(metadata))
            parts = {key: _ESCAPED.sub(r"\1", name or number) for key, name, number in written}
            parts = self._places[metadata] = {**parts, "source": self.locations.of(parts)}
        return parts

    def _complain(self, position: int, complaint: str) -> None:
        self.unread_collectives += 1
        if len(self.unread) < MAX_UNREAD:
            self.unread.append(f"line {self.lines.normal.line(position)}: {complaint}")

    def _note_gaps(self, counts: Mapping[int, int | None]) -> None:
        entry, last = self.computations.entry, self.computations.breaks_off()
        if idle := sum(len(lines) for home, lines in self.collectives.items() if home.start not in counts):
            stand = plural(idle, "collective is", "collectives are")
            self.unread.append(f"{stand} in computations that nothing calls")
        for position in self.computations.unclosed[:MAX_UNREAD]:
            lost = "a computation begins before the one above it has ended"
            self.unread.append(f"line {self.lines.normal.line(position + 1)}: {lost}")
        if self.header and entry is None:
            self.unread.append("the text breaks off before its ENTRY computation, which runs the others")
        elif last is not None:
            self.unread.append(f"the text breaks off inside {quote(last)}")
        elif entry is not None and (missing := [*self._missing()]):
            others = f" and {plural(len(missing) - 1, 'other')}" if missing[1:] else ""
            self.unread.append(f"the text lacks {quote(missing[0])}{others}, which it runs")

    def _missing(self) -> dict[str, None]:
        """The bodies of loops, the branches and the wrapped computations that the text does not have."""
        lines = filter(None, dict.fromkeys(map(self.lines.at, self._running)))
        called = ((line, line.called(*_RUNNING.get(f" {line.opcode}(", ()))) for line in lines)
        return {
            name: None
            for line, names in called
            for name in names
            if not self.computations.named(name, line.start)
        }


def _module(text: str) -> re.Match[str] | None:
    """The first header of a module, in front of which a log may say when it was written."""
    headers = ((module, module.start()) for module in _MODULE.finditer(text))
    return next((module for module, at in headers if text.find('"', line_at(text, at)[0], at) < 0), None)


def _stray(text: str, start: int, stop: int, is_one: bool) -> bool:
    """Return whether a line has a collective's opcode where none can be, its own and strings left out."""
    quotes, read = 0, start
    for match in NOTABLE.finditer(text, start, stop):
        if match[0] in _RUNNING or not match[0].endswith("("):
            continue
        quotes += sum(1 for _ in _QUOTE.finditer(text, read, match.start()))
        read = match.start()
        if quotes % 2 == 0:
            if not is_one:
                return True
            is_one = False
    return False
