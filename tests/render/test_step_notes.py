"""JAX's verdict on a result, in sentences."""

from __future__ import annotations

import pytest

from shardviz.collectives.frames import Frames
from shardviz.collectives.operations import PARAMETERS
from shardviz.collectives.verification import VerificationResult
from shardviz.render.rounds.step_notes import verdict_lines
from shardviz.reports.target_result import ExecutionResult
from shardviz.sharding import Mesh
from shardviz.stepping.collective_run import Verdict, compare_with_jax, small_example
from shardviz.stepping.question import question_from_options

VERDICTS = [
    (
        ExecutionResult("cpu", "ok", versions=(("jax", "0.10.2"),)),
        VerificationResult("equal", 16),
        "JAX 0.10.2 on 4 simulated CPU devices: every value equal",
    ),
    (
        ExecutionResult("cpu", "ok", versions=(("jax", "0.10.2"),), note="an equal program stands in"),
        VerificationResult("rounding", 16, 3, 2, 1, (0, 2), "1.5", "1.25"),
        "JAX 0.10.2 on 4 simulated CPU devices: 3 of 16 values differ by rounding, from another order of\n"
        "  additions; at most 2 ulps, on device 1 at [0, 2] 1.5 here, 1.25 in JAX\n"
        "  an equal program stands in",
    ),
    (
        ExecutionResult("real", "ok"),
        VerificationResult("different", 16, 1, 0, 3, (1,), "3", "4", note="NaN is passed over"),
        "✗ JAX on 4 real devices: 1 of 16 values differ: on device 3 at [1] 3 here, 4 in JAX\n"
        "  NaN is passed over",
    ),
    (
        ExecutionResult("real", "ok"),
        VerificationResult("different", 16, note="ours is int32[4], theirs int32[2]"),
        "✗ JAX on 4 real devices: the results differ\n  ours is int32[4], theirs int32[2]",
    ),
]


@pytest.mark.parametrize(("ran", "verification", "expected"), VERDICTS)
def test_verdicts(ran: ExecutionResult, verification: VerificationResult, expected: str) -> None:
    lines = verdict_lines(Verdict(ran, verification), Mesh(("i",), (4,)), 100)
    assert "\n".join(line.plain for line in lines) == expected


def test_one_device() -> None:
    (line,) = verdict_lines(
        Verdict(ExecutionResult("cpu", "ok"), VerificationResult("equal", 4)), Mesh(("i",), (1,)), 100
    )
    assert line.plain == "JAX on 1 simulated CPU device: every value equal"


def test_a_verdict_on_a_smaller_array_says_so() -> None:
    """JAX did not run the array that was asked for, which is followed without numbers."""
    mesh = Mesh(("i",), (4,))
    given = dict.fromkeys(PARAMETERS)
    question = question_from_options(
        "all_gather",
        given,
        mesh=mesh,
        axis=None,
        data=None,
        shape="9000000",
        spec=None,
        dtype="bf16",
        algorithm="ring",
        pieces=None,
    )
    small = small_example(question)
    assert question.shards is None
    assert small is not None
    frames = Frames(small.schedule, small.operation, mesh, small.shards)
    ran = ExecutionResult("cpu", "ok", shards=frames.after)
    verdict = compare_with_jax(small, frames, ran)
    said = "every value equal, on a smaller array of 4 elements"
    assert [line.plain for line in verdict_lines(verdict, mesh, 100)] == [
        f"JAX on 4 simulated CPU devices: {said}"
    ]
