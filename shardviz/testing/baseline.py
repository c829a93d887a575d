"""A program against its baseline: a summary of its costs that is kept in the user's repository."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from shardviz.documents.summaries import load_summary, save_summary, summary_text
from shardviz.errors import QuestionError, quote
from shardviz.render.programs.changes_view import short_path
from shardviz.reports.changes import ReportChanges, ReportSummary, broken_limits, parse_limits, report_changes
from shardviz.testing.assertions import TIMEOUT, report_on
from shardviz.testing.outcomes import RENEWED, UPDATE, BaselineChanged

WIDTH = 80
SLACK = 1.01
"""A check that names no limits allows for so much: the figures are estimates."""


def check_baseline(
    program: Any,
    /,
    *args: Any,
    path: str | os.PathLike[str],
    target: str | None = None,
    fail_on: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
) -> None:
    """Check that a program's costs are those of its baseline, the file at `path`.

    `program`, its arguments, `target`, `options` and `timeout` are those of `shardviz.inspect`, with keyword
    arguments in `kwargs`; a `Report` is accepted as well. The program is compiled, not run.

    The first run writes the file: commit it. If the environment variable CI is set, the test fails instead.
    ``SHARDVIZ_UPDATE=1`` rewrites it. The file is JSON with a line per kind of collective, and with seconds
    if there is a `target`. A relative `path` starts at the folder of the calling file.

    `fail_on` has the limits of `shardviz diff`, such as ``"new-collective,bytes+5%,seconds+5%,memory+1GiB"``.
    By default any change of a collective fails, an argument or output that is split in another way, and
    seconds or memory that differ by more than 1 %. Another mesh or machine always fails.

    Raises `BaselineChanged`, an `AssertionError`, with the changes, and `QuestionError` for a file or limits
    that cannot be read."""
    __tracebackhide__ = True

    limits = parse_limits("seconds+1%,memory+1%" if fail_on is None else fail_on)
    caller = Path(sys._getframe(1).f_code.co_filename)
    # A notebook has no folder, and starts at the current one.
    file = ((caller.parent if caller.exists() else Path.cwd()) / path).resolve()
    renews = os.environ.get(UPDATE, "") not in ("", "0")
    before = None
    if not renews:
        with suppress(FileNotFoundError):
            before = load_summary(file)
    if before is None and not renews and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise AssertionError(
            f"there is no baseline {short_path(file)}: run the test on your own machine, and commit the file"
        )
    report = report_on(program, args, kwargs, target, timeout, options)
    if report.module.unread:  # its baseline would be short
        raise QuestionError(f"the program cannot be read in full: {report.module.unread[0]}")
    after = report.summary()
    for limit in limits if fail_on is not None else ():
        if limit.quantity in ("seconds", "memory") and getattr(after, limit.quantity) is None:
            problem = f"{quote(limit.text)} is a limit of {limit.quantity}, and no machine is named"
            raise QuestionError(problem, "give target='v5e:4x4'")
    if before is None:
        _write(after, file, renews)
        return
    changes = report_changes(before, after)
    broken = broken_limits(limits, changes)
    if changes.is_same_hardware and not broken and (fail_on is not None or not _differs(changes)):
        return
    from shardviz.render.programs.changes_view import changes_text

    raise BaselineChanged(
        f"the program differs from {short_path(file)}; to accept the changes, run again with {UPDATE}=1",
        changes_text(changes, broken, WIDTH),
    )


def _write(after: ReportSummary, file: Path, renews: bool) -> None:
    old = None
    with suppress(OSError, UnicodeDecodeError):
        old = file.read_text(encoding="utf-8")
    if old == summary_text(after):
        return
    save_summary(after, file)
    reason = "written anew" if renews and old is not None else "written for the first time, commit it"
    RENEWED[short_path(file)] = reason
    print(f"shardviz: {quote(short_path(file), 200)} is {reason}", file=sys.stderr)


def _differs(changes: ReportChanges) -> bool:
    """Return whether collectives or splits have changed, or a figure fell; what rises breaks a limit."""
    before, after = changes.before, changes.after
    figures = (before.seconds, after.seconds), (before.memory, after.memory)
    has_fallen = (old is not None and new is not None and new * SLACK < old for old, new in figures)
    return bool(changes.changes or changes.arrays) or any(has_fallen)
