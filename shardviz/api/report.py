"""A program's collectives as an answer that shows itself; `shardviz.read_hlo` makes one of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.api.arguments import MeshLike, as_mesh
from shardviz.api.shown import Shown
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.hlo import Collective, HloModule, ShardyModule
    from shardviz.render.palette import Palette
    from shardviz.sharding import Mesh


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """The answer of `shardviz hlo`: a module and its collectives.

    `given` is the mesh that the user, or the user's program, named; None where there is none. `notes` are
    sentences on how `text` was read.
    """

    module: HloModule | ShardyModule
    given: Mesh | None
    text: str
    notes: tuple[str, ...] = ()

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """In program order, each with how often it runs."""
        return self.module.collectives

    @property
    def mesh(self) -> Mesh | None:
        """The mesh whose axes the collectives name: given, or inferred; None where nobody knows one."""
        return self.module.mesh

    def lines(self, width: int, palette: Palette) -> list[Text]:
        from shardviz.render.lines import sentence
        from shardviz.render.programs.hlo_view import hlo_view

        lines = hlo_view(self.module, self.given, width, palette)
        for note in (*self.notes, *self.module.unread):
            lines += sentence(note, width, lead="note: ")
        return lines

    def document(self) -> dict[str, Any]:
        from shardviz.documents.programs import hlo_document

        return hlo_document(self.module, self.given)


def read_hlo(text: str, mesh: MeshLike | None = None) -> Report:
    """The collectives in a text of HLO, StableHLO or Shardy, such as `compiled.as_text()`.

    `mesh` is text, a shardviz Mesh or a jax Mesh; without one, axes are inferred from the devices that take
    part in each collective. Damaged text gives what can be read, and `module.unread` tells the rest.

    Raises `NotationError` for a text that is none of these, `QuestionError` for a mesh that is not the
    module's.
    """
    from shardviz.hlo import read

    if not isinstance(text, str):
        raise QuestionError(
            f"a {type(text).__name__} is not text",
            "give compiled.as_text() or a file's read_text(); shardviz.inspect(…) takes programs",
        )
    given = None if mesh is None else as_mesh(mesh)
    return Report(read(text, given, infer=True), given, text)
