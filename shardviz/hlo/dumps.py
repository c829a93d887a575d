"""A compiler's dumps after each of its passes → the files of one program in order, and the few passes that
changed shardings or collectives.

`xla_dump_to` with `xla_dump_hlo_pass_re=.*` writes, for the program ``jit_f`` with the number 4:

    module_0004.jit_f.before_optimizations.txt
    module_0004.jit_f.0007.spmd-partitioner.after_spmd-partitioning.before_call-inliner.txt
    module_0004.jit_f.cl_1014260217.0013.xla-partitioner.after_shardy-xla.before_dce.txt (TPU)
    module_0004.jit_f.cpu_after_optimizations.txt
    shardy/module_0004.jit_f/02.after_propagation.mlir

and many that are not modules: assembly, options, buffer assignments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from shardviz.errors import NotationError, QuestionError, plural, quote
from shardviz.hlo.collective import OPS, Collective, CollectiveMatmul
from shardviz.hlo.collective_changes import INSERTED, collective_changes, described, one
from shardviz.hlo.listing import stripped_lines
from shardviz.hlo.mlir.operations import MlirModule
from shardviz.hlo.mlir.shardings import ARGUMENT, RESULT, ShardedTensor, changed_shardings, tensor_shardings
from shardviz.hlo.mlir.shardy import read_module
from shardviz.hlo.module import read_hlo
from shardviz.hlo.text_file import HOW
from shardviz.sharding import Mesh

SHARDY = "shardy-xla"
"""XLA's name of the pass that runs Shardy."""

_FILE = re.compile(
    r"module_(?P<number>\d{1,9})\.(?P<module>[^/]+?)(?:\.cl_\d{1,12})?\."
    r"(?:(?P<place>\d{4,6})\.(?P<passed>[^/]+)"
    r"|(?P<first>before_optimizations)"
    r"|(?P<last>(?:[a-z]\w*(?:\.\w+)?_)?after_(?:optimizations|(?P<codegen>codegen))))\.(?:txt|hlo\.pb)"
)
"""Where TPUs leave two last programs, the one after code generation is as it runs."""
_SHARDY_FILE = re.compile(
    r"(?:.*/)?shardy/module_(?P<number>\d{1,9})\.(?P<module>[^/]+)/(?P<place>\d{1,3})\.(?P<passed>[^/]+)\.mlir"
)
_FIRST, _PASSES, _LAST, _SHARDY = range(4)
_PASS = re.compile(r"(?P<pipeline>[^/]*?)\.after_(?P<name>.+?)(?:\.before_[^/]*)?")
_IS_HLO = re.compile(r"\s*HloModule\s")
_IS_SHARDY = re.compile(r"^\s*module\b", re.MULTILINE)
_PARTITIONED = re.compile(r"\.after_(?:tpu-)?spmd-partitioning\b")
_BEFORE_PARTITIONING = ".after_shardy-xla."
PROGRAM = "the program as it was written"
CONTEXT_LINES = 2


class DumpFile(NamedTuple):
    """One file: its path in the folder, the module's name and XLA's number of it."""

    path: str
    module: str
    number: int


def dump_files(paths: Iterable[str], module: str) -> tuple[DumpFile, ...]:
    """The files of the program `module` (``jit_f``) as the compiler wrote them; of several programs of that
    name those of the last. Shardy's come before the module that XLA dumped after it."""
    by_number: dict[int, list[tuple[tuple[int, int], DumpFile]]] = {}
    for path in paths:
        match = _SHARDY_FILE.fullmatch(path) or _FILE.fullmatch(path.rpartition("/")[2])
        groups = match.groupdict() if match else {}
        if match is None or match["module"] != module or groups.get("codegen"):
            continue
        number, rank = int(match["number"]), (_FIRST if groups.get("first") else _LAST, 0)
        if groups["place"]:
            rank = _PASSES if "first" in groups else _SHARDY, int(groups["place"])
        by_number.setdefault(number, []).append((rank, DumpFile(path, module, number)))
    latest = by_number[max(by_number)] if by_number else []
    start = min((rank for rank, file in latest if f".after_{SHARDY}." in file.path), default=(1, -1))

    def order(placed: tuple[tuple[int, int], DumpFile]) -> tuple[int, ...]:
        place, _ = placed
        return (*start, 0, place[1]) if place[0] == _SHARDY else (*place, 1, 0)

    return tuple(file for _, file in sorted(latest, key=order))


def distinct_names(files: Iterable[DumpFile]) -> dict[str, DumpFile]:
    """The files by the names of their modules; a process compiles several of one name, ``jit_f (2)``."""
    seen: Counter[str] = Counter()
    by_name = {}
    for file in files:
        seen[file.module] += 1
        number = seen[file.module]
        by_name[f"{file.module} ({number})" if number > 1 else file.module] = file
    return by_name


def final_files(paths: Iterable[str]) -> tuple[DumpFile, ...]:
    """The file of each module's final program, in the order in which they were compiled."""
    finals: dict[tuple[int, str], DumpFile] = {}
    for path in sorted(paths, key=lambda each: "after_codegen" in each):
        match = _FILE.fullmatch(path.rpartition("/")[2])
        if match and match["last"]:
            key = int(match["number"]), match["module"]
            finals[key] = DumpFile(path, key[1], key[0])
    return tuple(finals[key] for key in sorted(finals))


