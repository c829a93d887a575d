"""A form with the mesh and the shardings that a search has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shardviz.forms.form import ProblemForm
from shardviz.forms.parsing import parsed, spec_texts
from shardviz.notation.mesh import ROW_MAJOR
from shardviz.sharding import Mesh, PartitionSpec


def with_shardings(form: ProblemForm, mesh: Mesh, specs: Mapping[str, PartitionSpec]) -> ProblemForm:
    """The form on a mesh, its arrays split as `specs` has them by name; what that lacks is open.

    A mesh with an order has its devices in that of their ids.
    """
    einsums = parsed(form).einsums
    rows = () if einsums is None else einsums.rows
    return replace(
        form,
        mesh=str(mesh),
        device_order=ROW_MAJOR if mesh.device_order else "",
        specs=spec_texts([specs.get(row.name) for row in rows]),
    )
