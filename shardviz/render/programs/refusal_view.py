"""A program whose shardings JAX refuses: its words, the types that met, and the changes that it accepts."""

from __future__ import annotations

from rich.text import Text

from shardviz.render.lines import Cell, sentence, sentences, table
from shardviz.reports.lowered_module import ShardingRefusal
from shardviz.units import human_bytes, seconds

FEW = 5
"""Lines of JAX's words that are shown unless all are asked for."""
HEADINGS = ("sent", "time", "peak", "in its place")


def refusal_view(refusal: ShardingRefusal, width: int, verbose: bool) -> list[Text]:
    """The place, the types of the arrays, JAX's words, whole if `verbose`, and each change that JAX accepts:
    what the whole program with it sends and takes on a target."""
    lines = sentence(f"  {refusal.source}", width, lead=refusal.place)
    lines += sentence("  ".join(refusal.types), width, 2)
    words = sentences(refusal.words.splitlines(), width, 2)
    lines += words if verbose or len(words) <= FEW else [*words[: FEW - 1], Text("  … -v shows all", "dim")]
    if not refusal.changes:
        return [*lines, Text(), *sentence("JAX accepted no change that was tried.", width)]
    priced = [change for change in refusal.changes if change.sent_bytes is not None]
    shown = refusal.changes if verbose or not priced else priced
    timed = any(change.seconds is not None for change in shown)
    rows: list[list[Cell]] = []
    for change in shown:
        sent = "" if change.sent_bytes is None else human_bytes(change.sent_bytes)
        took = "" if change.seconds is None else seconds(change.seconds)
        peak = "" if change.peak_bytes is None else human_bytes(change.peak_bytes)
        note = f"then {change.then}" if change.then else change.note
        rows.append([sent, *[took] * timed, peak, change.code, (note, "dim")])
    hidden = len(refusal.changes) - len(shown)
    more = f" ({hidden} more lead to another refusal: -v)" * (hidden > 0)
    target = f" The whole program with each, on {refusal.target}:" * bool(priced)
    lines += [Text(), *sentence(f"JAX accepts these changes{more}.{target}", width)]
    head = [word for word in HEADINGS if timed or word != "time"]
    told = [" sent", *[""] * timed, " peak", "", ""]
    return [*lines, *table(rows, width, 2, range(2 + timed), head, told=told)]
