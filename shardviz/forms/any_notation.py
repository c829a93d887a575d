"""A sharding in any notation, read against the mesh that it needs."""

from __future__ import annotations

from shardviz.errors import NotationError, QuestionError, ShardvizError
from shardviz.forms.form import ProblemForm
from shardviz.notation import Context, Notation, Reading, detect, find_notation, parse_mesh, read_arrays
from shardviz.notation.mesh import mesh_in_text, spec_alone


def read_any(
    text: str, origin: str | None = None, mesh: str | None = None, rank: int | None = None
) -> tuple[Notation, tuple[Reading, ...], Context]:
    """Read against the mesh, or that of the text; against the usual one if there is none and it fits, else
    against none. `origin` is the key of the notation where several fit, `rank` the number of dimensions.

    Raises `NotationError` for a text that is in no notation, and `QuestionError` for another mesh than its
    own.
    """
    notation = find_notation(origin) if origin else detect(spec_alone(text))
    own = mesh_in_text(text)
    given = own if mesh is None else mesh
    asked = parse_mesh(ProblemForm.mesh if given is None else given)
    context = Context(asked, rank)
    if own is not None and spec_alone(text) != text and parse_mesh(own).shape != asked.shape:
        raise QuestionError(f"the text is on the mesh {parse_mesh(own)}, not {asked}", "leave out --mesh")
    text = spec_alone(text)
    try:
        return notation, read_arrays(text, context, notation), context
    except ShardvizError as error:
        if given is not None:
            raise
        unfit = error
    try:
        without = Context(rank=rank)
        return notation, read_arrays(text, without, notation), without
    except NotationError:
        raise
    except ShardvizError:
        # Without any mesh the complaint would be that there is none.
        raise unfit from None
