"""A matmul in blocks beside a collective: every block once, never before it is there, in the right time."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.options import form_from_options
from shardviz.forms.resolve import resolve
from shardviz.planner.pricing.costs import price
from shardviz.stepping.collective_matmul import BlockwiseMatmul, matmul_of_step
from shardviz.stepping.collective_run import run_on
from shardviz.stepping.plan_step import collective_steps, question_of_step
from shardviz.targets.hardware import placed_for

GATHER = ("XY", "__", "X_")
SCATTER = ("XY", "Y_", "XY")
SUM = ("XY", "Y_", "X_")
FSDP = form_from_options(
    "bd,df->bf;bf,fd->bd", specs="X_,X_;,_X->X_", mesh="X=8", sizes="b=65536,d=2048,f=8192"
)


def found(form: ProblemForm, number: int, algorithm: str | None = None) -> BlockwiseMatmul | None:
    resolved = resolve(form)
    placed = placed_for(None, (), resolved.problem.mesh)
    question = question_of_step(resolved.plan, number, algorithm)
    return matmul_of_step(resolved.plan, placed, number, run_on(question, placed))


def of(specs: tuple[str, ...], algorithm: str | None = None) -> BlockwiseMatmul:
    form = ProblemForm(specs=specs, mesh="X=2,Y=4")
    (number,) = collective_steps(resolve(form).plan)
    matmul = found(form, number, algorithm)
    assert matmul is not None
    return matmul


@pytest.mark.parametrize("specs", [GATHER, SCATTER, SUM])
@pytest.mark.parametrize("algorithm", ["ring", "bidirectional-ring", "direct"])
def test_every_device_multiplies_every_block_once(specs, algorithm):
    matmul = of(specs, algorithm)
    members, blocks = matmul.slot_of.shape
    for member in range(members):
        every = [block for slot in range(matmul.rounds + 1) for block in matmul.blocks(slot, member)]
        assert sorted(every) == [*range(blocks)]


@pytest.mark.parametrize("algorithm", ["ring", "bidirectional-ring", "recursive-doubling", "direct", "line"])
def test_a_block_is_multiplied_as_soon_as_it_has_arrived(algorithm):
    matmul = of(GATHER, algorithm)
    frames = matmul.run.frames
    for member, slots in enumerate(matmul.slot_of.tolist()):
        for block, slot in enumerate(slots):
            assert block in frames.trace.buffer(slot, member).chunk
            assert slot == 0 or block not in frames.trace.buffer(slot - 1, member).chunk


@pytest.mark.parametrize("specs", [SCATTER, SUM])
def test_a_block_is_made_before_it_is_sent(specs):
    matmul = of(specs)
    for number in range(1, matmul.rounds + 1):
        sends = matmul.run.schedule.round(number)
        for member, chunk in zip(sends.src.tolist(), sends.chunk.tolist(), strict=True):
            assert matmul.slot_of[member, chunk] <= number - 1


@pytest.mark.parametrize("specs", [GATHER, SCATTER])
def test_the_time_is_that_of_a_pipeline(specs):
    """Wang et al. 2023: n blocks of b seconds beside n - 1 rounds of r seconds take b + (n - 1) max(b, r)."""
    matmul = of(specs)
    block = matmul.matmul_seconds / 4
    each = matmul.run.timeline[0].seconds
    assert matmul.seconds == pytest.approx(block + 3 * max(block, each))
    assert matmul.apart_seconds == pytest.approx(4 * block + 3 * each)


def test_a_sum_goes_on_after_its_last_block():
    """An all-reduce gathers what it has summed when no block is left to be multiplied."""
    matmul = of(SUM)
    assert (matmul.rounds, matmul.run.schedule.rounds) == (3, 6)
    assert matmul.rest_seconds == pytest.approx(3 * matmul.run.timeline[5].seconds)
    assert matmul.seconds < matmul.apart_seconds


def test_blocks_of_a_summed_dimension_add_up_to_the_product():
    matmul = of(GATHER)
    assert matmul.letter == "d"
    rng = np.random.default_rng(0)
    left, right = rng.integers(-5, 5, (6, 16)), rng.integers(-5, 5, (16, 7))
    for member in range(4):
        total = np.zeros((6, 7), dtype=int)
        for slot in range(matmul.rounds + 1):
            for block in matmul.blocks(slot, member):
                part = slice(4 * block, 4 * block + 4)
                total += left[:, part] @ right[part]
        assert np.array_equal(total, left @ right)


def test_weights_are_prefetched_under_the_matmul_before():
    first, second = found(FSDP, 1), found(FSDP, 3)
    assert first is not None
    assert first.before is None
    assert second is not None
    assert second.before is not None
    resolved = resolve(FSDP)
    seconds = price(resolved.plan, placed_for(None, (), resolved.problem.mesh)).steps[1].seconds
    assert second.before == (2, seconds)
    assert second.exposed_seconds == 0
    assert first.exposed_seconds == first.run.timeline.seconds
    assert second.prefetched_seconds == pytest.approx(second.before[1] + second.matmul_seconds)


def test_a_gather_of_the_result_has_no_matmul_beside_it():
    form = ProblemForm(specs=("X_", "_Y", "X_"), mesh="X=2,Y=4")
    assert found(form, collective_steps(resolve(form).plan)[-1]) is None
