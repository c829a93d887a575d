"""`--save FILE`: a program's report in short, kept for `shardviz diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.documents import summaries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardviz.reports.changes import ReportSummary


class SummaryPath(click.ParamType):  # type: ignore[type-arg]
    """The file of a summary: one that is not there, is empty or has another summary.

    It is looked at before anything is compiled, and a program that was named by mistake is not lost.
    """

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            # A link stays one: what it names is written.
            path = Path(value).resolve()
            if not path.exists():
                taken = ""
            elif not path.is_file():
                taken = "is not a file"
            else:
                with path.open(encoding="utf-8", errors="replace") as file:
                    head = file.read(summaries.HEAD)
                taken = "" if not head.strip() or summaries.says_summary(head) else "holds something else"
        except (OSError, ValueError) as error:
            taken = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        if taken or value == "-":
            self.fail(f"{quote(str(value))} {taken or 'is not the name of a file'}", param, ctx)
        return path


save = click.option(
    "--save",
    type=SummaryPath(),
    metavar="FILE",
    help="Keep all collectives, seconds and memory in FILE too, for shardviz diff.",
)


def keep(path: Path, summary: ReportSummary, unread: Sequence[str]) -> None:
    """Write a program, or several that run one after the other.

    Raises `QuestionError` where that fails, and where not all of them could be read: what is kept would be
    short.
    """
    if unread:
        raise QuestionError(
            f"{quote(str(path))} is not written: {unread[0]}", "it would not have the whole program"
        )
    summaries.save_summary(summary, path)
