"""The pytest plugin: the changes of a program as a section of the failure, and a list of renewed baselines.
Every start of pytest loads it where shardviz is installed, so it imports nothing that takes time."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

SECTION = "shardviz: the program and its baseline"
PROPERTY = "shardviz_baseline"
"""The name under which a test's report has the baselines that it wrote; pytest-xdist carries it over."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[Any],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    error = None if call.excinfo is None else call.excinfo.value
    page = ""
    # Where no check has run, nothing has loaded them.
    checks: Any = sys.modules.get("shardviz.testing.assertions")
    if checks is not None and isinstance(error, checks.BaselineChanged):
        # The page has a section of its own, without the marks of a traceback before each line.
        page, error.page = error.page, ""
    report = yield
    if page:
        # As a part of the failure it is shown whatever --show-capture says of what tests print.
        if add := getattr(report.longrepr, "addsection", None):
            add(SECTION, page)
        else:
            report.sections.append((SECTION, page))
    if checks is not None:
        renewed = checks.RENEWED.items()
        report.user_properties += [(PROPERTY, f"{path}: {reason}") for path, reason in renewed]
        checks.RENEWED.clear()
    return report


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    written = {
        str(words)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, words in getattr(report, "user_properties", ())
        if name == PROPERTY
    }
    if written:
        terminalreporter.section("shardviz baselines")
        terminalreporter.write_line("\n".join(sorted(written)))
