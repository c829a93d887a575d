"""Which of a program's arguments a value comes from, found by following operands back."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

MAX_LOOKS = 1_000
"""Definitions looked at in one module at most: a chain of einsums has some hundreds, a model far more."""
MAX_ARGUMENTS = 64
"""A value that is made of more arguments than this has no origin worth telling."""

MOVES = frozenset(
    {
        *("copy", "convert", "bitcast", "bitcast-convert", "transpose", "reshape", "select", "pad"),
        *("slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "optimization-barrier"),
        *("tuple", "get-tuple-element", "fusion", "call", "async"),
        *("all-gather", "all-reduce", "reduce-scatter", "all-to-all"),
        *("collective-permute", "collective-broadcast"),
    }
)
"""HLO's operations that put elements elsewhere but compute nothing with those of different places.

An all-reduce is one of them: what it adds are the parts of one array.
"""


@dataclass(frozen=True)
class Origin:
    """The arguments of the program that a value comes from, numbered from 0.

    With `computed` it was computed from them, else it is made of their own elements.
    """

    arguments: tuple[int, ...]
    computed: bool = False


Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True)
class Made(Generic[Value]):
    """How a value is made: of which others, and whether their elements are only moved."""

    operands: tuple[Value, ...]
    only_moved: bool


class Origins(Generic[Value]):
    """Finds origins. `look` says how a value is made; its origin itself for an argument; None if unknown."""

    def __init__(self, look: Callable[[Value], Made[Value] | Origin | None]) -> None:
        self._look = look
        self._known: dict[Value, Origin | None] = {}
        self._looks = 0

    @property
    def is_given_up(self) -> bool:
        """Whether so much has been looked at that no more will be."""
        return self._looks > MAX_LOOKS

    def of(self, value: Value) -> Origin | None:
        """The origin of a value; None when it is unknown, or too much has been looked at."""
        pending: list[tuple[Value, Made[Value] | None]] = [(value, None)]
        while pending:
            current, made = pending.pop()
            if made is not None:
                self._known[current] = _joined(made, [self._known.get(each) for each in made.operands])
            elif current not in self._known:
                # A value that is made of itself stays unknown, and so does all that is given up.
                self._known[current] = None
                self._looks += 1
                if self.is_given_up:
                    return None
                found = self._look(current)
                if isinstance(found, Made):
                    pending.append((current, found))
                    pending.extend((each, None) for each in found.operands)
                else:
                    self._known[current] = found
        return self._known[value]


def _joined(made: Made[Value], origins: list[Origin | None]) -> Origin | None:
    arguments: set[int] = set()
    computed = False
    for origin in origins:
        if origin is None:
            return None
        arguments.update(origin.arguments)
        computed |= origin.computed
    if len(arguments) > MAX_ARGUMENTS:
        return None
    return Origin(tuple(sorted(arguments)), bool(arguments) and (computed or not made.only_moved))
