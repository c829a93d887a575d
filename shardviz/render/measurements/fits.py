"""The lines through what was measured, with their errors, and where they do not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from shardviz.devices.fitting import HOLDS, NOISY, TimeFit
from shardviz.devices.question import Case
from shardviz.errors import plural
from shardviz.hardware.measured import Regime
from shardviz.render.caption import axes_text
from shardviz.render.lines import sentence, table
from shardviz.render.measurements.chart import bandwidth_chart
from shardviz.render.palette import Palette
from shardviz.sharding import Mesh
from shardviz.units import human_bytes, measured_rate, seconds

HEADINGS = ("", "over", "from", "latency", "bandwidth", "off", "held back", "noise")
RIGHT = frozenset({2, 3, 4, 5, 6, 7})

LOOSE = 0.5
"""A standard error of a bandwidth, as a part of it, that is to be said."""


def fits_view(fits: Sequence[TimeFit], mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A chart for each operation with several sizes, a table of all lines, and what is to be doubted."""
    lines: list[Text] = []
    for _, group in groupby(fits, key=lambda fit: fit.op):
        shown = [fit for fit in group if len(fit.rows) > 1]
        if shown:
            lines += [Text(), *bandwidth_chart(shown, mesh, width, palette)]
    of_lines = [fit for fit in fits if fit.op != "matmul"]
    if of_lines:
        lines += [Text(), *sentence(TITLE, width), *fits_table(of_lines, mesh, width, palette)]
    for words in doubts(of_lines):
        lines += sentence(words, width)
    return lines


TITLE = (
    "time = latency + size / bandwidth, as fitted; held back: every second size, predicted from the others"
)


def fits_table(fits: Sequence[TimeFit], mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A row for each regime of each fit."""
    rows = [[Text(heading, "dim") for heading in HEADINGS]]
    for fit in fits:
        for number, regime in enumerate(fit.regimes):
            name = [Text(), Text()] if number else [Text(fit.op, "bold"), axes_text(fit.axes, mesh, palette)]
            told = [] if number else [*map(Text, _quality(fit))]
            rows.append([*name, *map(Text, regime_cells(regime)), *told])
    return table(rows, width, right=RIGHT)


def regime_cells(regime: Regime) -> tuple[str, str, str]:
    """Where a regime begins, its latency and its bandwidth, with their errors."""
    latency = seconds(regime.latency)
    if regime.latency_error:
        latency += f" ± {seconds(float(f'{regime.latency_error:.2g}'))}"
    bandwidth = "–" if regime.bandwidth == float("inf") else measured_rate(regime.bandwidth)
    if regime.bandwidth_error:
        bandwidth += f" ± {regime.bandwidth_error / regime.bandwidth:.0%}"
    return human_bytes(regime.start), latency, bandwidth


def _quality(fit: TimeFit) -> tuple[str, str, str]:
    held = "–" if fit.held_back is None else f"{fit.held_back:.0%}"
    return f"{fit.error:.0%}", held, "–" if fit.noise is None else f"{fit.noise:.0%}"


def doubts(fits: Sequence[TimeFit]) -> Iterator[str]:
    """Sentences on fits that do not hold, have several regimes, are noisy, or tell no bandwidth."""
    if several := [fit for fit in fits if len(fit.regimes) > 1]:
        yield (
            f"One line does not hold for {_names(several)}: a cache is full, or another algorithm begins; "
            "each regime has a line."
        )
    if noisy := [fit for fit in fits if (fit.noise or 0.0) > NOISY]:
        yield (
            f"Noise over {NOISY:.0%} for {_names(noisy)}: other work runs on these devices; measure again, "
            "or with more --runs."
        )
    if slowed := [fit for fit in fits if fit.slowed]:
        sizes = plural(sum(fit.slowed for fit in slowed), "size")
        yield (
            f"{sizes} took longer than a larger one, slowed down by other work, which the lines leave "
            f"out: {_names(slowed)}."
        )
    wrong = [fit for fit in fits if not fit.holds]
    if forbidden := [fit for fit in wrong if fit.is_noisy]:
        yield f"Too noisy to predict within {HOLDS:.0%}: {_names(forbidden)}."
    if others := [fit for fit in wrong if not fit.is_noisy]:
        yield f"No line fits within {HOLDS:.0%} for {_names(others)}."
    if loose := [fit for fit in fits if fit.bandwidth_spread > LOOSE]:
        yield (
            f"A bandwidth is uncertain by more than {LOOSE:.0%} for {_names(loose)}: measure larger sizes, "
            "or with more --runs."
        )
    if blind := [fit for fit in fits if fit.regimes[-1].bandwidth == float("inf")]:
        yield (
            f"These sizes tell no bandwidth for {_names(blind)}: measure larger ones. A machine's file has "
            "formulas for them."
        )


def too_few_sizes(cases: Sequence[Case]) -> str:
    """A sentence on collectives of which one size was measured; "" where there are none."""
    if not cases:
        return ""
    return (
        f"One size tells no latency and no bandwidth of {_names(cases)}: measure two sizes or more, as with "
        "--sizes 4KiB:1MiB."
    )


def _names(those: Sequence[TimeFit | Case]) -> str:
    names = []
    for op, group in groupby(those, key=lambda each: each.op):
        over = "; ".join(", ".join(each.axes) for each in group if each.axes)
        names.append(f"{op} ({over})" if over else op)
    return ", ".join(names)
