"""The form's own collective, or the only one of its plan, round by round: sends, values held, results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError
from shardviz.lessons.measures.answers import whole_number
from shardviz.lessons.measures.subject import position_of, walk_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.sharding import Mesh


def hops(resolved: ResolvedProblem) -> int:
    """The most links that a message crosses, where every axis of a group is a ring."""
    import numpy as np

    schedule = walk_of(resolved).schedule
    dims = schedule.pattern.dims
    farthest = 0
    for number in range(1, schedule.rounds + 1):
        sends = schedule.round(number)
        ends = zip(np.unravel_index(sends.src, dims), np.unravel_index(sends.dst, dims), dims, strict=True)
        crossed = sum(np.minimum((dst - src) % size, (src - dst) % size) for src, dst, size in ends)
        farthest = max(farthest, int(np.max(crossed, initial=0)))
    return farthest


def held(resolved: ResolvedProblem, device: str, round: str) -> tuple[float, ...]:
    """The numbers that a device holds after a round and still needs, in the order of the chunks."""
    walk = walk_of(resolved)
    after = whole_number(round)
    if after:
        walk.schedule.phase(after)
    _followed(walk.frames.after)
    group, member = walk.places[position_of(walk.mesh, device)]
    pieces = [piece for piece in walk.frames[after].pieces(member, group) if piece.needed]
    flat = [value for piece in pieces if piece.values is not None for value in _plain(piece.values).tolist()]
    return tuple(flat)


def result(resolved: ResolvedProblem, device: str) -> tuple[float, ...]:
    mesh = walk_of(resolved).mesh
    number = mesh.device_id(position_of(mesh, device))
    return tuple(results_of(resolved)[number].reshape(-1).tolist())


def results_of(resolved: ResolvedProblem) -> NDArray[np.float64]:
    """The numbers with which every device, by its number, ends. Raises `QuestionError` without numbers."""
    walk = walk_of(resolved)
    return _by_device(walk.mesh, _followed(walk.frames.after))


def operands_of(resolved: ResolvedProblem) -> NDArray[np.float64]:
    """The numbers with which every device begins, as `results_of` has those with which it ends."""
    walk = walk_of(resolved)
    return _by_device(walk.mesh, _followed(walk.question.shards))


def _by_device(mesh: Mesh, by_position: NDArray[Any]) -> NDArray[np.float64]:
    values = _plain(by_position)
    by_device = values.copy()
    by_device[[mesh.device_id(position) for position in range(mesh.size)]] = values
    return by_device


def _followed(numbers: NDArray[Any] | None) -> NDArray[Any]:
    if numbers is None:
        raise QuestionError("no numbers are followed here", "give the collective data, or a smaller array")
    return numbers


def _plain(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind == "c":
        raise QuestionError("complex numbers cannot be asked for", "take another dtype")
    return values.astype("float64")
