"""Shardy and StableHLO text → the collectives in it, with the user's axis names."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace

from shardviz.errors import NotationError, QuestionError, plural
from shardviz.hlo.collective import Collective
from shardviz.hlo.mlir.attributes import AxisSizes, Meshes, parse_sharding, parse_tensor
from shardviz.hlo.mlir.named_shardings import NAMED_PLACE, PLACE
from shardviz.hlo.mlir.normal_form import unwrapped, with_own_form
from shardviz.hlo.mlir.regions import Function, Loop, MlirOperation, Walk
from shardviz.hlo.mlir.sdy_op import sdy_collective
from shardviz.hlo.mlir.stablehlo import stablehlo_collective
from shardviz.hlo.origins import OperationOrigins
from shardviz.hlo.text.call_graph import Call, in_branches, program_order, run_counts, times
from shardviz.sharding import Mesh, PartitionSpec

MAX_UNREAD = 100
"""No more complaints than this about one text."""

_SYMBOL = re.compile(r'@("[^"]*"|[\w.$-]+)')
_CALLEES = re.compile(
    r'^(?:func\.)?call (@(?:"[^"]*"|[\w.$-]+))|\b(?:callee|decomposition) = (@(?:"[^"]*"|[\w.$-]+))'
    r"|\bcalled_computations = \[([^\]]*)\]"
)
"""Functions that an operation names: that of a call, of a composite, those of a custom call."""
_MODULE = re.compile(r'^[ \t]*+module(?: @("[^"]*"|[\w.$-]+))?', re.MULTILINE)
_MLIR = re.compile(r"func\.func|stablehlo\.\w|sdy\.\w|mhlo\.\w")
_SPLIT = re.compile(r'sdy\.sharding(?:_per_value)? ?[<=][^\n{]{0,200}\{"|mhlo\.sharding = "\{devices=')
_NUMBER = {key: re.compile(rf"mhlo\.{key} = (\d{{1,12}})") for key in ("num_partitions", "num_replicas")}


@dataclass(frozen=True)
class ShardyModule:
    """A module's collectives in program order, and how its main function's arguments and results are split.

    A spec is None where the text leaves it open (a module that declares no mesh).
    `mesh` is the one that was given, else the first that the text declares. `unread` says, a sentence
    each, what could not be read, and `unread_collectives` counts the collectives among that.
    `awaits_partitioner` tells that the text splits arrays and leaves it to the partitioner to insert the
    collectives for that; with collectives of Shardy's, it does not. `num_devices` is 1 where the text names
    no number.
    """

    name: str
    mesh: Mesh | None
    collectives: tuple[Collective, ...]
    argument_specs: tuple[PartitionSpec | None, ...]
    result_specs: tuple[PartitionSpec | None, ...]
    unread: tuple[str, ...] = ()
    unread_collectives: int = 0
    awaits_partitioner: bool = False
    num_devices: int = 1


def is_mlir(text: str) -> bool:
    """Return whether a text looks like StableHLO or Shardy."""
    return _MLIR.search(text) is not None


def read_shardy(text: str, mesh: Mesh | None = None) -> ShardyModule:
    """The collectives of a module after Shardy's pipeline, or of StableHLO with collectives of its own.

    Shapes are per device, rounded up where axes do not divide. A private function's collectives count
    once for each call, a loop's as often as its counter tells, in a branch of a conditional once
    (`in_branch`). Groups are ids of the mesh's devices.

    Raises `NotationError` for a text that is not such a module, `QuestionError` when `mesh` is another mesh
    than the module's.
    """
    if not is_mlir(text):
        raise NotationError(
            "this is neither StableHLO nor Shardy text", text, 0, hint="print one with lowered.as_text()"
        )
    return _Reader(with_own_form(unwrapped(text)), mesh).read()


class _Reader:
    """One reading of one text."""

    def __init__(self, text: str, mesh: Mesh | None) -> None:
        self.text = text
        self.meshes = Meshes(text)
        self.mesh = mesh or self.meshes.mesh()
        declared = [_written(sizes) for sizes in self.meshes.sizes.values() if sizes]
        if mesh is not None and declared and str(mesh) not in declared:
            raise QuestionError(
                f"the mesh of the module is {declared[0]}, not {mesh}", "give the module's own mesh, or none"
            )
        self.partitions, self.replicas = (
            _header_number(text, key) for key in ("num_partitions", "num_replicas")
        )
        self.unread: list[str] = []
        self.unread_collectives = 0
        self.is_plan = False
        self.known: dict[str, Collective] = {}
        self.places = dict(NAMED_PLACE.findall(text))

    def read(self) -> ShardyModule:
        walk = Walk(self.text)
        found: dict[tuple[int, int], tuple[Collective, MlirOperation]] = {}
        called: list[tuple[int, MlirOperation, str]] = []
        origins: dict[int, OperationOrigins] = {}
        for operation in walk.operations():
            home = operation.function.index
            if call := _CALLEES.search(operation.text):
                names_called = _SYMBOL.findall(next(filter(None, call.groups()), ""))
                called += ((home, operation, name.strip('"')) for name in names_called)
            elif (collective := self._collective(operation)) is not None:
                if operation.function.name == "main":
                    if home not in origins:
                        origins[home] = OperationOrigins(operation.function)
                    collective = replace(collective, origin=origins[home].of(operation))
                if source := self._place(operation):
                    collective = replace(collective, source=source)
                found[home, operation.order] = collective, operation
        if not walk.functions[1:] and "func.func" in self.text:
            raise NotationError(
                "this MLIR has no function on a line of its own",
                self.text,
                0,
                hint="save lowered.as_text() with its line ends, all of it",
            )
        names = {function.name: function.index for function in walk.functions[1:]}
        calls = [
            Call(
                home,
                names[callee],
                operation.order,
                _runs(operation.loops),
                "conditional" if operation.in_branch else "",
            )
            for home, operation, callee in called
            if callee in names
        ]
        main = _main(walk.functions)
        uncalled = [each for each in walk.functions[1:] if each.index not in {call.callee for call in calls}]
        roots = [0, *(each.index for each in uncalled if each.is_public)]
        if len(roots) == 1:
            roots += [each.index for each in uncalled]
        counts, chosen = run_counts(dict.fromkeys(roots, 1), calls), in_branches(calls)
        places: dict[int, set[str]] = defaultdict(set)
        for _, operation, callee in called:
            if callee in names:
                places[names[callee]].add(self._place(operation))
        callers = {home: one for home, (one, *others) in places.items() if not others}
        positions: dict[int, list[int]] = defaultdict(list)
        for home, order in found:
            positions[home].append(order)
        collectives = []
        for home, orders in program_order(roots, calls, positions):
            for order in orders:
                collective, operation = found[home, order]
                if (caller := callers.get(home)) and collective.source:
                    # The body of a function that JAX has set apart names its operations anew.
                    collective = replace(collective, source=f"{caller}/{collective.source}")
                count = times(counts.get(home, 0), _runs(operation.loops))
                in_branch = operation.in_branch or home in chosen
                collectives.append(replace(collective, count=count, in_branch=in_branch))
        if idle := sum(home not in counts for home, _ in found):
            stand = plural(idle, "collective is", "collectives are")
            self.unread.append(f"{stand} in functions that nothing calls")
        if not walk.is_closed:
            self.unread.append("the text breaks off inside the module")
        module = _MODULE.search(self.text)
        return ShardyModule(
            (module[1] or "").strip('"') if module else "",
            self.mesh,
            tuple(collectives),
            tuple(self._spec(chunk) for chunk in (main.arguments if main else ())),
            tuple(self._spec(chunk) for chunk in (main.results if main else ())),
            tuple(self.unread[:MAX_UNREAD]),
            self.unread_collectives,
            _SPLIT.search(self.text) is not None and not self.is_plan,
            self.partitions * self.replicas,
        )

    def _place(self, operation: MlirOperation) -> str:
        """The name of the place where an operation stands in the program, "" where the text has none."""
        place = PLACE.search(operation.text)
        return (place[2] or self.places.get(place[1], "")) if place else ""

    def _collective(self, operation: MlirOperation) -> Collective | None:
        try:
            if operation.text.startswith(('"', "stablehlo.")):
                return stablehlo_collective(operation, self.meshes, self.mesh, self.replicas, self.partitions)
            key = _without_operand(operation.text)
            if key not in self.known:
                found = sdy_collective(operation, self.meshes, self.mesh)
                if found is None:
                    return None
                self.is_plan = True
                if found.op == "collective-permute":
                    return found
                self.known[key] = found
            return replace(self.known[key], name=operation.value)
        except NotationError as error:
            self.unread_collectives += 1
            self.unread.append(f"line {operation.order} cannot be read: {error.message}")
            return None

    def _spec(self, chunk: str) -> PartitionSpec | None:
        """The spec of one argument or result; one without a sharding is whole on every device."""
        at = chunk.find("#sdy.sharding<")
        try:
            if at >= 0:
                return parse_sharding(chunk, at + len("#sdy.sharding"), self.meshes)[0].spec()
            return PartitionSpec.replicated(len(parse_tensor(chunk).sizes)) if self.meshes.sizes else None
        except (NotationError, QuestionError):
            return None


def _without_operand(text: str) -> str:
    """The text that decides all but a permute: collectives of two layers often differ only in the operand."""
    start = text.find("%")
    return text if start < 0 else text[:start] + text[text.find(" ", start) :]


def _main(functions: list[Function]) -> Function | None:
    public = [function for function in functions[1:] if function.is_public]
    named = [function for function in functions[1:] if function.name == "main"]
    return next(iter(named or public or functions[1:]), None)


def _runs(loops: tuple[tuple[Loop, bool], ...]) -> int | None:
    """The runs of something in these loops; a condition is tried once more than the body."""
    count: int | None = 1
    for loop, is_condition in loops:
        trips = loop.trips
        count = times(count, None if trips is None else trips + is_condition)
    return count


def _written(sizes: AxisSizes) -> str:
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def _header_number(text: str, key: str) -> int:
    match = _NUMBER[key].search(text)
    return max(1, int(match[1])) if match else 1
