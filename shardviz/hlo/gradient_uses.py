"""The collectives that move what is made of gradients: those of an optimizer, and of a norm of all gradients.

JAX names no operation after the optimizer, and metrics stand beside it: sums of activations, counts of
tokens. What tells them apart is what they are made of. Followed back, a norm comes from an operation of the
backward pass before it comes from anything else that was differentiated; a gradient that is itself moved is
the backward pass's own. An updated parameter that a model takes at once, as an evaluation in the same step
does, is gathered for that model.
"""

from __future__ import annotations

from collections.abc import Iterable

from shardviz.hlo.gradients import OP_NAME, max_looks
from shardviz.hlo.named_scopes import joined_names, program_place
from shardviz.hlo.origins import InstructionOrigins, InstructionValue, Made
from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import PLACES, RUNNING, whole_op

_MODELS = ("dot", "convolution", "gather", "custom-call")
"""What a model does with its parameters: beyond it, updated ones may be used again, as for metrics."""


class GradientUses:
    """Tells of one text whether collectives move what is made of gradients."""

    def __init__(self, lines: Instructions, origins: InstructionOrigins) -> None:
        self._lines, self._origins = lines, origins
        self._without: set[InstructionValue] = set()
        self._looks = max_looks(lines.text)

    def moves_gradients(self, name: str, home: Computation) -> bool:
        """Return whether each operand of a collective is certainly computed of gradients, and no model takes
        the result."""
        line = self._lines.named(home, name)
        names = [] if line is None else line.operands
        values = [InstructionValue(home, each) for each in names]
        if not values or any(self._is_gradient(each) for each in values):
            return False
        return all(self._has_gradient(each) for each in values) and not self._is_for_a_model(home, name)

    def _is_for_a_model(self, home: Computation, name: str) -> bool:
        """Return whether what a collective hands on may be multiplied, or looked up in, where it arrives."""
        waiting, seen = [name], {name}
        while waiting:
            for user in self._lines.users(home, waiting.pop()):
                self._looks -= 1
                inside = self._lines.callee(user) if user.opcode in RUNNING else None
                lines = [user] if inside is None else self._lines.of(inside)
                if self._looks < 0 or any(each.opcode in _MODELS for each in lines):
                    return True
                if whole_op(user.opcode) in PLACES and user.name not in seen:
                    seen.add(user.name)
                    waiting.append(user.name)
        return False

    def _is_gradient(self, value: InstructionValue) -> bool:
        """Return whether a value has elements of a gradient itself, that only were moved."""
        waiting, seen = [value], {value}
        while waiting:
            current = waiting.pop()
            line = self._lines.named(current.computation, current.name)
            self._looks -= 1
            if line is None or self._looks < 0:
                continue
            passes, computes = _passes(line), self._computes(current, line)
            if computes and passes == {"backward"}:
                return True
            if computes and not passes:
                continue
            fresh = {*self._made_of(current, line, passes)} - seen
            seen |= fresh
            waiting += fresh
        return False

    def _has_gradient(self, value: InstructionValue) -> bool:
        """Return whether a value is made of a gradient."""
        waiting, seen = [value], {value}
        while waiting:
            current = waiting.pop()
            line = self._lines.named(current.computation, current.name)
            self._looks -= 1
            if line is None or self._looks < 0:
                continue
            passes = _passes(line)
            if passes == {"backward"} and self._computes(current, line):
                return True
            fresh = {*self._made_of(current, line, passes)} - seen - self._without
            seen |= fresh
            waiting += fresh
        if self._looks >= 0:
            self._without |= seen
        return False

    def _computes(self, value: InstructionValue, line: Instruction) -> bool:
        """Return whether an operation computes anything: passes may share a constant of the backward one."""
        made = self._origins.how(value)
        if not isinstance(made, Made) or not made.operands:
            return False
        return not made.only_moved and line.opcode != "broadcast"

    def _made_of(
        self, value: InstructionValue, line: Instruction, passes: set[str]
    ) -> Iterable[InstructionValue]:
        """The values that one is made of; none of an activation, nor of what a model makes of parameters. Of
        what stands for operations of both passes the operands tell."""
        made = self._origins.made_of(value, line)
        if not isinstance(made, Made) or (passes and "backward" not in passes):
            return ()
        return made.operands if made.only_moved or line.opcode not in _MODELS else ()


def _passes(line: Instruction) -> set[str]:
    """The passes of the differentiated function that an instruction belongs to; none for what is outside of
    it, and for a fusion, whose instructions tell."""
    named = None if line.opcode in RUNNING else line.search(OP_NAME)
    places = [(each, program_place(each)) for each in joined_names(named[1])] if named else []
    # A checkpoint outside of what is differentiated has no transposition in its name.
    return {
        "backward" if place.phase == "backward" and "transpose(" in each else "forward"
        for each, place in places
        if place.is_differentiated
    }
