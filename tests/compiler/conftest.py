"""A matmul to ask about."""

from __future__ import annotations

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem import Problem
from shardviz.planner.problem.reading import problem_from_text


@pytest.fixture
def matmul():
    """Builds the matmul of the issue: `matmul('XY,Y_->X_')`."""

    def build(
        specs: str,
        mesh: str = "X=2,Y=4",
        sizes: str = "b=8,d=2048,f=8192",
        einsum: str = "bd,df->bf",
        dtype: str = "bf16",
        axis_types: str = "auto",
    ) -> Problem:
        return problem_from_text(
            einsum, mesh=parse_mesh(mesh), specs=specs, sizes=sizes, dtype=dtype, axis_types=axis_types
        )

    return build
