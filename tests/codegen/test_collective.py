"""Rounds as a program: JAX holds after every round what the simulator says."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

from shardviz.codegen.collective import collective_code, rounds_code, shard_code
from shardviz.collectives.frames import Frames
from shardviz.collectives.operations import RaggedAllToAll
from shardviz.forms.command_line import form_from_line
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.stepping.collective_run import run_on
from shardviz.stepping.plan_step import question_of_step

DEVICES = re.compile(r'jax\.config\.update\("jax_(platforms|num_cpu_devices)", .*\)\n')
"""What the tests have set up already."""


def walk_of(line):
    question = resolve(form_from_line(line, ProblemForm())).collective
    return run_on(question, place_mesh(assumed_machine(), question.layout.mesh))


def printed_rounds(text):
    """What each device holds, by round: an array (rounds + 1, devices, chunks, elements)."""
    after = text.partition("round by round the result is the same\n")[2]
    lists = [ast.literal_eval(line.partition(": ")[2]) for line in after.splitlines() if line[0] == " "]
    devices = len(re.findall(r"device", after)) // len(re.findall(r"^(?:before|after)", after, re.MULTILINE))
    found = np.array(lists)
    return found.reshape(-1, devices, found.shape[1], found[0, 0].size)


@pytest.mark.parametrize(
    "line",
    [
        "step all_gather --mesh i=4 --data 3,9,5,2",
        "step psum --mesh X=2,Y=2 --algorithm torus --axis Y,X",
        "step psum_scatter --mesh X=2,Y=2 --axis Y --algorithm recursive-halving --data 1,2,3,4,5,6,7,8",
    ],
)
def test_jax_holds_what_the_simulator_says(line, capsys):
    walk = walk_of(line)
    exec(compile(DEVICES.sub("", rounds_code(walk)), line, "exec"), {})
    found = printed_rounds(capsys.readouterr().out)
    assert len(found) == len(walk.frames)
    for number, frame in enumerate(walk.frames):
        for group, positions in enumerate(walk.groups):
            for member, position in enumerate(positions):
                for piece in frame.pieces(member, group):
                    held = found[number, position, piece.chunk]
                    np.testing.assert_array_equal(held, piece.values, f"round {number}, chunk {piece.chunk}")


@pytest.mark.parametrize(
    ("einsum", "specs", "op"),
    [
        ("bd,df->bf", "_(XY),(XY)_->YX", "psum_scatter"),
        ("bdf,bd->bdf", "(XY)__,__->_YX", "all_to_all"),
    ],
)
def test_a_step_of_several_dimensions_as_a_program(einsum, specs, op, capsys):
    problem = problem_from_text(
        einsum, mesh=parse_mesh("X=2,Y=2"), specs=specs, sizes="b=4,d=4,f=4", dtype="s32"
    )
    made = plan(problem)
    number = next(place for place, step in enumerate(made.steps, 1) if step.op == op)
    question = question_of_step(made, number)
    exec(compile(DEVICES.sub("", collective_code(question)), specs, "exec"), {})
    printed = capsys.readouterr().out
    frames = Frames(question.schedule, question.operation, problem.mesh, question.shards)
    for shard in frames.after:
        assert str(shard.tolist()) in printed


@pytest.mark.parametrize(
    "line",
    [
        "step ppermute --mesh i=4 --perm (0,1),(1,0)",
        "step psum --mesh i=64",
        "step psum --mesh i=64 --shape 65536",
    ],
)
def test_what_is_too_much_to_list_is_the_collective_alone(line):
    code = rounds_code(walk_of(line))
    assert "by_hand" not in code
    compile(code, line, "exec")


def test_an_array_too_large_to_print_has_a_smaller_one_in_its_place():
    code = rounds_code(walk_of("step all_gather --mesh i=4 --shape 65536"))
    assert "# A smaller array than 65536, so that every round" in code
    assert "x = jnp.arange(4).astype(jnp.int32)" in code
    assert "by_hand" in code


def test_rows_of_nothing_are_whole_numbers():
    operation = RaggedAllToAll(("i",), ((0, 0), (0, 0)))
    before, _ = shard_code(operation, (2,), "shard", '"i"')
    assert before[-4] == "    ], dtype=int"
