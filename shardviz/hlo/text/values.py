"""The values of a program, back to what they are made of and ahead to what takes them.

A value is followed through fusions, calls, tuples, and loops that hand it on: the second element of
``%t = (f32[2], f32[8]) while(%s), body=%b`` is that of ``%s`` where ``%b`` returns what it was given."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from shardviz.hlo.collective import Origin
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.instructions import EVERY, Instructions
from shardviz.hlo.text.opcodes import ELEMENTS, MOVES, PLACES, RUNNING, base_op, whole_op

Path = tuple[int, ...]
"""The number of an element of a tuple, then of the tuple in it, and so on."""

MAX_LOOKS = 100_000
"""Values looked at in one module at most, by one question."""
_TPU_ASYNC = 'custom_call_target="AsyncCollective'
"""The start or the done of a collective in a fusion; its results are the collective's operand and result."""
_UNKNOWN = ("conditional", "recv", "infeed")
_WITH_ELEMENTS = PLACES - MOVES - {"get-tuple-element", "all-to-all"}
"""Opcodes whose results, where these are tuples, have an element for each operand."""
_FOLLOWED = PLACES | MOVES | {*RUNNING, *_UNKNOWN, "parameter", "while", "custom-call"}

_Value = TypeVar("_Value", bound=Hashable)
_Result = TypeVar("_Result")


def max_looks(text: str) -> int:
    """The values of a text that are looked at, at most, and no more than it has bytes: a computation has as
    many values as ways lead to it through calls, which a short text can make any number."""
    return min(MAX_LOOKS, len(text))


class Made(NamedTuple, Generic[_Value]):
    """A value that is made of others; with `only_moved` of nothing but their elements, if there are any."""

    operands: Sequence[_Value]
    only_moved: bool


def folded(
    value: _Value,
    known: dict[_Value, _Result],
    step: Callable[[_Value], tuple[Sequence[_Value], _Result]],
    fold: Callable[[_Value, list[_Result]], _Result],
    most: int,
) -> _Result | None:
    """The fact of a value, by the facts of what it is made of; None where more than `most` were looked at.
    `step` tells what it is made of, if that is known, and what else it is; `fold` puts results together. What
    is made of itself, as in a loop, is there the second of these. `known` has all results so far."""
    pending: list[tuple[_Value, Sequence[_Value]]] = [(value, ())]
    while pending:
        current, operands = pending.pop()
        if operands:
            known[current] = fold(current, [known[operand] for operand in operands])
        elif current not in known:
            operands, known[current] = step(current)
            if len(known) > most:
                return None
            if operands:
                pending.append((current, operands))
                pending.extend([(operand, ()) for operand in operands])
    return known[value]


@dataclass(eq=False, slots=True)
class CallSite:
    """A `line` that runs another computation, `depth` calls below the outermost; `outer` runs its own. Each
    is made once and compared by identity: a chain of calls costs no more to look up than one call."""

    line: Instruction
    outer: CallSite | None
    depth: int


class ProgramValue(NamedTuple):
    """The result of an instruction, as `caller` runs it; of a tuple maybe only what is at a `path` in it."""

    line: Instruction
    caller: CallSite | None = None
    path: Path = ()


_How = Made[ProgramValue] | Origin | None
COMPUTED: Made[ProgramValue] = Made((), False)
_CONSTANT: Made[ProgramValue] = Made((), True)


