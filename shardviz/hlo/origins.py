"""The arguments of a program that a collective's operands come from, found by following them back."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from shardviz.hlo.collective import Origin
from shardviz.hlo.mlir.regions import BLOCK_ARGUMENT, Function, MlirOperation
from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import ELEMENTS, PLACES, RUNNING, base_op, whole_op

MAX_LOOKS = 1_000
"""Definitions looked at in one module at most, to follow what is computed: a chain of einsums has some
hundreds, a model far more."""
MAX_MOVES = 200
"""Definitions looked at for one value that is only moved."""
MAX_ARGUMENTS = 64
"""A value that is made of more arguments than this has no origin worth telling."""

_TPU_ASYNC = 'custom_call_target="AsyncCollective'
"""The start or the done of a collective in a fusion; its results are the collective's operand and result."""
_OPERATION = re.compile(r'"?(?:stablehlo|mhlo|sdy|chlo)\.(\w+)"?|(?:func\.)?(call) @')
_SHARDING = re.compile(r"stablehlo\.custom_call @(?:Sharding|xla\.sdy\.\w+|SPMD\w+)\(")
_MLIR_VALUE = re.compile(r"%[\w$.#-]+")
_REGIONS = ("while", "case", "if", "manual_computation", "named_computation", "composite")

_Value = TypeVar("_Value", bound=Hashable)


@dataclass(frozen=True)
class Made(Generic[_Value]):
    """A value that is made of others; with `only_moved` of nothing but their elements."""

    operands: tuple[_Value, ...]
    only_moved: bool


class _Origins(Generic[_Value]):
    """Finds the origins of values in a language that `_look` reads."""

    def __init__(self) -> None:
        self._known: dict[_Value, Origin | None] = {}
        self._made: dict[_Value, Made[_Value] | Origin | None] = {}
        self._looks = 0

    def _look(self, value: _Value) -> Made[_Value] | Origin | None:
        """Return how a value is made; the origin itself of an argument; None if that is unknown."""
        raise NotImplementedError

    def how(self, value: _Value) -> Made[_Value] | Origin | None:
        """`_look`, once for each value."""
        if value not in self._made:
            self._made[value] = self._look(value)
        return self._made[value]

    def _joint_origin(self, values: Sequence[_Value]) -> Origin | None:
        """The origin of several values together."""
        if not values:
            return None
        moved = self._moved(values)
        if moved is not None or self._looks > MAX_LOOKS:
            return moved
        joined = _joined([self._origin(value) for value in values])
        return joined if joined is None or len(joined.arguments) <= MAX_ARGUMENTS else None

    def _moved(self, values: Iterable[_Value]) -> Origin | None:
        """The origin of values that are moved, not computed, from the program's arguments to here.

        This ends at the first thing that is computed, and so it is quick in a program of any size.
        """
        found: set[int] = set()
        waiting = [*values]
        seen = {*waiting}
        while waiting:
            made = self.how(waiting.pop())
            if made is None or len(seen) > MAX_MOVES:
                return None
            if isinstance(made, Origin):
                if made.computed:
                    return None
                found.update(made.arguments)
                continue
            # A constant, as pads have it, is of no argument.
            if made.operands and not made.only_moved:
                return None
            fresh = [each for each in made.operands if each not in seen]
            seen.update(fresh)
            waiting += fresh
        return Origin(tuple(sorted(found))) if 0 < len(found) <= MAX_ARGUMENTS else None

    def _origin(self, value: _Value) -> Origin | None:
        """The origin of a value; None when it is unknown, or too much has been looked at."""
        pending: list[tuple[_Value, Made[_Value] | None]] = [(value, None)]
        while pending:
            current, made = pending.pop()
            if made is not None:
                origin = _joined([self._known.get(each) for each in made.operands], made.only_moved)
                is_told = origin is not None and len(origin.arguments) <= MAX_ARGUMENTS
                self._known[current] = origin if is_told else None
            elif current not in self._known:
                # A value that is made of itself stays unknown, and so does all that is given up.
                self._known[current] = None
                self._looks += 1
                if self._looks > MAX_LOOKS:
                    return None
                found = self.how(current)
                if isinstance(found, Made):
                    pending.append((current, found))
                    pending.extend((each, None) for each in found.operands)
                else:
                    self._known[current] = found
        return self._known[value]


