"""A lesson: something to see, to predict and to change, in the words of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shardviz.forms.form import ProblemForm
from shardviz.sharding import Mesh


@dataclass(frozen=True)
class Prediction:
    """A question with a computed answer.

    `ask` is a measure with its arguments: ``"shard_shape A"``. `wrong` has a sentence for each likely wrong
    answer. `draft` is the problem that is asked about, the lesson's own or a variation of it. `before` is the
    screen that may be seen while one predicts (empty: none, so that nothing gives the answer away), `screen`
    the one that shows the answer. Of a question with a `tolerance`, a share of it, the answer is typed, not
    chosen. `again` is the same question with other numbers, for those who were wrong."""

    question: str
    ask: str
    wrong: Mapping[str, str]
    draft: ProblemForm
    before: str
    screen: str
    tolerance: Fraction | None = None
    again: Prediction | None = None


@dataclass(frozen=True)
class TextFigure:
    """A figure in a lesson's sentences, ``"164 µs"``, and the measure `ask` that computes it for `draft`."""

    says: str
    ask: str
    draft: ProblemForm


@dataclass(frozen=True)
class Goal:
    """The conditions for the sandbox: every one that is not None has to hold.

    `mesh` is a mesh text; `holds` has a spec text for an array's name: each device must hold what it would
    hold under that spec on the goal's mesh. `collectives` is what the plan may send, "op array axes" each.
    `ends` is a draft whose collective leaves on every device what is wanted. `at_most` has an upper limit for
    a measure: ``{"shard_bytes A": "1 MiB"}``. `axis_types` is "auto" or "explicit". Fields of the draft that
    are not in `may_change` have to stay as the lesson set them up."""

    text: str
    mesh: str | None = None
    holds: Mapping[str, str] | None = None
    collectives: tuple[str, ...] | None = None
    ends: ProblemForm | None = None
    at_most: Mapping[str, str] | None = None
    axis_types: str | None = None
    may_change: tuple[str, ...] = ("specs",)


@dataclass(frozen=True)
class Writing:
    """A text that the learner writes: the `starter` has a hole, and the `solution` passes.

    Without a `goal` it is a file, whose function `program` takes the `mesh` and returns a function and its
    arguments, as for `shardviz program`. That is compiled for the `target`, and may send at most these
    `collectives`, runs by HLO's names, and `most_bytes` from each device; None: what the file predicts, and
    any number. Its result is that of the `reference`, code of a function of the whole arrays, where there is
    one.

    With a goal, it is the `field` of a problem, whose other fields are `options`."""

    task: str
    starter: str
    solution: str
    hints: tuple[str, ...]
    mesh: Mesh
    options: Mapping[str, Any]
    target: str = "cpu"
    collectives: Mapping[str, int] | None = None
    most_bytes: int | None = None
    reference: str = ""
    goal: Goal | None = None
    field: str = ""


@dataclass(frozen=True)
class Lesson:
    """One lesson. `name` is its file's name without number and ending, `number` its place in the course, from
    1, or 0 for a file of its own, which has the path `source`. `figures` are those of its sentences that are
    checked.

    `see` has at most 60 words and is read beside `screen`. `program` is a JAX program that runs as it is;
    empty where the code of what was seen is generated from the last state. `writing` is None where nothing is
    written."""

    name: str
    number: int
    title: str
    see: str
    screen: str
    setup: ProblemForm
    predictions: tuple[Prediction, ...]
    explain: str
    goal: Goal
    hints: tuple[str, ...]
    solution: ProblemForm
    program: str = ""
    figures: tuple[TextFigure, ...] = ()
    source: str = ""
    writing: Writing | None = None

    @property
    def full_title(self) -> str:
        """The title with the number in the course."""
        return f"Lesson {self.number}: {self.title}" if self.number else self.title

    @property
    def questions(self) -> dict[str, Prediction]:
        """All questions, by their keys in the file: ``predict.1``, ``predict.1.again``, ``predict.2``, …"""
        by_key = {}
        for number, prediction in enumerate(self.predictions, 1):
            by_key[f"predict.{number}"] = prediction
            if prediction.again is not None:
                by_key[f"predict.{number}.again"] = prediction.again
        return by_key
