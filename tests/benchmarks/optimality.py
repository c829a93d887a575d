"""How good plans are: ``python tests/benchmarks/optimality.py`` writes ``docs/optimality.md``.

Random problems of each kind in `tests/planner/optimality.py` are planned, searched by trying everything, and
asked of Shardy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from shardviz.compiler import Worker  # noqa: E402
from tests.planner.optimality import KINDS, Tally, measured  # noqa: E402
from tests.planner.test_mutants import TRAIN_STEPS, survivors  # noqa: E402

PAGE = ROOT / "docs" / "optimality.md"
TEMPLATE = Path(__file__).with_name("optimality_page.md")
"""The page, with {names} where the tables belong."""
COUNTS = {2: 24, 3: 12, 4: 6, 5: 3, "one einsum, 4×4": 12, "two einsums, 4×4": 10}
"""Problems of a kind, by its name or by the number of mesh axes."""
PROGRAMS = 60
"""Problems of a kind of programs, which are searched quickly."""
MUTATED = 6
"""Plans of each kind that are made wrong."""


def rows(tallies: list[Tally]) -> Iterator[str]:
    for tally in tallies:
        count = len(tally.all)
        after = sum(each.is_beaten_after for each in tally.all)
        shardy = f"{len(tally.beaten)}, then {after} of {tally.asked}" if tally.asked else "–"
        cells = (
            tally.kind.name,
            f"{tally.fastest_optimal} of {count}",
            f"{tally.fastest_worst:.3f}",
            f"{tally.optimal}",
            f"{tally.worst:.3f}",
            f"{count - len(tally.wrongly_claimed)}",
            f"{tally.median_ms:.1f} ms",
            shardy,
        )
        yield f"| {' | '.join(cells)} |"


def page(tallies: list[Tally], mutants: int, unnoticed: int) -> str:
    """The text of the page."""
    every = [each for tally in tallies for each in tally.all]
    return TEMPLATE.read_text(encoding="utf-8").format(
        rows="\n".join(rows(tallies)),
        all=len(every),
        asked=sum(tally.asked for tally in tallies),
        beaten=sum(len(tally.beaten) for tally in tallies),
        after=sum(each.is_beaten_after for each in every),
        wrong=sum(len(tally.wrongly_claimed) for tally in tallies),
        mutants=mutants,
        noticed=mutants - unnoticed,
        plans=MUTATED,
        steps=len(TRAIN_STEPS),
    )


def main() -> None:
    tallies = []
    with Worker() as worker:
        for kind in KINDS:
            count = PROGRAMS if kind.shared else COUNTS.get(kind.name, COUNTS[kind.axes])
            tallies.append(measured(kind, count, seed=0, worker=worker))
            print(next(rows(tallies[-1:])), file=sys.stderr, flush=True)
    tried, left = survivors(MUTATED, TRAIN_STEPS)
    PAGE.write_text(page(tallies, sum(tried.values()), len(left)), encoding="utf-8")


if __name__ == "__main__":
    main()
