"""Shardy and StableHLO text → the collectives in it, with the user's axis names."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache

from shardviz.errors import NotationError, QuestionError, plural
from shardviz.hlo.arguments import Origins, operation_made
from shardviz.hlo.collective import Collective
from shardviz.hlo.mlir.attributes import parse_tensor
from shardviz.hlo.mlir.collectives import sdy_collective, stablehlo_collective
from shardviz.hlo.mlir.operations import FunctionHeader, MlirModule, MlirOperation
from shardviz.hlo.mlir.shardings import one_sharding
from shardviz.hlo.text.call_graph import Call, program_order, run_counts, times
from shardviz.sharding import Mesh, PartitionSpec

MAX_UNREAD = 100
"""No more complaints than this about one text."""

_CALLING = ("func.call", "stablehlo.composite", "stablehlo.custom_call")
_SYMBOL = re.compile(r'@("[^"]*"|[\w.$-]+)')
_CALLEES = re.compile(r'\bdecomposition = (@(?:"[^"]*"|[\w.$-]+))|\bcalled_computations = \[([^\]]*)\]')
"""The function that a composite names, those of a custom call."""
_MLIR = re.compile(r"func\.func|stablehlo\.\w|sdy\.\w|mhlo\.\w")
_SPLIT = re.compile(r'sdy\.sharding(?:_per_value)? ?[<=][^\n{]{0,200}\{"|mhlo\.sharding = "\{devices=')
_NUMBER = {key: re.compile(rf"mhlo\.{key}\s*=\s*(\d{{1,12}})") for key in ("num_partitions", "num_replicas")}


@dataclass(frozen=True)
class ShardyModule:
    """A module's collectives in program order, and how its main function's arguments and results are split.

    A spec is None where the text leaves it open (a module that declares no mesh). `mesh` is the one given,
    else the first declared. `unread` says, a sentence each, what could not be read, and `unread_collectives`
    counts the collectives among that. `awaits_partitioner` tells that the text splits arrays and has no
    collectives of Shardy's: the partitioner inserts them. `num_devices` is 1 where it names none."""

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

    Shapes are per device, rounded up where axes do not divide. A private function's collectives count once
    for each call, a loop's as often as its counter tells, in a branch of a conditional once (`in_branch`).
    Groups are ids of the mesh's devices. Raises `NotationError` for a text that is not such a module,
    `QuestionError` when `mesh` is another than the module's."""
    if not is_mlir(text):
        problem = "this is neither StableHLO nor Shardy text"
        raise NotationError(problem, text, 0, hint="print one with lowered.as_text()")
    return read_module(MlirModule(text), mesh)


def read_module(module: MlirModule, mesh: Mesh | None = None) -> ShardyModule:
    """The same of operations that are read already."""
    return _Reader(module, mesh).read()


