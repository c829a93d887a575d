"""A program whose shardings JAX refuses: its words, the types that met, and the changes that it accepts."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from shardviz.render.lines import Cell, sentence, sentences, table
from shardviz.reports.lowered_module import ShardingRefusal, SourceChange
from shardviz.reports.target_program import TargetProgram
from shardviz.units import human_bytes, seconds

FEW = 5
"""Lines of JAX's words that are shown unless all are asked for."""
HEADINGS = ("sent", "time", "peak", "in its place")


def refusal_view(
    refusal: ShardingRefusal, programs: Mapping[SourceChange, TargetProgram], width: int, verbose: bool
) -> list[Text]:
    """The place, the types of the arrays, JAX's words, whole if `verbose`, and each change that JAX accepts:
    what the whole program with it sends and takes on a target, in the order of `programs`."""
    lines = sentence(f"  {refusal.source}", width, lead=refusal.place)
    lines += sentence("  ".join(refusal.types), width, 2)
    words = sentences(refusal.words.splitlines(), width, 2)
    lines += words if verbose or len(words) <= FEW else [*words[: FEW - 1], Text("  … -v shows all", "dim")]
    if not refusal.changes:
        return [*lines, Text(), *sentence("JAX accepted no change that was tried.", width)]
    rows: list[list[Cell]] = []
    every = {**programs, **dict.fromkeys(refusal.changes), **programs}
    shown = every if verbose or not programs else programs
    for change, program in shown.items():
        told = None if program is None else program.times().times
        peak = None if program is None else program.memory
        sent = "" if program is None else human_bytes(program.bytes_sent or 0)
        took = "" if told is None else seconds(told.model.seconds)
        note = f"then {change.then}" if change.then else change.note
        cells = sent, took, "" if peak is None else human_bytes(peak.peak_bytes), change.code
        rows.append([*cells, (note, "dim")])
    target = next((f" The whole program with each, on {one.target}:" for one in programs.values()), "")
    more = f" ({len(every) - len(shown)} more lead to another refusal: -v)" * (len(every) > len(shown))
    lines += [Text(), *sentence(f"JAX accepts these changes{more}.{target}", width)]
    return [*lines, *table(rows, width, 2, range(3), HEADINGS, told=(" sent", "", " peak", "", ""))]
