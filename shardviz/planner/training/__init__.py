"""Train steps: the gradients of a program, what they compute again, and the optimizer, as more statements.

Names are imported when they are first used: a command without a backward pass reads only its options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names
from shardviz.planner.problem.training import (
    Optimizer as Optimizer,
    Training as Training,
    parse_training as parse_training,
)

if TYPE_CHECKING:
    from shardviz.planner.training.train_steps import train_step as train_step, with_backward as with_backward
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"train_steps": "train_step with_backward"})
