"""The answer of `shardviz program --why` in Python: why collectives are there, and what avoids them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shardviz.api.shown import Shown

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.hlo import HloModule, ShardyModule
    from shardviz.render.palette import Palette
    from shardviz.reports.program_report import ProgramReport
    from shardviz.reports.suggestions import ShardingCandidate, Suggestion
    from shardviz.reports.target_program import TargetProgram
    from shardviz.reports.why import Reason


@dataclass(frozen=True, repr=False)
class WhyReport(Shown):
    """The collectives of a `report`, with a reason for each of its `entries`, in program order.

    `suggestions` has the changes that avoid collectives, by their reason: each was tried on the target. There
    are none where nothing helps, and where the program before its compilation is not at hand.
    """

    report: ProgramReport
    reasons: tuple[Reason, ...]
    suggestions: Mapping[Reason, Suggestion] = field(default_factory=dict)
    compiled: TargetProgram | None = None

    def lines(self, width: int, palette: Palette) -> list[Text]:
        from rich.text import Text

        from shardviz.render.programs.why_lines import shape_lines, why_lines
        from shardviz.reports.selection import BY_COST

        if not self.report.entries:
            return [Text("no collective: nothing is sent")]
        if self.compiled is None:
            return shape_lines(self.report, BY_COST, width, palette)[1:]
        return why_lines(self.report, self.reasons, BY_COST, width, palette, self.suggestions)[1:]

    def document(self) -> dict[str, Any]:
        from shardviz.documents.programs import hlo_document, program_document

        if self.compiled is None:
            return hlo_document(self.report, self.report.module.mesh)
        name = self.report.module.name
        return program_document(name, [(self.compiled, self.report)], suggestions=[dict(self.suggestions)])


def why(module: HloModule | ShardyModule, compiled: TargetProgram | None, timeout: float) -> WhyReport:
    """The reasons of a module's collectives; of a `compiled` one with what avoids them. Each try may take
    `timeout` seconds."""
    from shardviz.reports.program_report import report_of
    from shardviz.reports.why import reasons

    if compiled is None:
        report = report_of(module)
        return WhyReport(report, reasons(report.entries, module.mesh))
    priced = compiled.report(compiled.times())
    assert priced is not None
    return WhyReport(priced, compiled.reasons, _suggestions(compiled, timeout), compiled)


def _suggestions(compiled: TargetProgram, timeout: float) -> dict[Reason, Suggestion]:
    from shardviz.api.shared_worker import ask_program
    from shardviz.reports.suggestions import suggestions
    from shardviz.targets import parse_targets

    lowered = compiled.lowered
    if lowered is None:
        return {}

    def ask(name: str, changes: Sequence[ShardingCandidate]) -> TargetProgram:
        options = compiled.options if name == compiled.target else {}
        (answer,) = ask_program(lambda _: lowered, parse_targets(name), timeout, options, changes=changes)
        return answer

    return suggestions(ask, compiled)
