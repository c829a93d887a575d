"""Plans are proved: run on real numbers, device by device, they give what `numpy.einsum` gives."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import pytest

from shardviz.errors import QuestionError
from shardviz.notation.einsum import Einsum
from shardviz.notation.spec_string import write_spec
from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner, plan
from shardviz.planner.problem import Problem
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh, PartitionSpec, array_bytes
from tests.planner.executor import PlanError, prove, run, values_for

BOOK = Mesh(("X", "Y"), (2, 4))


def naive_wire_bytes(problem: Problem) -> int:
    """What it takes to gather (and add up) every argument, multiply everywhere, and keep slices."""
    mesh, total = problem.mesh, 0
    for array in problem.arguments:
        spec = array.decided_spec
        whole = array_bytes(array.shape, array.dtype)
        n, pending = mesh.group_size(spec.axes), mesh.group_size(spec.unreduced)
        total += ceil(2 * (whole // n) * (pending - 1) / pending) + ceil(whole * (n - 1) / n)
    return total


def check_matmuls(specs_of_matmuls: list[str]) -> None:
    """Assert of each matmul that its plans give the right numbers, and cost no more than naive ones."""
    planner, fewest_bytes = Planner(BOOK), Planner(BOOK, objective="bytes")
    values = None
    for specs in specs_of_matmuls:
        problem = problem_from_text("bd,df->bf", mesh=BOOK, specs=specs, sizes="b=8,d=16,f=24")
        if values is None:
            values = values_for(problem)
            expected = np.einsum("bd,df->bf", values["A"], values["W"])
        fastest, smallest = planner.plan(problem), fewest_bytes.plan(problem)
        for found in (fastest, smallest):
            assert problem.result.spec in (None, found.result_spec)
            assert np.array_equal(run(found, values), expected), specs
        assert smallest.wire_bytes <= naive_wire_bytes(problem), specs


def test_many_ways_to_split_a_matmul_on_two_axes(matmul_specs):
    check_matmuls(matmul_specs[::37])


@pytest.mark.slow
def test_every_way_to_split_a_matmul_on_two_axes(matmul_specs):
    assert len(matmul_specs) == len(set(matmul_specs)) == 1452
    check_matmuls(matmul_specs)


@dataclass
class Draw:
    """Random problems: einsums with batch, summed and repeated letters, on up to four axes."""

    random: random.Random

    def mesh(self, most: int = 4) -> Mesh:
        sizes = [self.random.choice((2, 2, 3)) for _ in range(self.random.randrange(1, most + 1))]
        order = self.random.sample(range(math.prod(sizes)), math.prod(sizes))
        names = self.random.choice((("X", "Y", "Z", "W"), ("data", "model", "x", "expert")))
        return Mesh(names[: len(sizes)], tuple(sizes), self.random.choice((None, tuple(order))))

    def dims(self, letters: str, least: int = 0, repeat: bool = True) -> tuple[str, ...]:
        found = self.random.sample(letters, self.random.randrange(least, min(4, len(letters) + 1)))
        if repeat and found and self.random.random() < 0.15:
            found.append(self.random.choice(found))
        return tuple(found)

    def part(self, letters: str, first: tuple[str, ...] | None = None) -> Einsum:
        operands = [self.dims(letters, 1) if first is None else first]
        if self.random.random() < 0.8:
            operands.append(self.dims(letters))
        known = sorted({dim for dims in operands for dim in dims})
        kept = [dim for dim in known if self.random.random() < 0.6]
        return Einsum(tuple(operands), tuple(self.random.sample(kept, len(kept))))

    def spec(self, dims: tuple[str, ...], mesh: Mesh, pending: float = 0.0) -> PartitionSpec:
        places: list[list[str]] = [[] for _ in dims]
        unreduced = []
        for axis in self.random.sample(mesh.axis_names, len(mesh.axis_names)):
            place = self.random.randrange(-1, len(dims))
            if place >= 0:
                places[place].append(axis)
            elif self.random.random() < pending:
                unreduced.append(axis)
        return PartitionSpec(tuple(map(tuple, places)), tuple(unreduced))

    def problem(self, parts: int = 1) -> Problem:
        mesh = self.mesh(3 if parts > 1 else 4)
        letters = "abcdef"[: self.random.randrange(2, 6)]
        chain: list[Einsum] = []
        for _ in range(parts):
            chain.append(self.part(letters, chain[-1].result if chain else None))
        specs = []
        for index, einsum in enumerate(chain):
            operands = [self.spec(dims, mesh, 0.2) for dims in einsum.operands]
            first = operands[0]
            if index:
                first = None if self.random.random() < 0.5 else replace(first, unreduced=())
            specs.append(([first, *operands[1:]], self.result_spec(einsum, operands, mesh)))
        written = "; ".join(
            ",".join(write_spec(spec) for spec in operands)
            + ("" if result is None else f"->{write_spec(result)}")
            for operands, result in specs
        )
        sizes = {}
        for einsum, (operands, result) in zip(chain, specs, strict=True):
            for dims, spec in zip((*einsum.operands, einsum.result), (*operands, result), strict=True):
                for dim, cut in zip(dims, spec.parts(mesh) if spec else (), strict=bool(spec)):
                    sizes[dim] = math.lcm(sizes.get(dim, 1), cut)
                for dim in dims:
                    sizes.setdefault(dim, 1)
        for dim, size in sizes.items():
            if size < 12:
                sizes[dim] = size * self.random.choice((1, 1, 2))
        return problem_from_text(
            ";".join(map(str, chain)),
            mesh=mesh,
            specs=written,
            sizes=",".join(f"{dim}={size}" for dim, size in sizes.items()),
            dtype=self.random.choice(("bf16", "f32", "s8")),
        )

    def result_spec(self, einsum: Einsum, operands: list[PartitionSpec], mesh: Mesh) -> PartitionSpec | None:
        kind = self.random.random()
        if kind < 0.3:
            return None
        spec = self.spec(einsum.result, mesh)
        if kind < 0.5:
            summed = {
                axis
                for dims, held in zip(einsum.operands, operands, strict=True)
                for dim, axes in zip(dims, held.dims, strict=True)
                for axis in axes
                if dim in einsum.contracted
            }
            spec = replace(spec, unreduced=tuple(sorted(summed - set(spec.axes)))[:2])
        return spec


def planned_unless_impossible(problem: Problem) -> Plan | None:
    """The plan, or None where no plan can leave the result unreduced as asked."""
    try:
        return plan(problem)
    except QuestionError as error:
        if "cannot be left unreduced over" not in error.message:
            raise
        return None


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_random_einsums(seed):
    draw = Draw(random.Random(seed))
    planned = unreduced = refused = 0
    while planned < 25:
        problem = draw.problem()
        found = planned_unless_impossible(problem)
        if found is None:
            refused += 1
            continue
        planned += 1
        unreduced += bool(found.result_spec.unreduced)
        prove(found)
        fewest_bytes = plan(problem, objective="bytes")
        prove(fewest_bytes)
        if not found.result_spec.unreduced:
            assert fewest_bytes.wire_bytes <= naive_wire_bytes(problem), problem
    assert unreduced > 0
    assert refused < 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_chains_with_constraints(seed):
    draw = Draw(random.Random(100 + seed))
    planned = 0
    while planned < 20:
        problem = draw.problem(parts=draw.random.randrange(2, 5))
        found = planned_unless_impossible(problem)
        if found is None:
            continue
        planned += 1
        prove(found)
        assert len(found.cases) == len(found.problem.parts)


def test_a_chain_passes_through_the_constraint_on_its_intermediate():
    problem = problem_from_text(
        "bx,xy->by; by,yz->bz", mesh=BOOK, specs="X_,_Y->XY; _X,X_->__", sizes="b=8,x=8,y=8,z=8"
    )
    found = plan(problem)
    prove(found)
    states = [step.to_spec for step in found.steps if step.array == "H1"]
    assert PartitionSpec((("X",), ("Y",))) in states
    assert PartitionSpec(((), ("X",))) in states


@pytest.mark.parametrize(
    ("text", "specs", "sizes"),
    [
        ("b->", "X", "b=8"),
        ("ii->", "X_", "i=8"),
        ("ii->i", "XY", "i=8"),
        ("ab->ba", "XY->YX", "a=8,b=8"),
        (",->", "(),()", ""),
        (",a->a", "(),X", "a=4"),
        ("...d,df->...f", "XY_,__", "...=4x4,d=2,f=3"),
        ("ab,ab->", "XY,YX", "a=8,b=8"),
        ("ab,cd->abcd", "XY,XY", "a=4,b=4,c=4,d=4"),
        ("abcdef->f", "XY____", "a=2,b=4,c=1,d=1,e=2,f=3"),
        ("bd,df->bf", "XY,Y_->X_{U_Y}", "b=8,d=8,f=8"),
        ("bd,df->bf", "X_{U_Y},__->X_{U_Y}", "b=8,d=8,f=8"),
    ],
)
def test_einsums_at_the_edge(text, specs, sizes):
    problem = problem_from_text(text, mesh=BOOK, specs=specs, sizes=sizes)
    prove(plan(problem))


def test_the_plan_for_one_problem_is_always_the_same(matmul_specs):
    shared = Planner(BOOK)
    for specs in matmul_specs[::-97]:
        problem = problem_from_text("bd,df->bf", mesh=BOOK, specs=specs)
        assert shared.plan(problem) == plan(problem) == plan(problem)


def test_replicas_that_disagree_are_an_error():
    """A product of which only the sums over X were added is no replica over Y."""
    problem = problem_from_text("bd,df->bf", mesh=BOOK, specs="XY,Y_->X_", sizes="b=8,d=16,f=24")
    found = plan(problem)
    wrong = tuple(
        replace(step, to_spec=step.to_spec if step.op == "psum" else replace(step.to_spec, unreduced=()))
        for step in found.steps
    )
    with pytest.raises(PlanError, match="after einsum replicas of Out differ"):
        run(replace(found, steps=wrong), values_for(problem))


def test_a_step_that_is_missing_is_an_error():
    problem = problem_from_text("bd,df->bf", mesh=BOOK, specs="XY,Y_->X_", sizes="b=8,d=16,f=24")
    found = plan(problem)
    without = replace(found, steps=tuple(step for step in found.steps if step.op != "psum"))
    with pytest.raises(PlanError, match=r"Out does not end as P\('X', None\)"):
        run(without, values_for(problem))


def test_a_move_of_another_dimension_is_an_error():
    problem = problem_from_text("bd,df->bf", mesh=BOOK, specs="XY,_Y->XY", sizes="b=8,d=16,f=24")
    found = plan(problem)
    gather = replace(found.steps[0], dim=0)
    with pytest.raises(PlanError, match="all_gather names dimension 0"):
        run(replace(found, steps=(gather, *found.steps[1:])), values_for(problem))


def test_an_unknown_step_is_an_error():
    problem = problem_from_text("bd,df->bf", mesh=BOOK, specs="XY,Y_->X_", sizes="b=8,d=16,f=24")
    found = plan(problem)
    with pytest.raises(PlanError, match="a step broadcast that no device can perform"):
        run(
            replace(found, steps=(*found.steps[:1], replace(found.steps[1], op="broadcast"))),
            values_for(problem),
        )
