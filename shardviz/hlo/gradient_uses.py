"""The collectives that move what is made of gradients: those of an optimizer, and of a norm of all gradients.

JAX names no operation after the optimizer, and metrics stand beside it: sums of activations, counts of
tokens. What tells them apart is what they are made of. Followed back, a norm comes from an operation of the
backward pass before it comes from anything else that was differentiated; a gradient that is itself moved is
the backward pass's own. An updated parameter that a model takes at once, as an evaluation in the same step
does, is gathered for that model.
"""

from __future__ import annotations

from collections.abc import Iterable

from shardviz.hlo.gradients import LOOKS_PER_BYTE, MAX_LOOKS, OP_NAME
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
        self._looks = min(MAX_LOOKS, LOOKS_PER_BYTE * len(lines.text))

    def moves_gradients(self, name: str, home: Computation) -> bool:
        """Return whether each operand of a collective is certainly made of gradients, and no model takes the
        result."""
        line = self._lines.named(home, name)
        names = [] if line is None else line.operands
        made = bool(names) and all(self._has_gradient(InstructionValue(home, each)) for each in names)
        return made and not self._is_for_a_model(home, name)

    def _is_for_a_model(self, home: Computation, name: str) -> bool:
        """Return whether what a collective hands on is multiplied, or looked up in, where it arrives."""
        waiting, seen = [name], {name}
        while waiting and self._looks > 0:
            for user in self._lines.users(home, waiting.pop()):
                self._looks -= 1
                inside = self._lines.callee(user) if user.opcode in RUNNING else None
                lines = self._lines.of(inside) if inside is not None else [user]
                if any(each.opcode in _MODELS for each in lines):
                    return True
                if whole_op(user.opcode) in PLACES and user.name not in seen:
                    seen.add(user.name)
                    waiting.append(user.name)
        return False

    def _has_gradient(self, value: InstructionValue) -> bool:
        """Return whether a value is computed from a gradient, and not one itself."""
        waiting, seen = [(value, False)], {value}
        while waiting:
            current, is_computed = waiting.pop()
            line = self._lines.named(current.computation, current.name)
            self._looks -= 1
            if line is None or self._looks < 0:
                continue
            passes = _passes(line)
            computes = self._computes(current, line)
            if passes == {"backward"} and computes:
                return is_computed
            # An activation; of what stands for operations of both passes the operands tell.
            if passes and "backward" not in passes:
                continue
            fresh = {*self._made_of(current, line)} - seen - self._without
            seen |= fresh
            is_computed |= computes and not passes and line.opcode not in RUNNING
            waiting += [(each, is_computed) for each in fresh]
        if self._looks >= 0:
            self._without |= seen
        return False

    def _computes(self, value: InstructionValue, line: Instruction) -> bool:
        """Return whether an operation computes anything: passes may share a constant of the backward one."""
        made = self._origins.how(value)
        if not isinstance(made, Made) or not made.operands:
            return False
        return not made.only_moved and line.opcode != "broadcast"

    def _made_of(self, value: InstructionValue, line: Instruction) -> Iterable[InstructionValue]:
        if line.opcode == "while":
            return self._origins.after_loop(value, line)
        made = self._origins.how(value)
        if isinstance(made, Made):
            return made.operands if made.only_moved or line.opcode not in _MODELS else ()
        return self._origins.before_loop(value) if made is None and line.opcode == "parameter" else ()


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
