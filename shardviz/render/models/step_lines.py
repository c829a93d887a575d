"""A step of a model: its collectives by phase, those over the same axes in one line, and the seconds of
all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from shardviz.errors import plural
from shardviz.models.answer import ModelStep, PlannedPart
from shardviz.models.question import ModelQuestion
from shardviz.notation import write_spec
from shardviz.planner.pricing.priced_steps import PricedStep
from shardviz.planner.problem import Phase
from shardviz.render.caption import axes_text
from shardviz.render.cost_view import machine_words, padding_words
from shardviz.render.lines import columns, sentence, table
from shardviz.render.palette import Palette
from shardviz.units import human_bytes, seconds

PHASES: dict[Phase, str] = {
    "forward": "forward",
    "recomputed": "computed again",
    "backward": "backward",
    "optimizer": "optimizer",
}
"""The parts of a train step, in order, with their words."""
RIGHT = frozenset({2, 3})


@dataclass(frozen=True)
class CollectiveGroup:
    """Collectives of one phase of a part with the same operation over the same axes, in one run of it."""

    phase: Phase
    steps: tuple[PricedStep, ...]

    @property
    def bytes(self) -> int:
        return sum(each.step.bytes for each in self.steps)

    @property
    def seconds(self) -> float:
        return sum(each.seconds or 0.0 for each in self.steps)

    @property
    def arrays(self) -> str:
        return ", ".join(each.step.array for each in self.steps)


def collective_groups(part: PlannedPart) -> Iterator[CollectiveGroup]:
    """The collectives of a part by phase, operation and axes, in the order of the first of each."""
    found: dict[tuple[Phase, str, tuple[str, ...]], list[PricedStep]] = {}
    for phase, priced in part.collectives():
        found.setdefault((phase, priced.step.op, priced.step.axes), []).append(priced)
    for phase in PHASES:
        for (own, _, _), steps in found.items():
            if own == phase:
                yield CollectiveGroup(phase, tuple(steps))


def step_lines(step: ModelStep, question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    """The collectives of one layer, of the embedding and of the logits, then the totals."""
    tokens, cost = question.tokens, step.layer.cost
    what = "a forward pass" if question.training is None else "a train step"
    spec = write_spec(tokens.spec)
    words = f"{what} of {tokens.batch:,} × {tokens.sequence:,} tokens, split {spec}, on {machine_words(cost)}"
    lines = sentence(words, width, lead="step  ")
    for part in step.parts:
        lines += _part_lines(part, question, width, palette)
    lines += _padding_lines(step, width)
    for words in total_words(step):
        lines += sentence(words, width, 2)
    return lines


def _padding_lines(step: ModelStep, width: int) -> list[Text]:
    """The dimensions of all parts that are padded, and what of the step is padding."""
    padded = [part.cost for part in step.parts if part.cost.plan.problem.padding]
    if not padded:
        return []
    wasted = [(each.layers, each.padding_cost) for each in padded]
    time = sum(runs * each.seconds for runs, each in wasted)
    sent = sum(runs * each.wire_bytes for runs, each in wasted)
    dims = dict.fromkeys(each for cost in padded for each in cost.plan.problem.padding)
    return sentence(padding_words(dims, time, sent, "the step"), width, 2, lead="padded: ")


def _part_lines(part: PlannedPart, question: ModelQuestion, width: int, palette: Palette) -> list[Text]:
    """A row for each group; the arrays behind it where there is room, else below."""
    runs = f" × {part.cost.layers}" if part.cost.layers > 1 else ""
    groups = [*collective_groups(part)]
    lines = [Text.assemble("  ", (f"{part.part.name}{runs}", "bold"), "" if groups else "  nothing is sent")]
    rows = []
    for group in groups:
        first = group.steps[0].step
        over = axes_text(first.axes, question.mesh, palette, ",")
        rows.append(
            [
                Text(PHASES[group.phase]),
                Text(f"{len(group.steps)} {first.op} over ").append_text(over),
                Text(human_bytes(group.bytes)),
                Text(seconds(group.seconds)),
            ]
        )
    arrays = [Text(group.arrays, "dim") for group in groups]
    wide = columns([[*row, names] for row, names in zip(rows, arrays, strict=True)], width, 4, RIGHT)
    if wide is not None:
        return lines + wide
    narrow = table(rows, width, 4, RIGHT)
    if len(narrow) > len(rows):
        return lines + narrow
    for row, names in zip(narrow, arrays, strict=True):
        lines += [row, *sentence(names.plain, width, 6, style="dim")]
    return lines


def total_words(step: ModelStep) -> list[str]:
    """The seconds of all parts, and what the collectives are of them."""
    is_partial = any(part.cost.unknown for part in step.parts)
    words = [
        f"{plural(step.count, 'collective')} send {human_bytes(step.wire_bytes)} from a device in "
        f"{seconds(step.communication_seconds)}",
        f"total without overlap: {seconds(step.seconds)}",
    ]
    if len(step.seconds_by_phase) > 1:
        # A phase that sends nothing is all of unknown time.
        said = ", ".join(
            f"{phase} {seconds(each) if each or not is_partial else 'unknown'}"
            for phase, each in step.seconds_by_phase.items()
        )
        words[-1] += f" ({said})"
    if is_partial:
        words.append(f"without steps of unknown time: {step.layer.cost.missing_figure}")
    return words