def final_programs(folder: Path) -> tuple[DumpFile, ...]:
    """The final programs in a folder of dumps. Raises `QuestionError` where there is none."""
    where = quote(str(folder))
    try:
        names = sorted(str(path) for path in folder.iterdir())
    except OSError as error:
        raise QuestionError(f"cannot read {where}: {error.strerror}", HOW) from None
    files = final_files(names)
    if not files:
        texts = [name for name in names if name.endswith((".txt", ".mlir"))]
        named = f"name a file in it, such as {texts[0]}" if texts else HOW
        raise QuestionError(f"{where} is a folder without the final program of a module", named)
    return files


def pass_name(path: str) -> str:
    """``dce (spmd-cleanup)``: the pass after which a file was written, and its pipeline."""
    match = _SHARDY_FILE.fullmatch(path)
    if match is not None:
        return f"shardy {match['passed']}"
    match = _FILE.fullmatch(path.rpartition("/")[2])
    if match is None:
        return path
    if match["passed"] is None:
        return match["first"] or match["last"]
    passed = _PASS.fullmatch(match["passed"])
    if passed is None:
        return match["passed"]
    if passed["name"] == "pipeline-start":
        return f"before {passed['pipeline']}"
    return f"{passed['name']} ({passed['pipeline']})"


@dataclass(frozen=True)
class Dump:
    """One module as a compiler wrote it: the name of its file, which says after which pass, and the text."""

    name: str
    text: str


@dataclass(frozen=True)
class PassStage:
    """One step of the compiler that changed shardings or collectives.

    `kind` is "input", "propagation" (Shardy), "partitioner" (the first collectives), "rewrite" (a later pass)
    or "schedule" (the final module). `title` says in a few words what it did, `changes` in a sentence each,
    `pass_name` is the compiler's name. `splits` are those that the stage decided; at the input those given.
    Collectives are those before and after, in program order, and `collective_matmuls` what permutes after it
    make up. `before_text` is that right before the pass, of the schedule that after the stage before."""

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
        """A unified diff of the modules without layouts, metadata, backend_config; empty for the input."""
        from difflib import unified_diff

        if not self.before_text:
            return ()
        before, after = [*stripped_lines(self.before_text)], [*stripped_lines(self.after_text)]
        return tuple(unified_diff(before, after, "before", self.pass_name, n=CONTEXT_LINES, lineterm=""))


def read_passes(
    dumps: Sequence[Dump], mesh: Mesh | None = None, slices: Sequence[int] | None = None
) -> tuple[PassStage, ...]:
    """The stages of one program's compilation, from its dumps in the order in which they were written. Dumps
    that are not a module, or cannot be read as one, are passed over. With a `mesh` collectives have its axes;
    `slices` as in `read_hlo`. Raises `QuestionError` when the mesh has another number of devices than the
    program."""
    stages = [*_shardy_stages([*_shardy_states(dumps, mesh)])]
    return (*stages, *_hlo_stages([*_hlo_states(dumps, mesh, slices)], has_input=bool(stages)))


class _State(NamedTuple):
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
        texts = before.dump.text if before else "", self.dump.text
        earlier = before.collectives if before else ()
        name = pass_name(self.dump.name)
        return PassStage(
            kind, title, name, earlier, self.collectives, splits, *texts, tuple(changes), self.matmuls
        )


def _shardy_states(dumps: Sequence[Dump], mesh: Mesh | None) -> Iterator[_State]:
    """The modules of Shardy: those that declare a mesh of its own."""
    for dump in dumps:
        if "sdy.mesh @" not in dump.text or not _IS_SHARDY.search(dump.text):
            continue
        module = MlirModule(dump.text)
        # Shardy inside XLA leaves out axes of size 1.
        for given in dict.fromkeys((mesh, None)):
            try:
                collectives = read_module(module, given).collectives
            except NotationError:
                break
            except QuestionError:
                continue
            yield _State(dump, collectives, tensor_shardings(module))
            break


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


def _hlo_states(dumps: Sequence[Dump], mesh: Mesh | None, slices: Sequence[int] | None) -> Iterator[_State]:
    """The modules of XLA; most are that of the dump before, and read once."""
    text, module = "", None
    for dump in dumps:
        if not _IS_HLO.match(dump.text):
            continue
        if module is None or dump.text != text:
            try:
                module = read_hlo(dump.text, mesh, slices=slices)
            except NotationError:
                continue
            text = dump.text
        yield _State(dump, module.collectives, (), module.collective_matmuls, module.is_scheduled)


def _hlo_stages(states: Sequence[_State], has_input: bool) -> Iterator[PassStage]:
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
            before = shown._replace(dump=previous.dump, splits=previous.splits)
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
    """The partitioner's work; its own passes leave dumps of half of it: what it `tried` may be gone."""
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


def _changes(before: _State, after: _State) -> tuple[str, ...]:
    """The collective matmuls that came to be, and the changes of collectives."""
    known = {(each.op, each.axes, each.bytes, each.directions) for each in before.matmuls}
    sentences = []
    for matmul in after.matmuls:
        if (matmul.op, matmul.axes, matmul.bytes, matmul.directions) not in known:
            axes = f" over {', '.join(matmul.axes)}" if matmul.axes else ""
            ways = "both directions" if matmul.directions == 2 else "one direction"
            sentences.append(
                f"{one(matmul.op)}{axes} of {matmul.bytes:,} bytes is a collective matmul: "
                f"permutes in {ways} around {plural(len(matmul.matmuls), 'partial matmul')}"
            )
    in_order = before.is_scheduled and after.is_scheduled
    return (*sentences, *collective_changes(before.collectives, after.collectives, in_order))


def _title(changes: Sequence[str]) -> str:
    if len(changes) < 3:
        return "; ".join(changes)
    return f"{changes[0]}; {plural(len(changes) - 1, 'more change')}"
