"""What `shardviz explain` shows: the plan, then the answers, one after another or side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.cli.asking import Conversation
    from shardviz.cli.screen import Screen
    from shardviz.compiler import Compiled
    from shardviz.planner import Problem


def explain(
    problem: Problem,
    conversation: Conversation,
    page: Screen,
    as_json: bool,
    with_hlo: bool,
    with_pictures: bool,
) -> int:
    """Ask the targets and show the plan and their answers; the exit code."""
    from shardviz.planner import plan

    conversation.ask(problem)
    planned = plan(problem)
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.compare import differences
        from shardviz.documents.programs import explain_document

        compiled = tuple(conversation.answers())
        found = [difference for each in compiled for difference in differences(planned, each)]
        print_json(explain_document(planned, compiled, found, with_hlo))
        return conversation.exit_code
    from shardviz.render.plans.explain_view import explain_view

    page.show(explain_view(planned, page.width, page.palette, with_pictures))
    if not conversation.asked:
        return conversation.exit_code
    # Loaded while the compilers work, and not at all when none is asked.
    from shardviz.compare import differences
    from shardviz.render.programs.targets_table import answers_view, side_by_side

    if side_by_side(conversation.asked):
        answers = [(each, differences(planned, each)) for each in conversation.answers()]
        page.show(answers_view(answers, problem, page.width, page.palette))
        for each, _ in answers:
            _show_program(each, problem, page, with_hlo)
        return conversation.exit_code
    for each in conversation.answers():
        page.show(answers_view([(each, differences(planned, each))], problem, page.width, page.palette))
        _show_program(each, problem, page, with_hlo)
    return conversation.exit_code


def _show_program(compiled: Compiled, problem: Problem, page: Screen, with_hlo: bool) -> None:
    if with_hlo and compiled.status == "ok":
        from shardviz.render.programs.hlo_picture import program_view

        page.show(program_view(compiled, problem.mesh, page.width, page.palette))
