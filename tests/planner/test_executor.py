"""The executor and the exhaustive search agree on every move: each one runs on real numbers."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.plan import Plan, Step
from shardviz.planner.problem import Problem
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh, PartitionSpec, array_bytes
from tests.planner.executor import PlanError, run
from tests.planner.exhaustive import Atoms, Space, State

MESHES = (Mesh(("X", "Y"), (2, 4)), Mesh(("X", "Y"), (6, 2)), Mesh(("X", "Y", "Z"), (2, 2, 2)))
SHAPE = (24, 48)


def spec_of(space: Space, state: State) -> PartitionSpec:
    def names(atoms: Atoms) -> tuple[str, ...]:
        return tuple(name for atom in atoms for name in space.names((atom,)))

    return PartitionSpec(tuple(map(names, state[0])), names(state[1]))


def step_of(space: Space, op: str, group: Atoms, before: State, after: State) -> Step:
    """A move of A as a step of a plan."""
    removed = [old[len(new) :] for old, new in zip(before[0], after[0], strict=True) if len(new) < len(old)]
    appended = [new[len(old) :] for old, new in zip(before[0], after[0], strict=True) if len(new) > len(old)]
    order = group
    if op != "ppermute" and len(removed or appended) == 1 and len(appended or removed) == 1:
        order = (removed or appended)[0]
    pieces = [
        tuple(size // space.count(dim) for size, dim in zip(SHAPE, dims, strict=True))
        for dims in (before[0], after[0])
    ]
    shape = max(pieces, key=math.prod)
    axes = tuple(name for atom in order for name in space.names((atom,)))
    specs = spec_of(space, before), spec_of(space, after)
    size = array_bytes(shape, "bf16")
    return Step(op, "A", axes, None, *specs, shape, "bf16", size, 0, "")


def copied(space: Space, steps: tuple[Step, ...]) -> Plan:
    """A plan that moves A, and then copies it."""
    start, goal = steps[0].from_spec, steps[-1].to_spec
    problem = problem_from_text("ab->ab", mesh=space.mesh, specs="__->__", sizes=f"a={SHAPE[0]},b={SHAPE[1]}")
    part = problem.parts[0]
    part = replace(part, operands=(part.operands[0].with_spec(start),), result=part.result.with_spec(goal))
    shape = part.result.shard_shape(space.mesh)
    copy = Step("einsum", "Out", (), None, goal, goal, shape, "bf16", 0, 0, "", ("A",), part.einsum)
    return Plan(Problem(space.mesh, (part,)), (*steps, copy), goal, ())


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_every_move_keeps_the_array(mesh):
    draw = random.Random(1)
    space = Space(place_mesh(assumed_machine(), mesh), mesh)
    values = {"A": np.random.default_rng(0).integers(-9, 10, SHAPE)}
    ops: dict[str, int] = {}
    state: State = ((), ()), ()
    for _ in range(20):
        moves = [
            move
            for move in space.moves(state)
            if all(size % space.count(dim) == 0 for size, dim in zip(SHAPE, move[2][0], strict=True))
        ]
        for op, group, after in draw.sample(moves, min(20, len(moves))):
            found = run(copied(space, (step_of(space, op, group, state, after),)), values)
            assert np.array_equal(found, values["A"]), (op, state, after)
            ops[op] = ops.get(op, 0) + 1
        # The next state comes by an operation of any kind, as likely as another.
        op = draw.choice(sorted({move[0] for move in moves}))
        state = draw.choice([move[2] for move in moves if move[0] == op])
    assert set(ops) >= {
        "all_gather",
        "all_to_all",
        "slice",
        "mask",
        "ppermute",
        "psum",
        "psum_scatter",
        "pad",
    }


X, Y = ("X",), ("Y",)
NEAR, FAR = "Y:(2)2", "Y:(1)2"


@pytest.mark.parametrize(
    ("op", "axes", "before", "after", "said"),
    [
        ("all_gather", X, (("X", "Y"), ()), (Y, ()), "another than the minor end"),
        ("all_gather", ("Y", "X"), (("X", "Y"), ()), ((), ()), "no all_gather over"),
        ("all_gather", Y, (("X", "Y"), ()), ((), ()), "no all_gather over"),
        ("all_gather", (NEAR,), (Y, ()), ((NEAR,), ()), "another than the minor end"),
        ("slice", X, (X, ()), (X, X[:0]), "no slice over"),
        ("psum", X, (X, ()), ((), ()), "no psum over"),
        ("all_to_all", X, (("X", "Y"), ()), (Y, X), "another than the minor end"),
        ("ppermute", ("X", "Y"), (X, ()), (Y, ()), "other blocks"),
        ("ppermute", (FAR,), (X, ()), ((FAR,), ()), "no device of the group"),
        ("broadcast", X, (X, ()), ((), ()), "that no device can perform"),
    ],
)
def test_moves_that_no_device_can_make_are_errors(op, axes, before, after, said):
    mesh = MESHES[0]
    space = Space(place_mesh(assumed_machine(), mesh), mesh)
    specs = PartitionSpec(before), PartitionSpec(after)
    pieces = [
        tuple(size // parts for size, parts in zip(SHAPE, spec.parts(mesh), strict=True)) for spec in specs
    ]
    shape = max(pieces, key=math.prod)
    step = Step(op, "A", axes, None, *specs, shape, "bf16", 0, 0, "")
    with pytest.raises(PlanError, match=said):
        run(copied(space, (step,)), {"A": np.zeros(SHAPE, int)})


def test_an_array_is_taken_as_it_was_before_a_move():
    """The executor keeps every copy of an array that several statements use."""
    mesh = MESHES[0]
    space = Space(place_mesh(assumed_machine(), mesh), mesh)
    gather = step_of(space, "all_gather", (0,), (((0,), ()), ()), (((), ()), ()))
    plan = copied(space, (gather,))
    split = gather.from_spec
    copy = replace(plan.steps[-1], operand_specs=(split,), from_spec=split, to_spec=split, shape=(12, 48))
    values = {"A": np.random.default_rng(0).integers(-9, 10, SHAPE)}
    early = replace(plan, steps=(gather, copy), result_spec=split)
    assert np.array_equal(run(early, values), values["A"])
    nowhere = replace(copy, operand_specs=(PartitionSpec(((), X)),))
    with pytest.raises(PlanError, match="which no device holds"):
        run(replace(early, steps=(gather, nowhere)), values)


def test_what_does_not_divide_is_padded():
    mesh = Mesh(("X", "Y"), (2, 4))
    problem = problem_from_text("ab->ba", mesh=mesh, specs="__->__", sizes="a=5,b=7")
    part = problem.parts[0]
    start, goal = PartitionSpec((X, Y)), PartitionSpec((X, ()))
    part = replace(part, operands=(part.operands[0].with_spec(start),), result=part.result.with_spec(goal))
    steps = (
        Step("all_to_all", "A", Y, None, start, PartitionSpec((("X", "Y"), ())), (), "bf16", 0, 0, ""),
        Step(
            "all_gather",
            "A",
            ("X", "Y"),
            None,
            PartitionSpec((("X", "Y"), ())),
            PartitionSpec(((), ())),
            (),
            "bf16",
            0,
            0,
            "",
        ),
        Step(
            "einsum",
            "Out",
            (),
            None,
            PartitionSpec(((), ())),
            PartitionSpec(((), ())),
            (),
            "bf16",
            0,
            0,
            "",
            ("A",),
            part.einsum,
        ),
        Step("slice", "Out", X, None, PartitionSpec(((), ())), goal, (), "bf16", 0, 0, ""),
    )
    values = {"A": np.random.default_rng(0).integers(-9, 10, (5, 7))}
    plan = Plan(Problem(mesh, (part,)), steps, goal, ())
    assert np.array_equal(run(plan, values), values["A"].T)
