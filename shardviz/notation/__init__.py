"""Text to objects and back: meshes, sizes, einsums, and every notation for one sharding.

Names are imported when they are first used: a command reads two or three notations, not all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.notation.arrays import read_arrays as read_arrays
    from shardviz.notation.axes import parse_axes as parse_axes
    from shardviz.notation.book import BookArray as BookArray, write_book as write_book
    from shardviz.notation.einsum import (
        Einsum as Einsum,
        parse_chain as parse_chain,
        parse_einsum as parse_einsum,
    )
    from shardviz.notation.layout import layout_as_read as layout_as_read, parse_layout as parse_layout
    from shardviz.notation.mesh import parse_mesh as parse_mesh
    from shardviz.notation.notations import (
        NOTATIONS as NOTATIONS,
        Notation as Notation,
        detect as detect,
        find_notation as find_notation,
        read_sharding as read_sharding,
        translate as translate,
        write_all as write_all,
    )
    from shardviz.notation.numbers import Numbers as Numbers, parse_numbers as parse_numbers
    from shardviz.notation.permutation import parse_permutation as parse_permutation
    from shardviz.notation.product import Product as Product, parse_product as parse_product
    from shardviz.notation.reading import Context as Context, Reading as Reading
    from shardviz.notation.send_sizes import parse_send_sizes as parse_send_sizes
    from shardviz.notation.shape import parse_shape as parse_shape
    from shardviz.notation.sizes import parse_sizes as parse_sizes
    from shardviz.notation.spec_string import (
        SpecPart as SpecPart,
        parse_specs as parse_specs,
        write_spec as write_spec,
        write_specs as write_specs,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "arrays": "read_arrays",
            "axes": "parse_axes",
            "book": "BookArray write_book",
            "einsum": "Einsum parse_chain parse_einsum",
            "layout": "layout_as_read parse_layout",
            "mesh": "parse_mesh",
            "notations": "NOTATIONS Notation detect find_notation read_sharding translate write_all",
            "numbers": "Numbers parse_numbers",
            "permutation": "parse_permutation",
            "product": "Product parse_product",
            "reading": "Context Reading",
            "send_sizes": "parse_send_sizes",
            "shape": "parse_shape",
            "sizes": "parse_sizes",
            "spec_string": "SpecPart parse_specs write_spec write_specs",
        },
    )
