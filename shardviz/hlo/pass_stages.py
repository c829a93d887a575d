"""A compiler's dumps after each of its passes → the few passes that changed shardings or collectives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from shardviz.errors import NotationError, QuestionError, plural
from shardviz.hlo.collective import OPS, Collective, CollectiveMatmul
from shardviz.hlo.collective_changes import INSERTED, collective_changes, described, one
from shardviz.hlo.dump_files import pass_name
from shardviz.hlo.listing import stripped_lines
from shardviz.hlo.mlir.operations import MlirModule
from shardviz.hlo.mlir.shardings import ARGUMENT, RESULT, ShardedTensor, changed_shardings, tensor_shardings
from shardviz.hlo.mlir.shardy import read_module
from shardviz.hlo.module import read_hlo
from shardviz.sharding import Mesh

_IS_HLO = re.compile(r"\s*HloModule\s")
_IS_SHARDY = re.compile(r"^\s*module\b", re.MULTILINE)
_PARTITIONED = re.compile(r"\.after_(?:tpu-)?spmd-partitioning\b")
_BEFORE_PARTITIONING = ".after_shardy-xla."
PROGRAM = "the program as it was written"
CONTEXT_LINES = 2


@dataclass(frozen=True)
class Dump:
    """One module as a compiler wrote it: the name of its file, which says after which pass, and the text."""

    name: str
    text: str


@dataclass(frozen=True)
class PassStage:
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
    splits: tuple[ShardedTensor, ...] = ()
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
        before, after = [*stripped_lines(self.before_text)], [*stripped_lines(self.after_text)]
        lines = unified_diff(before, after, "before", self.pass_name, n=CONTEXT_LINES, lineterm="")
        return tuple(lines)


def read_passes(
    dumps: Sequence[Dump], mesh: Mesh | None = None, slices: Sequence[int] | None = None
) -> tuple[PassStage, ...]:
    """The stages of one program's compilation, from its dumps in the order in which they were written.

    Dumps that are not a module, or cannot be read as one, are passed over. With a `mesh` collectives have its
    axes; `slices` as in `read_hlo`. Raises `QuestionError` when the mesh has another number of devices than
    the program.
    """
    shardy = _shardy_states(dumps, mesh)
    hlo = [dump for dump in dumps if _IS_HLO.match(dump.text)]
    stages = [*_shardy_stages(shardy)]
    return (*stages, *_hlo_stages(hlo, mesh, slices, has_input=bool(stages)))


@dataclass(frozen=True)
class _State:
    """One module: its shardings, its collectives and its schedule."""

    dump: Dump
    collectives: tuple[Collective, ...]
    splits: tuple[ShardedTensor, ...] = ()
    matmuls: tuple[CollectiveMatmul, ...] = ()
    is_scheduled: bool = False

    def stage(self, kind: str, title: str, before: _State | None, changes: Sequence[str] = ()) -> PassStage:
        splits = self.splits
        if before is not None:
            splits = changed_shardings(before.splits, splits)
        elif kind == "input":
            splits = tuple(split for split in splits if split.op in (ARGUMENT, RESULT))
        return PassStage(
            kind,
            title,
            pass_name(self.dump.name),
            before.collectives if before else (),
            self.collectives,
            splits,
            before.dump.text if before else "",
            self.dump.text,
            tuple(changes),
            self.matmuls,
        )


def _shardy_states(dumps: Sequence[Dump], mesh: Mesh | None) -> list[_State]:
    """The modules of Shardy: those that declare a mesh of its own."""
    states: list[_State] = []
    for dump in dumps:
        if "sdy.mesh @" not in dump.text or not _IS_SHARDY.search(dump.text):
            continue
        module = MlirModule(dump.text)
        # Shardy inside XLA leaves out axes of size 1.
        for given in dict.fromkeys((mesh, None)):
            try:
                read = read_module(module, given)
            except NotationError:
                break
            except QuestionError:
                continue
            states.append(_State(dump, read.collectives, tensor_shardings(module)))
            break
    return states


def _shardy_stages(states: Sequence[_State]) -> Iterator[PassStage]:
    if not states:
        return
    yield states[0].stage("input", PROGRAM, None)
    partitioned = bool(states[0].collectives)
    for before, after in pairwise(states):
        changes = collective_changes(before.collectives, after.collectives)
        splits = changed_shardings(before.splits, after.splits)
        if "propagation" in after.dump.name:
            decided = plural(len(splits), "tensor")
            title = f"Shardy decides how {decided} {'is' if len(splits) == 1 else 'are'} split"
            yield after.stage("propagation", title if splits else "Shardy finds nothing left open", before)
        elif changes:
            kind = "rewrite" if partitioned else "partitioner"
            title = _title(changes) if partitioned else f"Shardy inserts {described(after.collectives)}"
            partitioned = True
            said = [change for change in changes if not change.startswith(INSERTED)]
            yield after.stage(kind, title, before, changes if kind == "rewrite" else said)
        elif splits:
            title = f"{plural(len(splits), 'tensor')} must be split in another way"
            yield after.stage("rewrite", title, before)


def _hlo_stages(
    dumps: Sequence[Dump], mesh: Mesh | None, slices: Sequence[int] | None, has_input: bool
) -> Iterator[PassStage]:
    states = [*_states(dumps, mesh, slices)]
    if not states:
        return
    if not has_input:
        yield states[0].stage("input", PROGRAM, None)
    names = [state.dump.name for state in states]
    partitioned = next((index for index, name in enumerate(names) if _PARTITIONED.search(name)), 0)
    if partitioned:
        yield _partitioning(states[:partitioned], states[partitioned])
    shown = previous = states[partitioned]
    for state in states[partitioned + 1 :]:
        changes = _changes(shown, state)
        if not partitioned and not shown.collectives and state.collectives:
            yield _partitioner(previous, state)
            shown, partitioned = state, 1
        elif changes and not (state is states[-1] and state.is_scheduled):
            # The text is that right before the pass, the collectives are those that were last shown.
            before = replace(shown, dump=previous.dump, splits=previous.splits)
            yield state.stage("rewrite", _title(changes), before, changes)
            shown = state
        previous = state
    if previous.is_scheduled:
        works = (collective.overlapped for collective in previous.collectives)
        overlapped = sum(any(work.op not in OPS for work in beside) for beside in works)
        beside = f", {overlapped} beside other work" if overlapped else ""
        title = f"the final schedule: {described(previous.collectives) or 'no collective'}{beside}"
        yield previous.stage("schedule", title, shown, _changes(shown, previous))


def _partitioning(earlier: Sequence[_State], after: _State) -> PassStage:
    """The partitioner's work, from the modules before its own dump.

    The passes within it leave dumps too, of half of its work: `tried` is what it put in first, of which
    some may be gone at the end.
    """
    first = earlier[0]
    inside = [index for index, state in enumerate(earlier) if len(state.collectives) > len(first.collectives)]
    marked = [index + 1 for index, state in enumerate(earlier) if _BEFORE_PARTITIONING in state.dump.name]
    end = min([*marked, *inside, len(earlier)])
    tried = earlier[inside[0]].collectives if inside else ()
    return _partitioner(earlier[max(0, end - 1)], after, tried)


def _partitioner(before: _State, after: _State, tried: Sequence[Collective] = ()) -> PassStage:
    changes = _changes(before, after)
    inserted = described(after.collectives) or "no collective"
    if before.collectives:
        return after.stage("partitioner", f"the partitioner leaves {inserted}", before, changes)
    left = {collective.op for collective in after.collectives}
    replaced = [collective for collective in tried if collective.op not in left]
    if replaced and left and not after.matmuls:
        changes += collective_changes(replaced, after.collectives)
    changes = tuple(change for change in changes if not change.startswith(INSERTED))
    return after.stage("partitioner", f"the partitioner inserts {inserted}", before, changes)


def _states(dumps: Sequence[Dump], mesh: Mesh | None, slices: Sequence[int] | None) -> Iterator[_State]:
    """The modules in order; most are that of the dump before, and read once."""
    text, module = "", None
    for dump in dumps:
        if module is None or dump.text != text:
            try:
                module = read_hlo(dump.text, mesh, slices=slices)
            except NotationError:
                continue
            text = dump.text
        yield _State(dump, module.collectives, (), module.collective_matmuls, module.is_scheduled)


def _changes(before: _State, after: _State) -> tuple[str, ...]:
    """The collective matmuls that came to be, and the changes of collectives."""
    known = {_kind(matmul) for matmul in before.matmuls}
    found = []
    for matmul in (matmul for matmul in after.matmuls if _kind(matmul) not in known):
        axes = f" over {', '.join(matmul.axes)}" if matmul.axes else ""
        ways = "both directions" if matmul.directions == 2 else "one direction"
        found.append(
            f"{one(matmul.op)}{axes} of {matmul.bytes:,} bytes is a collective matmul: "
            f"permutes in {ways} around {plural(len(matmul.matmuls), 'partial matmul')}"
        )
    in_order = before.is_scheduled and after.is_scheduled
    return (*found, *collective_changes(before.collectives, after.collectives, in_order))


def _kind(matmul: CollectiveMatmul) -> tuple[object, ...]:
    return matmul.op, matmul.axes, matmul.bytes, matmul.directions


def _title(changes: Sequence[str]) -> str:
    if len(changes) < 3:
        return "; ".join(changes)
    return f"{changes[0]}; {plural(len(changes) - 1, 'more change')}"
