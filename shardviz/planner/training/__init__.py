"""Train steps: the gradients of a program, what they compute again, and the optimizer, as more statements.

Standard library only.
"""

from shardviz.planner.training.backward import with_backward
from shardviz.planner.training.options import Optimizer, Training, parse_training

__all__ = ["Optimizer", "Training", "parse_training", "with_backward"]
