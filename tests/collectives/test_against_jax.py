"""JAX as the judge: random collectives, by every algorithm that can, against `jax.shard_map`.

A batch is one mesh and one compiled program that holds all of its collectives: compiling is what costs.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.collectives.algorithms import ALGORITHMS, schedule_for, schedules_for
from shardviz.collectives.frames import Frames
from shardviz.collectives.operation import Operation
from shardviz.collectives.operations import OPERATIONS, PMean, PPermute
from shardviz.collectives.values import numpy_dtype
from shardviz.collectives.verification import verify
from shardviz.compiler.child.collective import collective_program
from shardviz.compiler.question import run_call
from shardviz.errors import QuestionError
from shardviz.sharding import Mesh
from shardviz.sharding.array import BITS, WIDE
from shardviz.targets import TARGETS

BATCHES = 8
SLOW = {*range(BATCHES)} - {3, 4}
"""Those that the long corpora have."""
COLLECTIVES = 40
MESHES = (
    ((8,), (7,), (6,), (5,), (3,), (2,), (1,)),
    ((2, 4), (4, 2), (2, 3), (3, 2), (2, 2), (1, 5), (7, 1)),
    ((2, 2, 2), (2, 1, 3), (1, 4, 2), (2, 2, 1)),
    ((2, 1, 2, 2), (1, 2, 2, 2), (2, 3, 1, 1), (1, 1, 2, 4)),
)
DTYPES = [name for name, bits in BITS.items() if bits and name not in ("s2", "u2")]
"""XLA for CPU ends its process over some gathers of two bits."""


@dataclass(frozen=True)
class Case:
    """One collective on random shards."""

    operation: Operation
    dtype: str
    mesh: Mesh
    shards: np.ndarray

    def __str__(self) -> str:
        shape = ",".join(map(str, self.shards.shape[1:]))
        return f"{self.operation} of {self.dtype}[{shape}] on {self.mesh} {self.mesh.device_order}"


def random_mesh(rng: random.Random, number: int) -> Mesh:
    sizes = rng.choice(MESHES[number % len(MESHES)])
    order = list(range(int(np.prod(sizes))))
    if number % 3:
        rng.shuffle(order)
    return Mesh(tuple("XYZW"[: len(sizes)]), sizes, tuple(order))


def random_case(rng: random.Random, mesh: Mesh, dtypes: list[str]) -> Case:
    while True:
        name, dtype = rng.choice([*OPERATIONS]), rng.choice(dtypes)
        axes = rng.sample(mesh.axis_names, rng.randint(1, len(mesh.axis_names)))
        if name == "ppermute":
            axes.sort(key=mesh.axis_names.index)
        n = mesh.group_size(axes)
        operation, shape = random_operation(rng, name, tuple(axes), n)
        try:
            operation.check(shape, dtype, n)
        except QuestionError:
            continue
        return Case(operation, dtype, mesh, random_shards(rng, (mesh.size, *shape), dtype, operation))


def random_operation(rng, name, axes, n):
    """An operation with random parameters, and the shape of a shard that it takes."""
    shape = [rng.randint(1, 4) for _ in range(rng.randint(0, 3))]
    rank, tiled = len(shape), rng.random() < 0.6
    dim = rng.randrange(rank) if rank else 0
    sign = rng.choice([0, rank])
    parameters = {}
    match name:
        case "all_gather":
            tiled = tiled and rank > 0
            limit = rank if tiled else rank + 1
            parameters = {"axis": rng.randrange(-limit, limit), "tiled": tiled}
        case "psum_scatter" | "all_to_all" if rank:
            shape[dim] = shape[dim] * n if tiled else n
            which = "scatter_dimension" if name == "psum_scatter" else "split_axis"
            parameters = {which: dim - sign, "tiled": tiled}
            if name == "all_to_all":
                parameters["concat_axis"] = rng.randrange(-rank, rank)
        case "ppermute":
            count = rng.randint(0, n)
            sources, targets = rng.sample(range(n), count), rng.sample(range(-n, 0), count)
            parameters = {"perm": tuple(zip(sources, targets, strict=True))}
        case "pbroadcast":
            parameters = {"source": rng.randrange(n)}
        case "ragged_all_to_all":
            sizes = tuple(tuple(rng.choice([0, 0, 1, 2]) for _ in range(n)) for _ in range(n))
            # JAX gathers no empty dimension where it stands in for this one.
            shape[:1] = [max(1, *map(sum, sizes))]
            parameters = {"send_sizes": sizes}
    return OPERATIONS[name](axes, **parameters), tuple(shape)


def random_shards(rng, shape, dtype, operation):
    """Any integers; floats that are small and whole, or any with a few among them that are not finite."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    kind = numpy_dtype(dtype)
    if dtype == "pred":
        return numbers.integers(0, 2, shape).astype(bool)
    if dtype[0] in "su":
        return (
            numbers.integers(0, 256, (*shape, kind.itemsize), np.uint8)
            .view(f"u{kind.itemsize}")[..., 0]
            .astype(kind)
        )
    if rng.random() < 0.4:
        return numbers.integers(-1, 2, shape).astype(kind)
    values = numbers.standard_normal(shape) * 2.0 ** numbers.integers(-4, 4, shape)
    if kind.kind == "c":
        values = values + 1j * numbers.standard_normal(shape)
    elif rng.random() < 0.3:
        odd = numbers.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
        values = np.where(numbers.random(shape) < 0.2, odd, values)
    with np.errstate(all="ignore"):
        found = values.astype(kind)
    if operation.name in ("pmax", "pmin"):
        # XLA for CPU passes over NaN when it looks for the largest.
        found = np.where(found == found, found, np.ones((), kind))
    return found