class _Reader:
    def __init__(self, module: MlirModule, mesh: Mesh | None) -> None:
        self.module, self.meshes = module, module.meshes
        self.mesh = mesh or self.meshes.mesh()
        declared = [
            ",".join(f"{name}={size}" for name, size in sizes.items() if size > 1)
            for sizes in self.meshes.sizes.values()
            if sizes
        ]
        if mesh is not None and mesh.size > 1 and declared and str(mesh.without_ones()) not in declared:
            problem = f"the mesh of the module is {declared[0]}, not {mesh}"
            raise QuestionError(problem, "give the module's own mesh, or none")
        matches = (_NUMBER[key].search(module.text) for key in ("num_partitions", "num_replicas"))
        self.partitions, self.replicas = (max(1, int(number[1])) if number else 1 for number in matches)
        self.unread: list[str] = []
        self.unread_collectives = 0
        self.is_plan = False
        self.known: dict[tuple[str, str], Collective] = {}
        """Collectives of two layers often differ only in the operand."""

    def read(self) -> ShardyModule:
        module, functions = self.module, self.module.functions
        if '"func.func"(' in module.text:
            problem = "this MLIR is in the generic form"
            hint = "print it in its own form: lowered.as_text()"
            raise NotationError(problem, module.text[1:], module.text.find('"func.func"(') - 1, hint=hint)
        if not functions[1:] and "func.func" in module.text:
            problem = "this MLIR has no function on a line of its own"
            hint = "save lowered.as_text() with its line ends, all of it"
            raise NotationError(problem, module.text[1:], 0, hint=hint)
        collectives, called = self._collectives()
        calls = []
        for operation, callee in called:
            around, runs = operation.around, _runs(operation)
            opcode = "conditional" if around.in_branch else ""
            calls.append(Call(around.function.line, callee, operation.line, runs, opcode))
        callees = {call.callee for call in calls}
        uncalled = [function for function in functions[1:] if function.line not in callees]
        public = [function.line for function in uncalled if function.header.is_public]
        roots = [0, *(public or (function.line for function in uncalled))]
        counts, chosen = run_counts(dict.fromkeys(roots, 1), calls)
        callers: dict[int, set[str]] = defaultdict(set)
        for operation, callee in called:
            callers[callee].add(module.place(operation))
        in_order: list[Collective] = []
        for home, pairs in program_order(roots, calls, collectives, lambda pair: pair[1].line):
            place = next(iter(callers[home])) if len(callers[home]) == 1 else ""
            for collective, operation in pairs:
                if place and collective.source:
                    # The body of a function that JAX has set apart names its operations anew.
                    collective = replace(collective, source=f"{place}/{collective.source}")
                count = times(counts.get(home, 0), _runs(operation))
                in_branch = operation.around.in_branch or home in chosen
                in_order.append(replace(collective, count=count, in_branch=in_branch))
        if idle := sum(len(records) for home, records in collectives.items() if home not in counts):
            stand = plural(idle, "collective is", "collectives are")
            self.unread.append(f"{stand} in functions that nothing calls")
        if not module.is_closed:
            self.unread.append("the text breaks off inside the module")
        header = module.main.header if module.main else FunctionHeader()
        return ShardyModule(
            module.name,
            self.mesh,
            tuple(in_order),
            tuple(map(self._spec, header.arguments)),
            tuple(map(self._spec, header.results)),
            tuple(self.unread[:MAX_UNREAD]),
            self.unread_collectives,
            not self.is_plan and any(_SPLIT.search(operation.text) for operation in module.operations),
            self.partitions * self.replicas,
        )

    def _collectives(
        self,
    ) -> tuple[dict[int, list[tuple[Collective, MlirOperation]]], list[tuple[MlirOperation, int]]]:
        """The collectives of each function, and the calls of functions that the text has."""
        numbers = {function.header.name: function.line for function in self.module.functions[1:]}
        by_function: dict[int, list[tuple[Collective, MlirOperation]]] = defaultdict(list)
        called: list[tuple[MlirOperation, int]] = []
        how = cache(operation_made)
        origins = Origins(how, how)
        for operation in self.module.operations:
            function = operation.around.function
            if operation.is_open:
                continue
            if callees := _callees(operation):
                called += [(operation, numbers[name]) for name in callees if name in numbers]
            elif (collective := self._collective(operation)) is not None:
                if function.header.name == "main" and (operand := next(iter(operation.operands), None)):
                    collective = replace(collective, origin=origins.of([operand]))
                if source := self.module.place(operation):
                    collective = replace(collective, source=source)
                by_function[function.line].append((collective, operation))
        return by_function, called

    def _collective(self, operation: MlirOperation) -> Collective | None:
        try:
            if operation.name.startswith("stablehlo."):
                return stablehlo_collective(operation, self.meshes, self.mesh, self.replicas, self.partitions)
            text = operation.text
            start = text.find("%")
            key = operation.name, text if start < 0 else text[:start] + text[text.find(" ", start) :]
            if key not in self.known:
                collective = sdy_collective(operation, self.meshes, self.mesh)
                if collective is None:
                    return None
                self.is_plan = True
                if collective.op == "collective-permute":
                    return collective
                self.known[key] = collective
            return replace(self.known[key], name=operation.value)
        except NotationError as error:
            self.unread_collectives += 1
            self.unread.append(f"line {operation.line} cannot be read: {error.message}")
            return None

    def _spec(self, text: str) -> PartitionSpec | None:
        """The spec of one argument or result; one without a sharding is whole on every device."""
        try:
            if told := one_sharding(text, self.meshes):
                return told.spec()
            return PartitionSpec.replicated(len(parse_tensor(text).sizes)) if self.meshes.sizes else None
        except (NotationError, QuestionError):
            return None


def _callees(operation: MlirOperation) -> list[str]:
    if operation.name not in _CALLING:
        return []
    is_call = operation.name == "func.call"
    named = _SYMBOL.match(operation.text) if is_call else _CALLEES.search(operation.text)
    return [name.strip('"') for name in _SYMBOL.findall(named[0])] if named else []


def _runs(operation: MlirOperation) -> int | None:
    """The runs of something in its loops; a condition is tried once more than the body."""
    count: int | None = 1
    for loop, is_condition in operation.around.loops:
        count = times(count, None if loop.trips is None else loop.trips + is_condition)
    return count