class Values:
    """The values of one text."""

    def __init__(self, lines: Instructions) -> None:
        self.lines = lines
        self._callers: dict[Computation, Instruction | None] = {}
        self._call_sites: dict[tuple[CallSite | None, Instruction], CallSite] = {}
        self._kept: dict[tuple[Computation, int], bool] = {}

    def taken(self, line: Instruction) -> Iterator[ProgramValue]:
        """The values that an instruction takes, each looked up when it is asked for."""
        made = (self.lines.operand(line, number) for number in range(len(line.operands)))
        return (ProgramValue(each) for each in made if each is not None)

    def how(self, value: ProgramValue) -> _How:
        """Return how a value is made; the origin itself of an argument; None if that is unknown."""
        made = self.moved(value)
        if made is not COMPUTED:
            return made
        return Made([ProgramValue(each, value.caller) for each in self.lines.taken(value.line)], False)

    def moved(self, value: ProgramValue) -> _How:
        """As `how`, but of a value that is computed `COMPUTED` alone: its operands are not looked up."""
        line, caller, path = value
        opcode, lines = whole_op(line.opcode), self.lines
        if opcode not in _FOLLOWED:
            return COMPUTED if opcode != "constant" and line.operands else _CONSTANT
        if opcode == "parameter":
            return self._parameter(value)
        if opcode in RUNNING and (callee := lines.callee(line)) is not None:
            root, site = lines.root(callee), self._call_site(value)
            return None if root is None or site is None else Made((ProgramValue(root, site, path),), True)
        if opcode == "while":
            # An element of its state that each run leaves as it is.
            body, before = lines.body(line), lines.operand(line, 0)
            if body is None or before is None or not self._hands_on(body, path):
                return None
            return Made((ProgramValue(before, caller, path),), True)
        if opcode in _UNKNOWN:
            return None
        if path and opcode in _WITH_ELEMENTS:
            made = lines.operand(line, path[0])
            return None if made is None else Made((ProgramValue(made, caller, path[1:]),), True)
        if opcode == "custom-call" and not line.says(_TPU_ASYNC):
            return COMPUTED if line.operands else _CONSTANT
        which = EVERY
        if line.opcode in MOVES:
            # Of what a copy begins, the first element is the copy.
            path = path[1:] if line.opcode == "copy-start" else path
            which = slice(1)
        elif opcode == "get-tuple-element" and (index := line.element_index) is not None:
            path = (index, *path)
        else:
            path, which = (), ELEMENTS.get(opcode, EVERY)
        return Made([ProgramValue(made, caller, path) for made in lines.taken(line, which)], True)

    def _parameter(self, value: ProgramValue) -> _How:
        line, caller, path = value
        number, home = line.parameter_number, line.home
        if number is None:
            return None
        if caller is not None:
            given, outer = self.lines.operand(caller.line, number), caller.outer
        elif home.is_entry:
            return Origin((number,))
        else:
            outside, outer = self.caller_of(home), None
            if outside is None or (outside.opcode == "while" and not self._hands_on(home, path)):
                return None
            given = self.lines.operand(outside, 0 if outside.opcode == "while" else number)
        return None if given is None else Made((ProgramValue(given, outer, path),), True)

    def _call_site(self, value: ProgramValue) -> CallSite | None:
        """The call that makes a value; None where a computation runs itself, which has no end."""
        line, outer, _ = value
        depth = 0 if outer is None else outer.depth + 1
        if depth > len(self.lines.computations.all):
            return None
        key = outer, line
        if key not in self._call_sites:
            self._call_sites[key] = CallSite(line, outer, depth)
        return self._call_sites[key]

    def _hands_on(self, body: Computation, path: Path) -> bool:
        """Return whether each run of a loop's body hands on an element of its state as it is."""
        if not path:
            return False
        key = body, path[0]
        if key not in self._kept:
            root = self.lines.root(body)
            is_tuple = root is not None and root.opcode == "tuple"
            kept = self.lines.operand(root, path[0]) if root and is_tuple else None
            is_element = kept is not None and kept.opcode == "get-tuple-element"
            state = self.lines.operand(kept, 0) if kept and is_element else None
            is_state = state is not None and state.opcode == "parameter"
            self._kept[key] = is_state and kept is not None and kept.element_index == path[0]
        return self._kept[key]

    def made_of(self, value: ProgramValue) -> _How:
        """As `how`; but a loop's element that its runs change comes from the runs and from before."""
        line, caller, path = value
        if line.opcode == "while":
            body, before = self.lines.body(line), self.lines.operand(line, 0)
            root = None if body is None else self.lines.root(body)
            if root is None or before is None or not path:
                return _CONSTANT
            return Made((ProgramValue(root, None, path), ProgramValue(before, caller, path)), True)
        made = self.how(value)
        if made is None and line.opcode == "parameter":
            loop = self.caller_of(line.home) if caller is None and path else None
            before = None if loop is None or loop.opcode != "while" else self.lines.operand(loop, 0)
            return _CONSTANT if before is None else Made((ProgramValue(before, None, path),), True)
        return made

    def used_by(self, value: ProgramValue) -> Iterator[ProgramValue]:
        """The values that are made with one at once: those of its users, or of who runs its computation."""
        line, _, path = value
        for user in self.lines.users(line):
            for number, name in enumerate(user.operands):
                if name == line.name:
                    yield from self._used_as(value, user, number)
        caller = self.caller_of(line.home) if line.is_root else None
        if caller is not None:
            yield ProgramValue(caller, None, path)
            if caller.opcode == "while":
                yield from self._given(line.home, 0, path)

    def _used_as(self, value: ProgramValue, user: Instruction, number: int) -> Iterator[ProgramValue]:
        """The values that a user makes of one that is its operand of this number."""
        path = value.path
        if user.opcode == "get-tuple-element":
            if not path or path[0] == user.element_index:
                yield ProgramValue(user, None, path[1:])
        elif user.opcode == "tuple":
            yield ProgramValue(user, None, (number, *path))
        elif user.opcode == "while":
            yield ProgramValue(user, None, path)
            if (body := self.lines.body(user)) is not None:
                yield from self._given(body, 0, path)
        elif whole_op(user.opcode) in RUNNING and (callee := self.lines.callee(user)) is not None:
            yield from self._given(callee, number, path)
        else:
            yield ProgramValue(user, None, path if user.opcode == "opt-barrier" else ())

    def _given(self, home: Computation, number: int, path: Path) -> Iterator[ProgramValue]:
        parameter = self.lines.parameter(home, number)
        if parameter is not None:
            yield ProgramValue(parameter, None, path)

    def caller_of(self, called: Computation) -> Instruction | None:
        """The loop, fusion, call or async wrapper that alone runs a computation."""
        if called not in self._callers:
            sites = map(self.lines.at, self.lines.computations.callers(called))
            runs = [
                line for line in sites if line and (line.opcode == "while" or base_op(line.opcode) in RUNNING)
            ]
            self._callers[called] = runs[0] if len(runs) == 1 else None
        return self._callers[called]
