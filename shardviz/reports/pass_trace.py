"""A compilation pass by pass, out of the folder that the compiler dumps into."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shardviz.errors import CompilerError

if TYPE_CHECKING:
    from shardviz.hlo.passes.stages import PassStage
    from shardviz.planner.problem import Problem
    from shardviz.reports.target_result import TargetResult

_MODULE = re.compile(r"^\s*(?:HloModule |module @)([^\s,{]+)", re.MULTILINE)


@dataclass(frozen=True)
class PassTrace:
    """One target's answer to one problem, and the stages of its compilation; none where it gave no answer."""

    compiled: TargetResult
    stages: tuple[PassStage, ...] = ()


def read_traced(compiled: TargetResult, folder: str, problem: Problem) -> PassTrace:
    """The stages of the compilation whose dumps stand in `folder`. Raises `CompilerError` when none do."""
    from shardviz.hlo.passes.dump_files import dump_files
    from shardviz.hlo.passes.stages import Dump, read_passes

    module = _MODULE.search(compiled.text)
    if compiled.status != "ok" or module is None:
        return PassTrace(compiled)
    paths = [path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()]
    dumps = []
    for file in dump_files(paths, module[1]):
        text = Path(folder, file.path).read_text(encoding="utf-8", errors="replace")
        dumps.append(Dump(file.path, text))
    if not dumps:
        raise CompilerError(
            f"the {compiled.target} compiler left no dump of its passes",
            "look at XLA_FLAGS: a flag of the user's may switch the dumps off",
        )
    placement = compiled.placement
    if placement is None:
        return PassTrace(compiled, read_passes(dumps, problem.mesh))
    return PassTrace(compiled, read_passes(dumps, placement.on(problem.mesh), placement.slices))
