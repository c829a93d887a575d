"""Progress on stderr while compilers work."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from shardviz.cli import messages
from shardviz.cli.process import CLEAR_LINE
from shardviz.compiler.pending import Pending


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def waiting(stage: str) -> Pending[str]:
    pending: Pending[str] = Pending(None, str, lambda _: None)  # type: ignore[arg-type]
    pending.stage = stage
    return pending


@pytest.mark.parametrize(
    ("columns", "others"),
    [("200", "; not ready: v5e:2x4, h100:8"), ("50", "; not ready: v5e:2x4"), ("30", "")],
)
def test_those_without_an_answer_are_told(monkeypatch: pytest.MonkeyPatch, columns: str, others: str) -> None:
    monkeypatch.setattr(sys, "stderr", told := Terminal())
    monkeypatch.setattr(messages, "TICK_S", 0.01)
    monkeypatch.setenv("COLUMNS", columns)
    first, ready, *late = (waiting(stage) for stage in ("compiling", "", "", ""))
    ready.settle("done")
    threading.Timer(0.1, first.settle, ["answer"]).start()
    names = [("cpu", ready), ("v5e:2x4", late[0]), ("h100:8", late[1])]
    assert messages.wait_for(first, "v2:2x2", names) == "answer"
    assert f"{CLEAR_LINE}v2:2x2: compiling … 0.0 s{others}{CLEAR_LINE}" in told.getvalue()