def _joined(origins: Sequence[Origin | None], only_moved: bool = True) -> Origin | None:
    """The origin of a value that is made of others with these origins; None where one is unknown."""
    known = [origin for origin in origins if origin is not None]
    if len(known) < len(origins):
        return None
    arguments = {number for origin in known for number in origin.arguments}
    computed = not only_moved or any(origin.computed for origin in known)
    return Origin(tuple(sorted(arguments)), bool(arguments) and computed)


@dataclass(frozen=True, eq=False)
class CallSite:
    """A `line` of the computation `home` that runs another one, `depth` calls below the outermost.

    `outer` runs `home`. Each is made once and compared by identity: a chain of calls costs no more to look
    up than one call.
    """

    home: Computation
    line: Instruction
    outer: CallSite | None
    depth: int


class InstructionValue(NamedTuple):
    """An instruction of a computation, as `caller` runs it; maybe one `element` of its tuple."""

    computation: Computation
    name: str
    caller: CallSite | None = None
    element: int | None = None


class InstructionOrigins(_Origins[InstructionValue]):
    """The origins of HLO's collectives: through fusions, calls, and loops that hand an array on."""

    def __init__(self, lines: Instructions) -> None:
        super().__init__()
        self._lines = lines
        self._callers: dict[int, tuple[Computation, Instruction] | None] = {}
        self._call_sites: dict[tuple[CallSite | None, int], CallSite] = {}

    def of(self, instruction: Instruction, home: Computation) -> Origin | None:
        """The origin of a collective's operands together; None when it cannot be told."""
        line = self._lines.named(home, instruction.name)
        names = self._operands(home, line) if line else []
        return self._joint_origin([InstructionValue(home, name) for name in names])

    def _look(self, value: InstructionValue) -> Made[InstructionValue] | Origin | None:
        home, lines = value.computation, self._lines
        line = lines.named(home, value.name)
        if line is None:
            return None
        opcode = whole_op(line.opcode)
        if opcode == "parameter":
            return self._parameter(value, line.parameter_number)
        if opcode in RUNNING and (callee := lines.callee(line)) is not None:
            root, site = lines.root(callee), self._call_site(value, line)
            if root is None or site is None:
                return None
            return Made((InstructionValue(callee, root.name, site, value.element),), True)
        if opcode == "while":
            return self._kept(value, line)
        if opcode in ("conditional", "recv", "infeed"):
            return None
        if opcode == "custom-call" and line.says(_TPU_ASYNC):
            moved = (InstructionValue(home, name, value.caller) for name in self._operands(home, line))
            return Made(tuple(moved), True)
        names, element = self._operands(home, line)[ELEMENTS.get(opcode, slice(None))], None
        if opcode == "get-tuple-element":
            element = line.element_index
        elif value.element is not None and opcode != "all-to-all" and opcode in PLACES:
            names = names[value.element : value.element + 1]
            if not names:
                return None
        values = (InstructionValue(home, name, value.caller, element) for name in names)
        return Made(tuple(values), opcode in PLACES)

    def _parameter(
        self, value: InstructionValue, number: int | None
    ) -> Made[InstructionValue] | Origin | None:
        caller = value.caller
        if number is None:
            return None
        if caller is None:
            return Origin((number,)) if value.computation.is_entry else self._from_outside(value, number)
        operands = self._operands(caller.home, caller.line)
        if number >= len(operands):
            return None
        return Made((InstructionValue(caller.home, operands[number], caller.outer),), True)

    def _call_site(self, value: InstructionValue, line: Instruction) -> CallSite | None:
        """The call that makes a value; None where a computation runs itself, which has no end."""
        outer = value.caller
        depth = 0 if outer is None else outer.depth + 1
        if depth > len(self._lines.computations.all):
            return None
        key = outer, line.start
        if key not in self._call_sites:
            self._call_sites[key] = CallSite(value.computation, line, outer, depth)
        return self._call_sites[key]

    def _from_outside(self, value: InstructionValue, number: int) -> Made[InstructionValue] | None:
        """The value that the one instruction that runs a computation hands to a parameter of it.

        Of a loop's body that is the element of the state that the loop begins with, where each run hands it
        on as it is; of a fusion or an async wrapper the operand.
        """
        called = value.computation
        caller = self.caller_of(called)
        if caller is None:
            return None
        home, line = caller
        names = self._operands(home, line)
        if line.opcode != "while":
            handed = names[number : number + 1]
            return Made((InstructionValue(home, handed[0], None, value.element),), True) if handed else None
        if value.element is None or not names or not self._hands_on(called, value.element):
            return None
        return Made((InstructionValue(home, names[0], None, value.element),), True)

    def _kept(self, value: InstructionValue, loop: Instruction) -> Made[InstructionValue] | None:
        """The value of an element of a loop's state before the loop, where that leaves it as it is."""
        lines, home = self._lines, value.computation
        body = lines.body(loop)
        names = self._operands(home, loop)
        if body is None or value.element is None or not names or not self._hands_on(body, value.element):
            return None
        return Made((value._replace(name=names[0]),), True)

    def made_of(self, value: InstructionValue, line: Instruction) -> Made[InstructionValue] | Origin | None:
        """As `how`; but an element of a loop's state that its runs change, of which that says nothing, is
        moved there from the runs and from before."""
        if line.opcode == "while":
            return Made(self._after_loop(value, line), True)
        made = self.how(value)
        if made is None and line.opcode == "parameter":
            return Made(self._before_loop(value), True)
        return made

    def _after_loop(self, value: InstructionValue, loop: Instruction) -> tuple[InstructionValue, ...]:
        """An element of a loop's state as its body leaves it, and as it was before."""
        body, before = self._lines.body(loop), loop.operands
        root = None if body is None else self._lines.root(body)
        if body is None or root is None or value.element is None or not before:
            return ()
        return (
            InstructionValue(body, root.name, None, value.element),
            value._replace(name=before[0]),
        )

    def _before_loop(self, value: InstructionValue) -> tuple[InstructionValue, ...]:
        """An element of the state that a loop begins with, in its body."""
        caller = None if value.caller is not None else self.caller_of(value.computation)
        if caller is None or caller[1].opcode != "while" or value.element is None:
            return ()
        before = caller[1].operands
        return tuple(InstructionValue(caller[0], name, None, value.element) for name in before[:1])

    def _hands_on(self, body: Computation, element: int) -> bool:
        """Return whether each run of a loop's body hands on an element of its state as it is."""
        lines, root = self._lines, self._lines.root(body)
        if root is None or root.opcode != "tuple":
            return False
        handed_on = root.operands[element : element + 1]
        kept = lines.named(body, handed_on[0]) if handed_on else None
        if kept is None or kept.opcode != "get-tuple-element" or kept.element_index != element:
            return False
        state = lines.named(body, (kept.operands or [""])[0])
        return state is not None and state.opcode == "parameter"

    def caller_of(self, called: Computation) -> tuple[Computation, Instruction] | None:
        """The loop, fusion, call or async wrapper that alone runs a computation, and where it stands."""
        if called.start not in self._callers:
            found = []
            for position in self._lines.computations.sites.get(called.name, ()):
                line = self._lines.at(position)
                opcode = "" if line is None else line.opcode
                if line is not None and (opcode == "while" or base_op(opcode) in RUNNING):
                    found.append((self._lines.computations.around(position), line))
            self._callers[called.start] = found[0] if len(found) == 1 else None
        return self._callers[called.start]

    def _operands(self, home: Computation, line: Instruction) -> list[str]:
        """The operands of an instruction that its computation defines."""
        return [name for name in line.operands if self._lines.named(home, name)]


