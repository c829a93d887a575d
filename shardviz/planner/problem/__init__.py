"""The question: statements, how their arrays are split, and how all that is read from text.

Names are imported when they are first used: a form that is read field by field needs no reader of questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.planner.problem.problem import (
        Objective as Objective,
        PaddedDim as PaddedDim,
        Phase as Phase,
        Problem as Problem,
        Statement as Statement,
    )
    from shardviz.planner.problem.reading import problem_from_text as problem_from_text
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__, {"problem": "Objective PaddedDim Phase Problem Statement", "reading": "problem_from_text"}
    )
