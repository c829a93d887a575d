"""The operations that collectives without a name are for.

XLA names a collective after the operation for which it inserts it: a sum after the one whose parts it adds,
all others after the one that wants the value. For several TPU slices libtpu takes collectives apart and drops
these names, but the operations on both sides keep theirs. From a collective they are reached through whatever
only moves its elements, fusions and loops too. What gathers a sum at once may be a part of that sum, or for
who takes it: the operations of both sides are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from shardviz.hlo.gradients import max_looks
from shardviz.hlo.origins import InstructionOrigins, InstructionValue, Made
from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.cross_slice import CrossSliceTransfer
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import PLACES, RUNNING, whole_op

MAX_STEPS = 300
"""Values looked at for one collective."""
_SUMS = ("all-reduce", "reduce-scatter")
_PASSING = ("while", "parameter", "opt-barrier", "broadcast", "send", "recv")


class NamelessCollectives:
    """Finds the operations on both sides of collectives of one text."""

    def __init__(
        self, lines: Instructions, origins: InstructionOrigins, transfers: Iterable[CrossSliceTransfer]
    ) -> None:
        self._lines, self._origins = lines, origins
        has_names = " metadata={" in lines.text
        self._looks = max_looks(lines.text) if has_names else 0
        self._sends = {each.recv.name: each for each in transfers}
        self._recvs = {each.send.name: each.recv.name for each in transfers}

    def served(self, op: str, name: str, home: Computation) -> list[Instruction]:
        """The operations that the collective `name` is for; none where these cannot be reached."""
        if self._looks <= 0:
            return []
        line = self._lines.named(home, name)
        operands = [] if line is None else [InstructionValue(home, each) for each in line.operands]
        made, adds = self._reached(operands, self._made_of)
        if op in _SUMS:
            return made
        result = InstructionValue(home, self._recvs.get(name, name))
        used, _ = self._reached([*self._used(result)], self._used)
        return made + used if adds else used

    def _reached(
        self,
        values: Sequence[InstructionValue],
        step: Callable[[InstructionValue], Iterable[InstructionValue]],
    ) -> tuple[list[Instruction], bool]:
        """The first operations on all ways from some values, and whether a sum is on one of them."""
        found: dict[int, Instruction] = {}
        waiting, seen, adds = [*values], {*values}, False
        while waiting:
            value = waiting.pop()
            self._looks -= 1
            line = self._lines.named(value.computation, value.name)
            if line is None or self._looks < 0 or len(seen) > MAX_STEPS:
                return [], False
            if self._is_operation(line):
                found[line.start] = line
                continue
            adds = adds or self._op(line) in _SUMS
            fresh = {*step(value)} - seen
            seen |= fresh
            waiting += fresh
        return [*found.values()], adds

    def _op(self, line: Instruction) -> str:
        """The collective that an instruction belongs to, else its opcode."""
        sent = self._sends.get(line.name)
        return whole_op(line.opcode) if sent is None else sent.op

    def _is_operation(self, line: Instruction) -> bool:
        """Return whether an instruction computes something of the program's own, which has a name."""
        if whole_op(line.opcode) in PLACES or line.opcode in _PASSING:
            return False
        return line.says(" metadata={")

    def _made_of(self, value: InstructionValue) -> Sequence[InstructionValue]:
        home = value.computation
        line = self._lines.named(home, value.name)
        if line is None:
            return ()
        if line.opcode == "recv":
            transfer = self._sends.get(line.name)
            sent = None if transfer is None else self._lines.named(home, transfer.send.name)
            return () if sent is None else [InstructionValue(home, each) for each in sent.operands]
        made = self._origins.made_of(value, line)
        return made.operands if isinstance(made, Made) else ()

    def _used(self, value: InstructionValue) -> Iterator[InstructionValue]:
        """The values that are made with one at once: those of its users, or of who runs its computation."""
        home = value.computation
        for user in self._lines.users(home, value.name):
            for position, name in enumerate(user.operands):
                if name == value.name:
                    yield from self._passed(value, user, position)
        line = self._lines.named(home, value.name)
        caller = self._origins.caller_of(home) if line is not None and line.is_root else None
        if caller is not None:
            yield InstructionValue(caller[0], caller[1].name, None, value.element)
            if caller[1].opcode == "while":
                yield from self._parameters(home, 0, value.element)

    def _passed(
        self, value: InstructionValue, user: Instruction, position: int
    ) -> Iterator[InstructionValue]:
        home, element = value.computation, value.element
        if user.opcode == "get-tuple-element":
            if element in (None, user.element_index):
                yield InstructionValue(home, user.name)
        elif user.opcode == "tuple":
            yield InstructionValue(home, user.name, None, position)
        elif user.opcode == "while":
            body = self._lines.body(user)
            yield InstructionValue(home, user.name, None, element)
            if body is not None:
                yield from self._parameters(body, 0, element)
        elif (callee := self._lines.callee(user)) is not None and user.opcode.split("-")[0] in RUNNING:
            yield from self._parameters(callee, position, element)
        else:
            yield InstructionValue(home, user.name, None, element if user.opcode == "opt-barrier" else None)

    def _parameters(self, home: Computation, number: int, element: int | None) -> Iterator[InstructionValue]:
        parameter = self._lines.parameter(home, number)
        if parameter is not None:
            yield InstructionValue(home, parameter.name, None, element)
