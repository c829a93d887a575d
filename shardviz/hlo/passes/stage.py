"""One step of a compiler: what it made of a program's shardings and collectives."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.hlo.collective import Collective
from shardviz.hlo.collective_matmul import CollectiveMatmul
from shardviz.hlo.mlir.tensor_splits import TensorSplit
from shardviz.hlo.text.folding import folded_lines

CONTEXT_LINES = 2


@dataclass(frozen=True)
class Dump:
    """One module as a compiler wrote it: the name of its file, which says after which pass, and the text."""

    name: str
    text: str


@dataclass(frozen=True)
class Stage:
    """One step of the compiler that changed shardings or collectives.

    `kind` is "input", "propagation" (Shardy), "partitioner" (the first collectives), "rewrite" (a later
    pass) or "schedule" (the final module). `title` says in a few words what it did, `changes` in a sentence
    each, `pass_name` is the compiler's name. `splits` are those that the stage decided; at the input those
    that were given. Collectives are those before and after, in program order, and `collective_matmuls` what
    permutes after it make up. Of the texts, `before_text` is that right before the pass, and for the
    schedule that after the stage before.
    """

    kind: str
    title: str
    pass_name: str
    before: tuple[Collective, ...]
    after: tuple[Collective, ...]
    splits: tuple[TensorSplit, ...] = ()
    before_text: str = ""
    after_text: str = ""
    changes: tuple[str, ...] = ()
    collective_matmuls: tuple[CollectiveMatmul, ...] = ()

    def diff(self) -> tuple[str, ...]:
        """A unified diff of the two modules, layouts, metadata and backend_config folded away.

        Empty for the input, which has nothing before it.
        """
        from difflib import unified_diff

        if not self.before_text:
            return ()
        before, after = [*folded_lines(self.before_text)], [*folded_lines(self.after_text)]
        lines = unified_diff(before, after, "before", self.pass_name, n=CONTEXT_LINES, lineterm="")
        return tuple(lines)
