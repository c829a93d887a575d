"""The line above a program: whose it is, and how much it sends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.programs.program_pages import ListedProgram
from shardviz.render.units import human_bytes
from shardviz.tui.compiler.status import state_words

if TYPE_CHECKING:
    from shardviz.errors import ShardvizError
    from shardviz.tui.target_answers import ShownAnswer


def program_heading(
    answer: ShownAnswer, program: ListedProgram | ShardvizError | None, folded: bool, width: int
) -> Text:
    """``cpu  1 collective  192 KiB sent  on each device``; of the problem before, how it is now.

    What does not fit is left out.
    """
    compiled = answer.compiled
    state = state_words(answer)
    if compiled is not None and compiled.status != "ok":
        return Text.assemble((answer.target.name, "bold"), "  no answer")
    if not isinstance(program, ListedProgram):
        return Text.assemble((answer.target.name, "bold"), f"  {state or 'reading…'}")
    if program.compiled is not compiled:
        return Text.assemble(("of the problem before", "bold"), f"  {state or 'reading…'}")
    moving = [each for each in program.compiled.collectives if each.op != "slice"]
    sent = sum(each.wire_bytes * (each.count or 1) for each in moving)
    how = "on all devices at once" if answer.target.name == "shardy" else "on each device"
    facts = [plural(len(moving), "collective"), *[f"{human_bytes(sent)} sent"] * bool(moving)]
    facts.append(how if folded else "all of the text")
    text = Text.assemble((answer.target.name, "bold"))
    for fact in facts:
        if text.cell_len + 2 + len(fact) <= width:
            text.append(f"  {fact}", "dim")
    return text