def ran_by_jax(cases: list[Case]) -> list[np.ndarray]:
    """Every case's result, by mesh position: one program for all, on the devices in the mesh's order."""
    mesh = cases[0].mesh
    devices = np.array(jax.devices())[list(mesh.device_order)].reshape(mesh.axis_sizes)
    on = jax.sharding.Mesh(devices, mesh.axis_names, axis_types=(AxisType.Auto,) * devices.ndim)
    spec, ones = P(*mesh.axis_names), (1,) * devices.ndim
    calls = [
        collective_program(run_call(case.operation, mesh, case.shards, TARGETS["cpu"]).arguments[1], "cpu")[0]
        for case in cases
    ]

    def body(*shards):
        results = [
            call(shard.reshape(shard.shape[devices.ndim :]))
            for call, shard in zip(calls, shards, strict=True)
        ]
        return tuple(result.reshape(ones + result.shape) for result in results)

    with jax.enable_x64(cases[0].dtype in WIDE):
        specs = (spec,) * len(cases)
        mapped = jax.jit(
            jax.shard_map(body, mesh=on, in_specs=specs, out_specs=specs, check_vma=False),
        )
        shards = [case.shards.reshape(*mesh.axis_sizes, *case.shards.shape[1:]) for case in cases]
        results = mapped(*jax.device_put(shards, NamedSharding(on, spec)))
        return [np.asarray(result).reshape(mesh.size, *result.shape[devices.ndim :]) for result in results]


def schedules(case: Case, rng: random.Random):
    """One of every algorithm that can, and pipelines a second time in a random number of pieces."""
    pattern = case.operation.pattern(case.operation.dims(case.mesh))
    for schedule in schedules_for(pattern):
        yield schedule
        with suppress(QuestionError):
            yield schedule_for(schedule.algorithm, pattern, rng.randint(1, 5))


def exact(case: Case) -> bool:
    """Whether neither the order of additions nor a division can make a difference."""
    moves = not case.operation.pattern(case.operation.dims(case.mesh)).reduces
    whole = case.dtype[0] in "sup" and case.operation.name != "pmean"
    return moves or whole or case.operation.name in ("pmax", "pmin")


def batch(number: int) -> list[Case]:
    rng = random.Random(number)
    mesh = random_mesh(rng, number)
    # JAX has 64-bit types everywhere or nowhere.
    dtypes = [dtype for dtype in DTYPES if (dtype in WIDE) == (number % 5 == 4)]
    return [random_case(rng, mesh, dtypes) for _ in range(COLLECTIVES)]


def judged(cases: list[Case], number: int):
    """(case, schedule, verification) for every case and algorithm."""
    rng = random.Random(number)
    for case, theirs in zip(cases, ran_by_jax(cases), strict=True):
        for schedule in schedules(case, rng):
            ours = Frames(schedule, case.operation, case.mesh, case.shards).after
            yield case, schedule, verify(case.operation, case.mesh, case.shards, ours, theirs)


@pytest.mark.parametrize(
    "number",
    [pytest.param(number, marks=[pytest.mark.slow] * (number in SLOW)) for number in range(BATCHES)],
)
def test_every_algorithm_gives_what_jax_gives(number):
    wrong, seen = [], 0
    for case, schedule, verification in judged(batch(number), number):
        seen += 1
        if verification.verdict == "different" or (exact(case) and verification.verdict != "equal"):
            wrong.append(f"{case} by {schedule.algorithm} in {schedule.chunks} chunks: {verification}")
    assert not wrong, "\n".join([f"{len(wrong)} of {seen} cases of batch {number} differ:", *wrong[:10]])
    assert seen >= COLLECTIVES


def test_there_are_a_thousand_cases_and_all_kinds_are_among_them():
    cases = [case for number in range(BATCHES) for case in batch(number)]
    rng = random.Random(0)
    found = [(case, schedule) for case in cases for schedule in schedules(case, rng)]
    assert len(found) >= 1000
    assert {schedule.algorithm for _, schedule in found} == {*ALGORITHMS}
    assert {case.operation.name for case in cases} == {*OPERATIONS}
    assert {case.dtype for case in cases} == {*DTYPES}
    assert {len(case.mesh.axis_sizes) for case in cases} == {1, 2, 3, 4}
    assert {case.shards.ndim - 1 for case in cases} == {0, 1, 2, 3}
    assert any(
        case.operation.axes != tuple(sorted(case.operation.axes, key=case.mesh.axis_names.index))
        for case in cases
    )


class WrongMean(PMean):
    def finished(self, result, group_size):
        return super().finished(result, group_size + 1)


class WrongTarget(PPermute):
    def pattern(self, dims):
        pattern = super().pattern(dims)
        turned = tuple((target, source) for source, target in pattern.perm)
        return type(pattern)(pattern.kind, dims, perm=turned)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (PMean(("X",)), WrongMean(("X",))),
        (PPermute(("X",), ((0, 1), (1, 2))), WrongTarget(("X",), ((0, 1), (1, 2)))),
    ],
)
def test_the_judge_catches_a_wrong_meaning(right, wrong):
    mesh = Mesh(("X",), (4,), (0, 1, 2, 3))
    shards = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    (theirs,) = ran_by_jax([Case(right, "f32", mesh, shards)])
    for operation, verdict in ((right, "equal"), (wrong, "different")):
        schedule = schedule_for("direct", operation.pattern((4,)))
        ours = Frames(schedule, operation, mesh, shards).after
        assert verify(right, mesh, shards, ours, theirs).verdict == verdict
