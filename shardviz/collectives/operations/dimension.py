"""The dimension of a shard that an operation works along, and what is wrong with it."""

from __future__ import annotations

from shardviz.errors import QuestionError, plural
from shardviz.sharding.layout import MAX_RANK


class UnfitShard(QuestionError):
    """Shards of a shape with which an operation does not work; it would with `sizes` along `dim`."""

    def __init__(self, message: str, hint: str, dim: int, sizes: tuple[int, ...]) -> None:
        super().__init__(message, hint)
        self.dim, self.sizes = dim, sizes


def dimension(number: int, rank: int, what: str) -> int:
    """A dimension counted from 0; negative numbers count from the end.

    `what` has the `rank` dimensions: "a shard". Raises `QuestionError` for a number beyond them.
    """
    if not -rank <= number < rank:
        raise QuestionError(
            f"{what} of {plural(rank, 'dimension')} has no dimension {number}",
            f"dimensions go from 0 to {rank - 1}, or from -{rank} to -1"
            if rank
            else "a scalar has none: use shards of one dimension or more",
        )
    return number % rank


def shape_with(size: int, *dims: int) -> tuple[int, ...]:
    """The shape of fewest dimensions that has all of `dims`: `size` along the first of them, else 1."""
    rank = max(dim + 1 if dim >= 0 else -dim for dim in dims)
    if rank > MAX_RANK:
        # No array has such a dimension, as `dimension` will say.
        return (size,)
    shape = [1] * rank
    shape[dims[0]] = size
    return tuple(shape)


def check_divides(shape: tuple[int, ...], dim: int, group_size: int) -> None:
    """Raise `UnfitShard` unless the members of a group divide a dimension of their shards."""
    size = shape[dim]
    if size % group_size:
        below, above = size // group_size * group_size, -(-size // group_size) * group_size
        sizes = (below, above) if below else (above,)
        raise UnfitShard(
            f"dimension {dim} of a shard has {plural(size, 'element')}, which {group_size:,} devices do not "
            "divide",
            f"{' or '.join(f'{each:,}' for each in sizes)} elements would work",
            dim,
            sizes,
        )
    check_filled(shape, dim)


def check_is_group(shape: tuple[int, ...], dim: int, group_size: int) -> None:
    """Raise `UnfitShard` unless a dimension of the shards has one element for each member of a group."""
    if shape[dim] != group_size:
        tiled = shape[dim] % group_size == 0
        raise UnfitShard(
            f"dimension {dim} of a shard has {plural(shape[dim], 'element')}, but untiled it needs one for "
            f"each of the {plural(group_size, 'device')}",
            f"{group_size:,} elements would work{', and so would these, tiled' if tiled else ''}",
            dim,
            (group_size,),
        )


def check_filled(shape: tuple[int, ...], dim: int) -> None:
    """Raise `QuestionError` for a dimension without elements: JAX gathers and scatters none along it."""
    if not shape[dim]:
        raise QuestionError(
            f"dimension {dim} of a shard has no elements", "one element or more for each device would work"
        )
