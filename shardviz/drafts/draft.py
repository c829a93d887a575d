"""The fields of the editor, as they stand: all of them text, so that nothing that is typed gets lost."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_TARGETS = "shardy,cpu"
OPEN = "?"
"""The spec of an array that the compiler may split as it likes."""

FLAG = "yes"
"""The value of a parameter that says all by being there: `untiled`."""


def parameter_names() -> tuple[str, ...]:
    """Options of `shardviz step` that only some algorithms or operations take."""
    from shardviz.collectives.operations import PARAMETERS

    return ("pieces", *PARAMETERS)


@dataclass(frozen=True)
class CollectiveDraft:
    """A collective of its own, in the words of `shardviz step`; an empty field is left to its default.

    `parameters` are some of `parameter_names`, in their order, with their texts:
    ``(("perm", "(0,1),(1,2)"),)``.
    """

    op: str = "all_gather"
    axis: str = ""
    data: str = ""
    shape: str = ""
    spec: str = ""
    dtype: str = ""
    algorithm: str = ""
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Draft:
    """What stands in the fields.

    `einsum` is an einsum, a chain of them with semicolons, or a product in the scaling book's notation
    without subscripts, which names the arrays: ``A[I, J] * B[J, K] -> C[I, K]``. `specs` has one text for
    each row of `rows`, a spec string after a valid entry. Empty `sizes` are the defaults, an empty
    `device_order` leaves the order to JAX. `collective` is what the player plays instead of the plan's
    own collectives.
    """

    mesh: str = "X=2,Y=4"
    einsum: str = "bd,df->bf"
    specs: tuple[str, ...] = ("XY", "Y_", "X_")
    sizes: str = ""
    dtype: str = "bf16"
    axis_types: str = "auto"
    device_order: str = ""
    targets: str = DEFAULT_TARGETS
    collective: CollectiveDraft | None = None


@dataclass(frozen=True)
class Row:
    """One array of the draft: place `place` (operands in order, then the result) of part `part`.

    `role` is "operand", "intermediate" (the result of the part before, of which the spec is a constraint) or
    "result".
    """

    part: int
    place: int
    name: str
    dims: tuple[str, ...]
    role: str


@dataclass(frozen=True)
class Fault:
    """What is wrong in a field: "mesh", "einsum", "specs.0", "sizes", "dtype", "axis_types", "device_order",
    "targets" or "collective"."""

    field: str
    message: str
    hint: str = ""
