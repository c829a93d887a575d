"""Whatever a reason says of a random plan is checked against the plan: who splits what, and every number.

Nothing here asks `shardviz.planner.reasons`: states are followed from step to step, and
bytes are counted anew.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import pytest

from shardviz.planner.plan import Plan, Step
from shardviz.planner.problem import Statement
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from tests.planner.test_plan_proved import Draw, planned_unless_impossible

NAME = r"(\w+)"
BOTH = re.compile(rf"^Both {NAME} \(along (\w)\) and {NAME} \(along (\w)\) use (\S+), but the product can")
ONLY = re.compile(rf"^The product contracts (\w), but only {NAME} is sharded along it over (\S+) ")
IDLE = re.compile(rf"^No cheaper plan was found that keeps {NAME} sharded along (\w) over (\S+): ")
ALIKE = re.compile(
    rf"^{NAME} and {NAME} are both sharded along (\w) over (\S+), .*, so every device multiplies (\d+) times"
)
TWICE = re.compile(rf"^{NAME} has (\w) twice")
OTHERWISE = re.compile(
    rf"^Over (\S+), the work is divided along (\w), which {NAME} does not have, not along (\w): "
)
MATCH = re.compile(rf"^To match {NAME}'s sharding of (\w) over (\S+),")
HAVE = re.compile(rf"^To shard {NAME} along (\w) over (\S+),")
IN_PARTS = re.compile(r"^To shard the contracted dimension (\w) over (\S+),")
WANTED = re.compile(rf"^Every device along (\S+) needs (?:all|more) of {NAME}'s (\w)(?: and \w)*[:,]")
CLAIMS = (BOTH, ONLY, IDLE, TWICE, OTHERWISE, MATCH, HAVE, WANTED)
"""What a corpus has to hold; the others are too rare for the short one."""

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*")


@dataclass
class Stretch:
    """One einsum of a plan: the moves of its operands, itself, and the moves of its result."""

    plan: Plan
    part: Statement
    steps: list[Step]
    starts: dict[str, list[PartitionSpec]]
    """Every state of an array here, the one that it came in first."""
    held: dict[str, PartitionSpec]
    """The states while the devices compute."""

    @property
    def mesh(self) -> Mesh:
        return self.plan.problem.mesh

    def array(self, name: str) -> ShardedArray:
        return next(each for each in (*self.part.operands, self.part.result) if each.name == name)

    def splits(self, name: str, dim: str, axes: str, spec: PartitionSpec) -> bool:
        array = self.array(name)
        return any(
            named == dim and set(self.axes(axes)) <= set(held)
            for named, held in zip(array.dims, spec.dims, strict=True)
        )

    def axes(self, text: str) -> list[str]:
        known = self.mesh.axis_names
        return [text] if text in known else text.split("·") if "·" in text else list(text)


def stretches(plan: Plan) -> Iterator[Stretch]:
    """A plan's parts in order."""
    held = {array.name: array.decided_spec for array in plan.problem.arguments}
    for number, own in groupby(plan.steps, key=lambda step: step.part):
        starts = {name: [spec] for name, spec in held.items()}
        found = Stretch(plan, plan.problem.parts[number], list(own), starts, {})
        for step in found.steps:
            held[step.array] = step.to_spec
            starts.setdefault(step.array, []).append(step.to_spec)
            if step.op == "einsum":
                found.held = dict(held)
        yield found


