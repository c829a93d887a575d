"""The cost of a program in short, the changes from one program to another, and the file that keeps a summary
in a repository: JSON, one line for a collective or an array, always the same bytes. Its sum `wire_bytes` is
for those who read it; a reader computes its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardviz.documents.fields import KINDS, SCHEMA, record
from shardviz.documents.plans import PHASES
from shardviz.errors import QuestionError, quote
from shardviz.strict_table import ErrorAt, StrictTable
from shardviz.user_files import open_file, replace_file

if TYPE_CHECKING:
    from shardviz.reports.changes import ReportSummary

SOURCES = {
    "source": lambda line: line.source or None,
    "arrays": lambda summary: summary.arrays or None,
}
MAX_BYTES = 10_000_000
HEAD = 1000
"""Characters of a file in which it says that it is a summary."""
MAX_LINES = 20_000
MOST = 2**62
MAX_TEXT = 2_000
HINT = (
    "--save or SHARDVIZ_UPDATE=1 writes such a file: write it anew, or take it from the repository's history"
)


def summary_text(summary: ReportSummary) -> str:
    """The text of the file. It depends on the summary alone, and a line of it is a collective or an array."""
    write = partial(json.dumps, ensure_ascii=False)
    fields = []
    for key, value in KINDS["summary"].document(summary).items():
        lines = ",\n".join(f"    {write(line)}" for line in value) if isinstance(value, list) else ""
        listed = f"[\n{lines}\n  ]" if lines else "[\n  ]"
        fields.append(f"  {write(key)}: {listed if isinstance(value, list) else write(value)}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def says_summary(head: str) -> bool:
    """Return whether the first `HEAD` characters of a file say that it is one of these."""
    return is_summary(head) and '"kind": "summary"' in head


def is_summary(text: str) -> bool:
    """Return whether a text is to be read as JSON; HLO text never begins so."""
    return text.lstrip().startswith("{")


def read_summary(text: str, name: str) -> ReportSummary:
    """Read the text of the file `name`. Raises `QuestionError` with the place of what is wrong."""
    # Imported late: the schemas need no report.
    from shardviz.reports.changes import ArrayLine, ReportSummary, SummaryLine

    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise _damaged(name)("", reason, HINT) from None
    except (ValueError, RecursionError):
        raise _damaged(name)("", "it is not JSON that can be read", HINT) from None
    table = StrictTable(values, _damaged(name))
    for key, wanted in (("kind", "summary"), ("schema", SCHEMA)):
        if key in table and values[key] != wanted:
            table.fail(key, f"it is {quote(str(values[key]), 30)}, not {quote(wanted)}", HINT)
    wanted_keys = KINDS["summary"].record.schema["properties"]
    table.exactly([key for key in wanted_keys if key != "arrays" or key in table])
    sizes = table.table("mesh")
    lines = table.tables("collectives")
    if len(lines) > MAX_LINES:
        table.fail("collectives", f"there are {len(lines):,}", f"at most {MAX_LINES:,} are read")
    return ReportSummary(
        tuple((axis, sizes.count(axis, MOST)) for axis in sizes.values),
        table.line("machine", MAX_TEXT),
        tuple(SummaryLine(*_values(line)) for line in lines),
        _seconds(table),
        None if values["memory_bytes"] is None else table.count("memory_bytes", MOST),
        tuple(ArrayLine(**_texts(line)) for line in table.tables("arrays")) if "arrays" in table else (),
    )


def _texts(table: StrictTable) -> dict[str, str]:
    table.exactly(record("summaries", "array").schema["properties"])
    return {key: table.line(key, MAX_TEXT) for key in table.values}


def _values(table: StrictTable) -> Iterator[Any]:
    """The fields of a collective, in their order."""
    table.exactly(record("summaries", "line").schema["properties"])
    yield table.line("op", MAX_TEXT)
    axes = table.listed("axes", MAX_LINES)
    yield tuple(axes.line(number, MAX_TEXT) for number in axes.values)
    yield None if table.values["phase"] is None else table.choice("phase", PHASES)
    yield table.line("place", MAX_TEXT)
    yield table.line("shape", MAX_TEXT)
    yield None if table.values["runs"] is None else table.count("runs", MOST)
    yield from (table.count(key, MOST) for key in ("bytes", "wire_bytes", "overlapped"))
    yield table.typed("in_loop", bool)


def _seconds(table: StrictTable) -> float | None:
    value = table.values["seconds"]
    if value is None:
        return None
    seconds = float(table.typed("seconds", int if type(value) is int else float))
    if not 0 <= seconds < float("inf"):
        table.fail("seconds", "it is not a number of seconds")
    return seconds


def _damaged(name: str) -> ErrorAt:
    """The errors of the file `name`."""

    def error_at(key: str, reason: str, hint: str) -> QuestionError:
        return QuestionError(f"{quote(name)}{f', {key}' if key else ''}: {reason}", hint or HINT)

    return error_at


def load_summary(path: Path) -> ReportSummary:
    """Read a file. Raises `QuestionError`, and `FileNotFoundError` for one that is not there."""
    name = str(path)
    try:
        with open_file(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise QuestionError(f"{quote(name)} has more than {MAX_BYTES:,} bytes", HINT)
        text = content.decode("utf-8")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError:
        raise QuestionError(f"{quote(name)} is not UTF-8", HINT) from None
    except OSError as error:
        raise QuestionError(f"cannot read {quote(name)}: {error.strerror}") from None
    return read_summary(text, name)


def save_summary(summary: ReportSummary, path: Path) -> None:
    """Write a file, with the folders above it; two processes may write the same. Raises `QuestionError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, summary_text(summary))
    except OSError as error:
        problem = f"cannot write {quote(str(path))}: {error.strerror}"
        raise QuestionError(problem, "name a file that can be written") from None
