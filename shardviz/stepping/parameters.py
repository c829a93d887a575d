"""Options that belong to one operation or another → the operation, with JAX's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError, quote

if TYPE_CHECKING:
    from shardviz.collectives import Operation

PARAMETERS: dict[str, dict[str, str]] = {
    "all_gather": {"gather_dimension": "axis", "untiled": "tiled"},
    "psum": {},
    "pmean": {},
    "pmax": {},
    "pmin": {},
    "psum_scatter": {"scatter_dimension": "scatter_dimension", "untiled": "tiled"},
    "all_to_all": {"split_axis": "split_axis", "concat_axis": "concat_axis", "untiled": "tiled"},
    "ppermute": {"perm": "perm"},
    "pbroadcast": {"source": "source"},
    "ragged_all_to_all": {"send_sizes": "send_sizes"},
}
"""Every operation with the options that it takes, and JAX's name of each."""

NEEDED = {"perm": "'(0,1),(1,2)'", "send_sizes": "'1,2;0,3'"}
"""Options without which their operation means nothing, with an example."""

OTHER_NAMES = {
    "allgather": "all_gather",
    "gather": "all_gather",
    "allreduce": "psum",
    "sum": "psum",
    "mean": "pmean",
    "max": "pmax",
    "min": "pmin",
    "reducescatter": "psum_scatter",
    "alltoall": "all_to_all",
    "collectivepermute": "ppermute",
    "permute": "ppermute",
    "sendrecv": "ppermute",
    "broadcast": "pbroadcast",
    "collectivebroadcast": "pbroadcast",
    "raggedalltoall": "ragged_all_to_all",
}
"""JAX's names of what HLO, NCCL and MPI call otherwise, without dashes and underscores."""


def check_operation(name: str, given: Mapping[str, Any]) -> None:
    """Raise `QuestionError` for an operation that JAX does not have, and for options that are not its own.

    `given` are the options of `PARAMETERS` by name; None or False where they are left out.
    """
    if name not in PARAMETERS:
        from difflib import get_close_matches

        plain = name.lower().replace("-", "").replace("_", "")
        close = [OTHER_NAMES[plain]] if plain in OTHER_NAMES else get_close_matches(name[:40], PARAMETERS, 1)
        everything = f"the operations are {', '.join(PARAMETERS)}"
        raise QuestionError(
            f"there is no operation {quote(name)}", f"did you mean {close[0]}?" if close else everything
        )
    takes = PARAMETERS[name]
    for option, value in given.items():
        if value is not None and value is not False and option not in takes:
            options = " and ".join(map(_flag, takes)) or "no parameter"
            raise QuestionError(f"{_flag(option)} is not a parameter of {name}", f"{name} takes {options}")
        if value is None and option in takes and option in NEEDED:
            raise QuestionError(
                f"{name} needs {_flag(option)}", f"write for example {_flag(option)} {NEEDED[option]}"
            )


def operation_for(name: str, axes: tuple[str, ...], given: Mapping[str, Any], group_size: int) -> Operation:
    """The operation with JAX's parameters, from options that `check_operation` has seen."""
    from shardviz.collectives import OPERATIONS
    from shardviz.notation import parse_permutation, parse_send_sizes

    readers: dict[str, Callable[[Any], Any]] = {
        "untiled": lambda value: not value,
        "perm": lambda text: parse_permutation(text, group_size),
        "send_sizes": lambda text: parse_send_sizes(text, group_size),
    }
    fields = {"axes": axes} | {
        field: readers[option](given[option]) if option in readers else given[option]
        for option, field in PARAMETERS[name].items()
        if given[option] is not None
    }
    kind: Callable[..., Operation] = OPERATIONS[name]
    return kind(**fields)


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"
