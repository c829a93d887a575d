"""The operations: what each collective of `jax.lax` means, one family a file, and one of them by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shardviz.collectives.operation import Operation, Parameter
from shardviz.collectives.operations.transfers import AllGather, PBroadcast, PPermute
from shardviz.collectives.operations.transfers import AllToAll, RaggedAllToAll
from shardviz.collectives.operations.reductions import PMax, PMean, PMin, PSum, PSumScatter
from shardviz.errors import QuestionError, most_like, quote

_ALL = (AllGather, PSum, PMean, PMax, PMin, PSumScatter, AllToAll, PPermute, PBroadcast, RaggedAllToAll)
OPERATIONS: dict[str, type[Operation]] = {operation.name: operation for operation in _ALL}

_LAST_FIRST = [parameter for kind in reversed(OPERATIONS.values()) for parameter in reversed(kind.takes)]
PARAMETERS: dict[str, Parameter] = {
    parameter.name: parameter for parameter in reversed(dict.fromkeys(_LAST_FIRST))
}
"""Every parameter of an operation by name, in the order of the last operation that takes it."""

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
"""JAX's operations by their names in HLO, NCCL and MPI, without dashes and underscores."""


def takers(parameter: Parameter) -> list[str]:
    return [name for name, kind in OPERATIONS.items() if parameter in kind.takes]


MAX_EXAMPLE = 200


def check_operation(name: str, given: Mapping[str, Any]) -> None:
    """Raise `QuestionError` for an operation that JAX does not have, and for parameters that are not its
    own."""
    if name not in OPERATIONS:
        plain = name.lower().replace("-", "").replace("_", "")
        close = OTHER_NAMES.get(plain) or most_like(name, OPERATIONS)
        everything = f"the operations are {', '.join(OPERATIONS)}"
        problem = f"unknown operation {quote(name)}"
        raise QuestionError(problem, f"did you mean {close}?" if close else everything)
    takes = OPERATIONS[name].takes
    for option, value in given.items():
        parameter = PARAMETERS[option]
        if value is not None and value is not False and parameter not in takes:
            flags = " and ".join(parameter.flag for parameter in takes) or "no parameter"
            raise QuestionError(f"{parameter.flag} is not a parameter of {name}", f"{name} takes {flags}")


def check_needed(name: str, given: Mapping[str, Any], group_size: int) -> None:
    """Raise `QuestionError` where a parameter is missing without which the operation means nothing."""
    for parameter in OPERATIONS[name].takes:
        if parameter.example_for is not None and given[parameter.name] is None:
            example = parameter.example_for(group_size)
            size = group_size if len(example) <= MAX_EXAMPLE else 2
            few = "" if size == group_size else f" for a group of {size}"
            hint = f"write for example {parameter.flag} '{parameter.example_for(size)}'{few}"
            raise QuestionError(f"{name} needs {parameter.flag}", hint)


def operation_for(name: str, axes: tuple[str, ...], given: Mapping[str, Any], group_size: int) -> Operation:
    """The operation with JAX's parameters. Raises as `check_needed`."""
    kind: Callable[..., Operation] = OPERATIONS[name]
    check_needed(name, given, group_size)
    fields = {
        parameter.field: parameter.read(given[parameter.name], group_size)
        for parameter in OPERATIONS[name].takes
        if given[parameter.name] is not None
    }
    return kind(axes=axes, **fields)
