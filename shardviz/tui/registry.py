"""Every command of the application, in the order in which help shows them."""

from __future__ import annotations

from shardviz.tui.app_commands import APP
from shardviz.tui.command import Command
from shardviz.tui.compiler.commands import COMPILER
from shardviz.tui.layout.commands import LAYOUT
from shardviz.tui.lesson.commands import LESSON
from shardviz.tui.plan.commands import PLAN
from shardviz.tui.problem.commands import PROBLEM
from shardviz.tui.step.commands import STEP

COMMANDS: tuple[Command, ...] = (*APP, *PROBLEM, *LAYOUT, *PLAN, *STEP, *COMPILER, *LESSON)

AREAS = {
    "app": "Everywhere",
    "problem": "Problem",
    "layout": "1 Layout",
    "plan": "2 Plan",
    "step": "3 Step",
    "compiler": "4 Compiler",
    "lesson": "Lesson",
}
"""What the parts of the application are called."""
