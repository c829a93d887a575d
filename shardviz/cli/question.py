"""The options that put a question, read: an einsum, a mesh, and how the arrays are split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.planner import Problem


def problem_from_options(
    einsum: str,
    mesh: str,
    device_order: str | None,
    specs: str | None,
    sizes: str | None,
    dtype: str,
    axis_types: Literal["auto", "explicit"],
    ranked: bool = False,
) -> Problem:
    """The problem that the options of a command describe; specs of operands may be open where it is `ranked`.

    Raises `QuestionError` for what cannot be one."""
    from shardviz.notation import parse_mesh
    from shardviz.planner import problem_from_text

    if sizes is not None and not sizes.strip():
        raise QuestionError("--sizes is empty", "write b=8,d=2048,f=8192, or leave out --sizes")
    return problem_from_text(
        einsum,
        mesh=parse_mesh(mesh, device_order),
        specs=specs,
        sizes=sizes or "",
        dtype=dtype,
        axis_types=axis_types,
        ranked=ranked,
    )
