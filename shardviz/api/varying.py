"""`shardviz.vary`: a plan's cost over sizes of a dimension or of a mesh axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.api.arguments import MachineLike, MeshLike, SpecsLike, as_machine
from shardviz.api.explaining import decided_problem
from shardviz.api.shown import Shown
from shardviz.documents.plans import sweep_document
from shardviz.notation.ranges import parse_range
from shardviz.planner.pricing.sweep import Sweep, sweep
from shardviz.targets.machines import placed_for

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.render.palette import Palette


@dataclass(frozen=True, repr=False)
class CostCurve(Shown):
    """The answer of `shardviz explain --vary`: `sweep` has the cost at every size, and the crossings."""

    sweep: Sweep

    def lines(self, width: int, palette: Palette) -> list[Text]:
        from shardviz.render.sweep_view import sweep_view

        return sweep_view(self.sweep, width, palette)

    def document(self) -> dict[str, Any]:
        return sweep_document(self.sweep)


def vary(
    einsum: str,
    over: str,
    *,
    mesh: MeshLike | None = None,
    specs: SpecsLike = None,
    sizes: Mapping[str, int] | str | None = None,
    dtype: str | None = None,
    machine: MachineLike = None,
) -> CostCurve:
    """Compute and communication of an einsum's plan over a range of sizes, and where they cross.

    `over` is a dimension or a mesh axis with its first and its last size, ``"b=1Ki:1Mi"``, in powers of two,
    or ``"b=1Ki:1Mi:4"``, in powers of four; an axis varies on the assumed machine alone. The other parameters
    are those of `explain`. Raises `QuestionError` for a question that cannot be read, for a size that its
    axes do not divide, and where a time is not known.
    """
    problem = decided_problem(einsum, mesh, specs, sizes, dtype)
    named = as_machine(machine)
    return CostCurve(sweep(problem, parse_range(over), lambda mesh: placed_for(named, (), mesh)))