class OperationOrigins(_Origins[tuple[str, int, int]]):
    """The origins of Shardy's and StableHLO's collectives, within one function.

    Other functions may have values of the same names. Only what stands above an operation is known, so it
    is asked while the text is walked.
    """

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function
        self._texts: dict[int, str] = {}

    def of(self, operation: MlirOperation) -> Origin | None:
        """The origin of what a collective moves; None when it cannot be told."""
        operand = _MLIR_VALUE.search(operation.text)
        key = self._key(operand[0]) if operand else None
        return self._joint_origin([key]) if key else None

    def _key(self, value: str) -> tuple[str, int, int] | None:
        """A value and which text defines it: regions beside each other may use its name again."""
        found = self._function.definition(value)
        if found is None:
            return None
        self._texts[id(found[0])] = found[0]
        return value.partition("#")[0], id(found[0]), found[1]

    def _look(self, key: tuple[str, int, int]) -> Made[tuple[str, int, int]] | Origin | None:
        text = self._texts[key[1]]
        if text is self._function.header:
            return Origin((key[2],))
        name = _OPERATION.match(text)
        if name is None or name[1] in _REGIONS or text.startswith(BLOCK_ARGUMENT):
            return None
        values = _MLIR_VALUE.findall(text)
        operands = tuple(each for value in values if (each := self._key(value)) is not None)
        if len(operands) < len(values):
            return None
        opcode = (name[1] or "").replace("_", "-")
        moves = text.startswith(("sdy.", '"sdy.')) or opcode in PLACES
        return Made(operands, moves or _SHARDING.match(text) is not None)
