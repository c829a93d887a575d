"""Text to objects and back: meshes, sizes, einsums, and every notation for one sharding.

Names are imported when they are first used: a command reads two or three notations, not all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.notation.book import BookArray, write_book
    from shardviz.notation.einsum import Einsum, parse_chain, parse_einsum
    from shardviz.notation.mesh import parse_axes, parse_mesh
    from shardviz.notation.notations import (
        NOTATIONS,
        Notation,
        detect,
        find_notation,
        layout_as_read,
        parse_layout,
        read_arrays,
        read_sharding,
        translate,
        write_all,
    )
    from shardviz.notation.numbers import Numbers, parse_numbers
    from shardviz.notation.product import Product, parse_product
    from shardviz.notation.reading import Context, Reading
    from shardviz.notation.sends import parse_permutation, parse_send_sizes
    from shardviz.notation.sizes import parse_shape, parse_sizes
    from shardviz.notation.spec_string import SpecPart, parse_specs, write_spec, write_specs

__all__ = [
    "NOTATIONS",
    "BookArray",
    "Context",
    "Einsum",
    "Notation",
    "Numbers",
    "Product",
    "Reading",
    "SpecPart",
    "detect",
    "find_notation",
    "layout_as_read",
    "parse_axes",
    "parse_chain",
    "parse_einsum",
    "parse_layout",
    "parse_mesh",
    "parse_numbers",
    "parse_permutation",
    "parse_product",
    "parse_send_sizes",
    "parse_shape",
    "parse_sizes",
    "parse_specs",
    "read_arrays",
    "read_sharding",
    "translate",
    "write_all",
    "write_book",
    "write_spec",
    "write_specs",
]

_HOMES = {
    "book": ("BookArray", "write_book"),
    "einsum": ("Einsum", "parse_chain", "parse_einsum"),
    "mesh": ("parse_axes", "parse_mesh"),
    "notations": (
        "NOTATIONS",
        "Notation",
        "detect",
        "find_notation",
        "layout_as_read",
        "parse_layout",
        "read_arrays",
        "read_sharding",
        "translate",
        "write_all",
    ),
    "numbers": ("Numbers", "parse_numbers"),
    "product": ("Product", "parse_product"),
    "reading": ("Context", "Reading"),
    "sends": ("parse_permutation", "parse_send_sizes"),
    "sizes": ("parse_shape", "parse_sizes"),
    "spec_string": ("SpecPart", "parse_specs", "write_spec", "write_specs"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"shardviz.notation.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
