"""The work beside a collective, worked out when it is first looked at: a long module has much of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from shardviz.hlo.collective import Work


class Meanwhile(Sequence["Work"]):
    """What `find` gives of its arguments, as a sequence that equals the tuple of it."""

    def __init__(self, find: Callable[..., tuple[Work, ...]], *arguments: object) -> None:
        self._find = find
        self._arguments = arguments

    @cached_property
    def _works(self) -> tuple[Work, ...]:
        return self._find(*self._arguments)

    @overload
    def __getitem__(self, index: int) -> Work: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Work, ...]: ...
    def __getitem__(self, index: int | slice) -> Work | tuple[Work, ...]:
        return self._works[index]

    def __len__(self) -> int:
        return len(self._works)

    def __eq__(self, other: object) -> bool:
        return self._works == (other._works if isinstance(other, Meanwhile) else other)

    def __hash__(self) -> int:
        return hash(self._works)

    def __repr__(self) -> str:
        return repr(self._works)

    def __reduce__(self) -> tuple[type[tuple[Work, ...]], tuple[tuple[Work, ...]]]:
        return tuple, (self._works,)
