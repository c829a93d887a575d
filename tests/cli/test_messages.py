"""Progress on stderr while compilers work."""

from __future__ import annotations

import io
import re
import sys

import pytest

from shardviz.cli import messages
from shardviz.cli.process import CLEAR_LINE
from shardviz.compiler.requests import CompilerRequest


class Terminal(io.StringIO):
    """A terminal, and an answer that is there as soon as one was told to wait."""

    def __init__(self, pending: CompilerRequest[str]) -> None:
        super().__init__()
        self._pending = pending

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        if self._pending.stage in self.getvalue():
            self._pending.settle("answer")


def waiting(stage: str) -> CompilerRequest[str]:
    pending: CompilerRequest[str] = CompilerRequest(None, str)
    pending.stage = stage
    return pending


@pytest.mark.parametrize(
    ("columns", "others"),
    [("200", "; not ready: v5e:2x4, h100:8"), ("50", "; not ready: v5e:2x4"), ("30", "")],
)
def test_those_without_an_answer_are_told(monkeypatch: pytest.MonkeyPatch, columns: str, others: str) -> None:
    first, ready, *late = (waiting(stage) for stage in ("compiling", "", "", ""))
    monkeypatch.setattr(sys, "stderr", told := Terminal(first))
    monkeypatch.setattr(messages, "TICK_S", 0.01)
    monkeypatch.setenv("COLUMNS", columns)
    ready.settle("done")
    names = [("cpu", ready), ("v5e:2x4", late[0]), ("h100:8", late[1])]
    assert messages.wait_for(first, "v2:2x2", names) == "answer"
    first_line, end = told.getvalue().removeprefix(CLEAR_LINE).split(CLEAR_LINE)
    assert re.fullmatch(rf"v2:2x2: compiling … \d+\.\d s{re.escape(others)}", first_line)
    assert end == ""
