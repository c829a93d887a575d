"""The files that XLA leaves when it dumps every pass: of which program, after which pass, in which order.

`xla_dump_to` with `xla_dump_hlo_pass_re=.*` writes, for the program ``jit_f`` with the number 4:

    module_0004.jit_f.before_optimizations.txt
    module_0004.jit_f.0007.spmd-partitioner.after_spmd-partitioning.before_call-inliner.txt
    module_0004.jit_f.cl_1014260217.0013.xla-partitioner.after_shardy-xla.before_dce.txt (TPU)
    module_0004.jit_f.cpu_after_optimizations.txt
    shardy/module_0004.jit_f/02.after_propagation.mlir

and many that are not modules: assembly, options, buffer assignments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from shardviz.errors import QuestionError, quote
from shardviz.hlo.text_file import HOW

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


class DumpFile(NamedTuple):
    """One file: its path in the folder, the module's name and XLA's number of it."""

    path: str
    module: str
    number: int


def dump_files(paths: Iterable[str], module: str) -> tuple[DumpFile, ...]:
    """The files of the program `module` (``jit_f``), in the order in which the compiler wrote them.

    Where a process has compiled several programs of that name, those of the last. Shardy's files come
    before the module that XLA dumped after it.
    """
    found: dict[int, list[tuple[tuple[int, int], DumpFile]]] = {}
    for path in paths:
        name = path.rpartition("/")[2]
        match = _SHARDY_FILE.fullmatch(path) or _FILE.fullmatch(name)
        groups = match.groupdict() if match else {}
        if match is None or match["module"] != module or groups.get("codegen"):
            continue
        number, place = int(match["number"]), (_FIRST if groups.get("first") else _LAST, 0)
        if groups["place"]:
            place = _PASSES if "first" in groups else _SHARDY, int(groups["place"])
        found.setdefault(number, []).append((place, DumpFile(path, module, number)))
    if not found:
        return ()
    latest = found[max(found)]
    partitioned = [place for place, file in latest if f".after_{SHARDY}." in file.path]
    start = min(partitioned, default=(1, -1))
    in_order = sorted(
        latest, key=lambda files: (*start, 0, files[0][1]) if files[0][0] == _SHARDY else (*files[0], 1, 0)
    )
    return tuple(file for _, file in in_order)


def distinct_names(files: Iterable[DumpFile]) -> dict[str, DumpFile]:
    """The files by the names of their modules; a process compiles several of one name, ``jit_f (2)``."""
    seen: Counter[str] = Counter()
    found = {}
    for file in files:
        seen[file.module] += 1
        number = seen[file.module]
        found[f"{file.module} ({number})" if number > 1 else file.module] = file
    return found


def final_files(paths: Iterable[str]) -> tuple[DumpFile, ...]:
    """The file of each module's final program, in the order in which they were compiled."""
    found: dict[tuple[int, str], DumpFile] = {}
    for path in sorted(paths, key=lambda each: "after_codegen" in each):
        match = _FILE.fullmatch(path.rpartition("/")[2])
        if match and match["last"]:
            key = int(match["number"]), match["module"]
            found[key] = DumpFile(path, key[1], key[0])
    return tuple(found[key] for key in sorted(found))


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
