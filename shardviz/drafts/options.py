"""Options of `shardviz explain` and `shardviz tui` → a draft."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from shardviz.drafts.draft import DEFAULT_TARGETS, Draft
from shardviz.drafts.edits.carrying import enter_einsum, sizes_text
from shardviz.drafts.edits.mesh_axes import enter_mesh
from shardviz.drafts.parsing import spec_texts
from shardviz.drafts.plain_text import one_line

if TYPE_CHECKING:
    from shardviz.planner import Problem


def draft_from_options(
    einsum: str | None = None,
    *,
    mesh: str | None = None,
    device_order: str | None = None,
    specs: str | None = None,
    sizes: str | None = None,
    dtype: str = "bf16",
    axis_types: Literal["auto", "explicit"] = "auto",
    target: str = DEFAULT_TARGETS,
) -> Draft:
    """The draft of the problem that `shardviz explain` would answer, with these options.

    Without an einsum it is the usual one, split as usual where no specs are given; any other einsum without
    specs is not split. Raises `ShardvizError` as `problem_from_text` does, and for unknown targets.
    """
    from shardviz.compiler import parse_targets
    from shardviz.drafts.edits import enter
    from shardviz.notation import parse_mesh
    from shardviz.planner import problem_from_text

    usual = Draft()
    text = usual.einsum if einsum is None else one_line(einsum)
    asked = parse_mesh(usual.mesh if mesh is None else mesh, device_order)
    if einsum is None and specs is None:
        *operands, result = enter_mesh(usual, str(asked)).specs
        specs = f"{','.join(operands)}->{result}"
    problem = problem_from_text(
        text, mesh=asked, specs=specs, sizes=sizes or "", dtype=dtype, axis_types=axis_types
    )
    targets = ",".join(found.name for found in parse_targets(target)) or "none"
    draft = Draft(
        mesh=str(asked),
        einsum="",
        specs=(),
        sizes=_sizes(problem, text, sizes or ""),
        dtype=problem.result.dtype,
        axis_types=axis_types,
        targets=targets,
    )
    draft = enter_einsum(draft, text)
    if specs is not None or "[" in text:
        arrays = [array for part in problem.parts for array in (*part.operands, part.result)]
        draft = replace(draft, specs=spec_texts([array.spec for array in arrays]))
    return draft if device_order is None else enter(draft, "device_order", device_order)


def _sizes(problem: Problem, text: str, sizes: str) -> str:
    """The sizes as they were given; those of all dimensions where only the specs say how many there are."""
    from shardviz.notation import parse_sizes

    known = {
        dim: size
        for part in problem.parts
        for array in (*part.operands, part.result)
        for dim, size in zip(array.dims, array.shape, strict=True)
    }
    said_by_specs = not sizes.strip() and "..." in text and "...0" in known
    return sizes_text(known if said_by_specs else parse_sizes(sizes))