def check_words(part: Stretch, step: Step, seen: Counter[re.Pattern[str]]) -> None:
    """Assert that the sentence's claims hold; count them in `seen`."""
    said = step.reason
    context = (str(part.plan.problem), step, said)
    assert 3 <= len(step.short_reason.split()) <= 10, context
    assert step.short_reason[-1] not in " .;:,", context
    operands = [operand.name for operand in part.part.operands]
    dims = {operand.name: operand.dims for operand in part.part.operands}
    at_einsum = part.held
    if len(operands) == 1:
        assert not re.search("multipl|product", said), context
    assert "does not follow" not in said, context
    if found := BOTH.search(said):
        seen[BOTH] += 1
        one, dim, other, other_dim, axes = found.groups()
        assert one == step.array, context
        assert any(part.splits(one, dim, axes, spec) for spec in part.starts[one]), context
        assert part.splits(other, other_dim, axes, part.starts[other][0]), context
        assert part.splits(other, other_dim, axes, at_einsum[other]), context
        assert not set(part.axes(axes)) & set(at_einsum[one].axes), context
    if found := ONLY.search(said):
        seen[ONLY] += 1
        dim, one, axes = found.groups()
        assert dim in part.part.einsum.contracted, context
        mates = [name for name in operands if name != one and dim in dims[name]]
        assert mates, context
        assert not any(
            part.splits(name, dim, axis, part.starts[name][0]) for name in mates for axis in part.axes(axes)
        ), context
    if found := IDLE.search(said):
        seen[IDLE] += 1
        one, dim, axes = found.groups()
        assert any(part.splits(one, dim, axes, spec) for spec in part.starts[one]), context
        assert not part.splits(one, dim, axes, at_einsum[one]), context
    if found := ALIKE.search(said):
        seen[ALIKE] += 1
        one, other, dim, axes, times = found.groups()
        starts = [part.starts[name][0].dims[dims[name].index(dim)] for name in (one, other)]
        assert starts[0] == starts[1], context
        assert set(part.axes(axes)) <= set(starts[0]), context
        assert number(times) == part.mesh.group_size(part.axes(axes)), context
        assert not set(part.axes(axes)) & {axis for name in operands for axis in at_einsum[name].axes}, (
            context
        )
    if found := TWICE.search(said):
        seen[TWICE] += 1
        assert dims[found[1]].count(found[2]) == 2, context
        assert not at_einsum[step.array].dims[part.array(step.array).dims.index(found[2])], context
    if found := OTHERWISE.search(said):
        seen[OTHERWISE] += 1
        axis, split, one, dim = found.groups()
        assert split not in dims[one], context
        assert dim in dims[one], context
        holders = [*operands, part.part.result.name]
        assert any(part.splits(name, split, axis, at_einsum[name]) for name in holders), context
    if found := MATCH.search(said):
        seen[MATCH] += 1
        assert part.splits(*found.groups(), part.starts[found[1]][0]), context
        assert part.splits(*found.groups(), at_einsum[found[1]]), context
    if found := HAVE.search(said):
        seen[HAVE] += 1
        made = step.to_spec if found[1] == step.array else at_einsum[found[1]]
        assert part.splits(*found.groups(), made), context
    if (found := WANTED.search(said)) and found[2] == part.plan.problem.result.name:
        seen[WANTED] += 1
        place = part.array(found[2]).dims.index(found[3])
        assert set(part.plan.result_spec.dims[place]) <= set(step.to_spec.dims[place]), context
    if found := IN_PARTS.search(said):
        seen[IN_PARTS] += 1
        assert found[1] in part.part.einsum.contracted, context
        assert part.splits(step.array, found[1], found[2], at_einsum[step.array]), context


def check_numbers(part: Stretch, step: Step) -> None:
    """Assert that every number is one of the step, or of an alternative that is named with it."""
    mesh, said = part.mesh, step.reason
    n = mesh.group_size(step.axes)
    known = {1, 2, n, n - 1, step.bytes, step.wire_bytes}
    if step.op == "einsum":
        for operand in part.part.operands:
            known |= {*operand.with_spec(part.held[operand.name]).shard_shape(mesh)}
        summed = {
            axis
            for operand in part.part.operands
            for dim, axes in zip(operand.dims, part.held[operand.name].dims, strict=True)
            for axis in axes
            if dim in part.part.einsum.contracted
        }
        known.add(mesh.group_size(summed))
    else:
        array = part.array(step.array)
        for spec in (step.from_spec, step.to_spec):
            known |= {*array.with_spec(spec).shard_shape(mesh)}
    found = {number(text) for text in NUMBER.findall(said)}
    assert found <= known, (str(part.plan.problem), step, found - known)
    if step.wire_bytes:
        assert step.wire_bytes in found, step


def number(text: str) -> int:
    return int(text.replace(",", ""))


def lint(count: int, seed: int) -> Counter[re.Pattern[str]]:
    draw = Draw(random.Random(seed))
    seen: Counter[re.Pattern[str]] = Counter()
    planned = 0
    while planned < count:
        plan = planned_unless_impossible(draw.problem(draw.random.choice((1, 1, 2, 3))))
        if plan is None:
            continue
        planned += 1
        for part in stretches(plan):
            for step in part.steps:
                check_words(part, step, seen)
                check_numbers(part, step)
    return seen


def test_reasons_of_random_plans_are_true():
    seen = lint(25, seed=0)
    assert all(seen[claim] for claim in CLAIMS), seen


@pytest.mark.slow
def test_reasons_of_many_random_plans_are_true():
    seen = lint(250, seed=2)
    assert all(seen[claim] for claim in (*CLAIMS, IN_PARTS)), seen
