"""Train steps: the gradients of a program, what they compute again, and the optimizer, as more statements.

Names are imported when they are first used: a command without a backward pass reads only its options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.planner.training.backward import parameters as parameters, with_backward as with_backward
    from shardviz.planner.training.options import (
        Optimizer as Optimizer,
        Training as Training,
        parse_training as parse_training,
        train_step as train_step,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "backward": "parameters with_backward",
            "options": "Optimizer Training parse_training train_step",
        },
    )
