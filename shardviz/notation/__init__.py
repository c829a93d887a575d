"""Text to objects and back: meshes, sizes, einsums, and every notation for one sharding.

Names are imported when they are first used: a command reads two or three notations, not all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.notation.book import (
        BookArray as BookArray,
        Product as Product,
        parse_product as parse_product,
        write_book as write_book,
    )
    from shardviz.notation.einsum import (
        Einsum as Einsum,
        parse_chain as parse_chain,
        parse_einsum as parse_einsum,
    )
    from shardviz.notation.mesh import parse_axes as parse_axes, parse_mesh as parse_mesh
    from shardviz.notation.notations import (
        NOTATIONS as NOTATIONS,
        Notation as Notation,
        detect as detect,
        find_notation as find_notation,
        layout_as_read as layout_as_read,
        parse_layout as parse_layout,
        read_arrays as read_arrays,
        read_sharding as read_sharding,
        translate as translate,
        write_all as write_all,
    )
    from shardviz.notation.numbers import (
        Numbers as Numbers,
        parse_numbers as parse_numbers,
        parse_permutation as parse_permutation,
        parse_send_sizes as parse_send_sizes,
        parse_shape as parse_shape,
        parse_sizes as parse_sizes,
    )
    from shardviz.notation.reading import Context as Context, Reading as Reading
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
            "book": "BookArray Product parse_product write_book",
            "einsum": "Einsum parse_chain parse_einsum",
            "mesh": "parse_axes parse_mesh",
            "notations": "NOTATIONS Notation detect find_notation layout_as_read parse_layout read_arrays "
            "read_sharding translate write_all",
            "numbers": "Numbers parse_numbers parse_permutation parse_send_sizes parse_shape parse_sizes",
            "reading": "Context Reading",
            "spec_string": "SpecPart parse_specs write_spec write_specs",
        },
    )
