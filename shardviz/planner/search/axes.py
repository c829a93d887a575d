"""The axes of the meshes that a search looks at: a name, what the axis is for, and its size where it is
fixed.

The kinds are those of training systems: `data` splits the examples and holds every parameter whole, `fsdp`
splits the examples and the parameters (fully sharded data parallelism, ZeRO), `tensor` splits the dimensions
of parameters and what is made with them (Megatron), `sequence` the positions of each example, `expert` the
experts, `pipeline` the layers. An axis of the kind `any` may split any dimension of any array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from shardviz.errors import NotationError, quote
from shardviz.sharding.mesh import is_axis_name

Kind = Literal["data", "fsdp", "tensor", "sequence", "expert", "pipeline", "any"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OTHER_NAMES: dict[str, Kind] = {
    "dp": "data",
    "batch": "data",
    "replica": "data",
    "zero": "fsdp",
    "tp": "tensor",
    "mp": "tensor",
    "model": "tensor",
    "sp": "sequence",
    "cp": "sequence",
    "context": "sequence",
    "seq": "sequence",
    "ep": "expert",
    "pp": "pipeline",
    "stage": "pipeline",
}
"""Names that people give such axes."""
DEFAULT_AXES = "data,fsdp,tensor"
MAX_AXES = 5
MAX_FREE = 3
"""Axes of the kind `any`: with more there are too many splits of a statement."""


@dataclass(frozen=True)
class SearchAxis:
    """An axis of the meshes to look at; `size` is None where the search chooses it."""

    name: str
    kind: Kind
    size: int | None = None


def kind_of(name: str) -> Kind:
    """The kind that an axis of this name has where none is given; `any` for a name that says nothing."""
    word = name.lower()
    named = next((kind for kind in KINDS if kind == word), None)
    return named or OTHER_NAMES.get(word, "any")


def parse_axes(text: str) -> tuple[SearchAxis, ...]:
    """Read ``data,fsdp,tensor``, ``X,Y``, ``X=fsdp,Y=tensor``, ``data,tensor=8``.

    Raises `NotationError` for a name that is not an axis's, one that stands twice, and a size of 0.
    """
    found: list[SearchAxis] = []
    place = 0
    for piece in text.split(","):
        word, start = piece.strip(), place + len(piece) - len(piece.lstrip())
        place += len(piece) + 1
        span = (text, start, start + max(1, len(word)))
        name, equals, value = (part.strip() for part in word.partition("="))
        hint = "write names, with a kind or a size where needed: data,X=fsdp,tensor=8"
        if not is_axis_name(name):
            raise NotationError(f"{quote(name)} is not an axis name,", *span, hint)
        if any(axis.name == name for axis in found):
            raise NotationError(f"the axis {name} stands twice,", *span, hint)
        kind, size = kind_of(name), None
        if value.isascii() and value.isdigit() and len(value) < 10 and int(value):
            size = int(value)
        elif equals:
            said = next((each for each in KINDS if each == kind_of(value) and value), None)
            if said is None or (said == "any" and value != "any"):
                problem = f"{quote(value)} is neither a kind of axis nor a size,"
                raise NotationError(problem, *span, f"the kinds are {', '.join(KINDS)}")
            kind = said
        found.append(SearchAxis(name, kind, size))
    if len(found) > MAX_AXES:
        raise NotationError(
            f"a search takes at most {MAX_AXES} axes, not {len(found)},", text, 0, len(text), "use fewer"
        )
    if sum(axis.kind == "any" for axis in found) > MAX_FREE:
        raise NotationError(
            f"more than {MAX_FREE} axes may split anything,",
            *(text, 0, len(text)),
            f"call some by their kind: {', '.join(KINDS[:-1])}",
        )
    if sum(axis.kind == "pipeline" for axis in found) > 1:
        raise NotationError("several axes split the layers,", text, 0, len(text), "use one pipeline axis")
    return tuple(found)
