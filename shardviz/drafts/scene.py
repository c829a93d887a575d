"""What is on screen: a draft, and the last problem that could be read from one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.drafts.draft import Draft, Fault, Row

if TYPE_CHECKING:
    from shardviz.compiler import Target
    from shardviz.planner import Plan, Problem
    from shardviz.stepping.question import CollectiveQuestion


@dataclass(frozen=True)
class Scene:
    """A draft with all that can be seen of it.

    `rows` are the draft's, one for each of its specs. `problem` with `plan`, `targets` and `collective` are
    each the draft's where its fields are valid, else the last valid ones; `faults` say why not. `collective`
    is the question of a collective of its own, or None. `shown` is the draft that problem, targets and
    collective came from: where there is no fault, `draft` itself.
    """

    draft: Draft
    problem: Problem
    plan: Plan
    rows: tuple[Row, ...]
    targets: tuple[Target, ...]
    collective: CollectiveQuestion | None
    shown: Draft
    faults: tuple[Fault, ...] = ()
