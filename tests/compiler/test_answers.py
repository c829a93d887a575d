"""What Shardy and XLA answer, by way of the worker."""

from __future__ import annotations

import re

import pytest

from shardviz.compiler import Worker
from shardviz.errors import TargetError
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.targets import TARGETS

SHARDY, CPU = TARGETS["shardy"], TARGETS["cpu"]


def moves(collectives):
    return [(each.op, each.axes, each.dtype, each.bytes) for each in collectives]


FOUR_CASES = [
    (
        "XY,Y_->X_",
        [("all-reduce", ("Y",), "bf16", 65_536)],
        [("all-reduce", ("Y",), "f32", 131_072)],
    ),
    (
        "XY,Y_->XY",
        [("reduce-scatter", ("Y",), "bf16", 65_536)],
        [("all-reduce", ("Y",), "f32", 131_072)],
    ),
    (
        "XY,_Y->XY",
        [("all-gather", ("Y",), "bf16", 16_384)],
        [("all-gather", ("Y",), "f32", 32_768)],
    ),
    ("X_,_Y->XY", [], []),
]


@pytest.mark.parametrize(("specs", "by_shardy", "by_cpu"), FOUR_CASES)
def test_the_four_cases(worker, matmul, specs, by_shardy, by_cpu):
    problem = matmul(specs)
    shardy = worker.ask(problem, SHARDY)
    assert (shardy.status, moves(shardy.collectives)) == ("ok", by_shardy)
    assert shardy.partitioned is None
    assert "sdy.mesh" in shardy.text
    cpu = worker.ask(problem, CPU)
    assert (cpu.status, moves(cpu.collectives)) == ("ok", by_cpu)
    assert cpu.text.startswith("HloModule")
    assert shardy.result_spec == cpu.result_spec == problem.result.spec
    assert cpu.elapsed_s > 0
    assert {name for name, _ in cpu.versions} == {"jax", "jaxlib", "python"}


def test_after_partitioning_cpu_still_has_the_programs_type(worker, matmul):
    cpu = worker.ask(matmul("XY,Y_->X_"), CPU)
    assert moves(cpu.partitioned) == [("all-reduce", ("Y",), "bf16", 65_536)]


@pytest.mark.parametrize("target", [SHARDY, CPU])
def test_the_compilers_choice_is_reported(worker, matmul, target):
    answer = worker.ask(matmul("XY,Y_"), target)
    assert answer.result_spec == PartitionSpec((("X",), ()))


def test_shardy_answers_for_131072_devices(worker):
    problem = problem_from_text(
        "bd,df->bf", mesh=parse_mesh("data=1024,model=16,x=8"), specs="data model, model _", sizes=""
    )
    answer = worker.ask(problem, SHARDY)
    assert [(each.op, each.axes) for each in answer.collectives] == [("all-reduce", ("model",))]
    assert answer.result_spec == PartitionSpec((("data",), ()))


@pytest.mark.parametrize("target", [SHARDY, CPU])
def test_a_result_over_a_part_of_an_axis(worker, matmul, target):
    problem = matmul("X:(1)2 _, _ _->X:(1)2 _", mesh="X=4,Y=2", sizes="b=8,d=8,f=8")
    answer = worker.ask(problem, target)
    assert answer.status == "ok"
    assert answer.result_spec == problem.result.spec
    assert not answer.collectives


def test_a_mesh_that_cpu_cannot_simulate_is_refused_before_asking(worker, matmul):
    problem = matmul("X_,_Y", mesh="X=64,Y=64", sizes="b=64,d=64,f=64")
    with pytest.raises(TargetError, match=r"4,096 devices but target cpu takes at most 2,048"):
        worker.submit(problem, CPU)


def test_the_simulated_devices_grow_with_the_mesh_in_the_same_child(worker, matmul):
    worker.ask(matmul("XY,Y_->X_"), CPU)
    before = worker.pids()
    larger = worker.ask(matmul("XY,Y_->X_", mesh="X=16,Y=8", sizes="b=64,d=64,f=64"), CPU)
    assert moves(larger.collectives) == [("all-reduce", ("Y",), "f32", 1024)]
    smaller = worker.ask(matmul("XY,Y_->X_", mesh="X=2,Y=2", sizes="b=64,d=64,f=64"), CPU)
    assert "num_partitions=4" in smaller.text
    assert worker.pids() == before


def test_a_permuted_mesh_names_the_devices_that_jax_groups(worker):
    import jax
    import numpy as np

    order = (3, 1, 4, 0, 5, 7, 2, 6)
    if len(jax.devices()) < len(order):
        pytest.skip("needs 8 simulated devices in this process")
    mesh = Mesh(("X", "Y"), (2, 4), order)
    problem = problem_from_text("bd,df->bf", mesh=mesh, specs="XY,Y_->X_", sizes="b=8,d=64,f=64")
    # The devices that hold the same rows of A add up their partial sums.
    theirs = jax.sharding.Mesh(np.array(jax.devices())[list(order)].reshape(2, 4), ("X", "Y"))
    sharding = jax.sharding.NamedSharding(theirs, jax.sharding.PartitionSpec("X", "Y"))
    together: dict[object, set[int]] = {}
    for device, (row, _) in sharding.devices_indices_map((8, 64)).items():
        together.setdefault((row.start, row.stop), set()).add(device.id)
    for target in (SHARDY, CPU):
        (collective,) = worker.ask(problem, target).collectives
        assert sorted(map(sorted, collective.groups)) == sorted(map(sorted, together.values()))


CHAIN = "bx,xy->by; by,yz->bz"
CHAIN_SIZES = "b=8,x=64,y=64,z=64"


@pytest.mark.parametrize("axis_types", ["auto", "explicit"])
@pytest.mark.parametrize(
    ("specs", "ops"),
    [
        ("XY,Y_->X_; ,_Y->XY", ["all-reduce"]),
        ("X_,__->X_; ,__->X_", []),
        ("X_,__->X_; XY,__->X_", ["all-reduce"]),
        ("X_,__->XY; ,__->X_", ["all-reduce"]),
    ],
)
def test_a_chain_with_a_constraint_on_the_intermediate(worker, matmul, specs, ops, axis_types):
    problem = matmul(specs, einsum=CHAIN, sizes=CHAIN_SIZES, axis_types=axis_types)
    answer = worker.ask(problem, SHARDY)
    assert (answer.status, answer.error) == ("ok", "")
    assert [each.op for each in answer.collectives if each.op != "slice"] == ops


@pytest.mark.parametrize(
    ("einsum", "specs", "sizes"),
    [
        ("bij,bjk->bik", "X_Y,XY_", "b=4,i=4,j=8,k=4"),
        ("ij->ji", "XY->YX", "i=8,j=8"),
        ("i,i->", "X,X", "i=8"),
        ("ii->i", "X_", "i=8"),
        ("i,j->ij", "X,Y->XY", "i=8,j=8"),
        ("...d,df->...f", "XY,Y_", ""),
    ],
)
@pytest.mark.parametrize("axis_types", ["auto", "explicit"])
def test_other_einsums_are_answered_or_refused_by_jax(worker, matmul, einsum, specs, sizes, axis_types):
    problem = matmul(specs, einsum=einsum, sizes=sizes, axis_types=axis_types)
    shardy, cpu = (worker.ask(problem, target) for target in (SHARDY, CPU))
    assert shardy.status == cpu.status
    assert shardy.error == cpu.error
    if shardy.status == "error":
        assert shardy.error.startswith("ShardingTypeError: ")
        assert "out_sharding=P(" in shardy.hint


@pytest.mark.parametrize(
    "dtype", ["f32", "f16", "s32", "pred", "f8e4m3fn", "f8e5m2", "s4", "c64", "f64", "s64"]
)
def test_element_types_arrive_as_they_were_asked(worker, matmul, dtype):
    problem = matmul("XY,Y_->X_", sizes="b=8,d=64,f=64", dtype=dtype)
    (collective,) = worker.ask(problem, SHARDY).collectives
    assert collective.dtype == dtype
    (collective,) = worker.ask(problem, CPU).partitioned
    assert collective.dtype == dtype


@pytest.mark.parametrize("target", [SHARDY, CPU])
def test_a_type_that_jax_does_not_have_is_an_error_with_a_hint(worker, matmul, target):
    answer = worker.ask(matmul("XY,Y_", dtype="token"), target)
    assert (answer.status, answer.collectives) == ("error", ())
    assert re.fullmatch(r"JAX \S+ has no arrays of token", answer.error)
    assert answer.hint


@pytest.mark.parametrize("target", [SHARDY, CPU])
@pytest.mark.parametrize(
    ("mesh", "specs", "sizes"),
    [
        ("X=2,Y=4", "__,__", "b=8,d=8,f=8"),
        ("X=2,Y=4", "X_,_Y", "b=0,d=8,f=8"),
        ("X=1", "X_,__->X_", "b=8,d=8,f=8"),
        ("X=1,Y=4", "XY,Y_->X_", "b=8,d=8,f=8"),
    ],
)
def test_small_and_empty_questions_are_answered(worker, matmul, target, mesh, specs, sizes):
    problem = matmul(specs, mesh=mesh, sizes=sizes)
    answer = worker.ask(problem, target)
    assert (answer.status, answer.error) == ("ok", "")
    assert answer.result_spec is not None
    if problem.result.spec is not None:
        assert answer.result_spec == problem.result.spec


@pytest.mark.parametrize("target", [SHARDY, CPU])
def test_a_size_that_does_not_divide_is_refused_in_jaxs_words(worker, target):
    problem = uneven_problem()
    answer = worker.ask(problem, target)
    assert answer.status == "error"
    assert "array axis 0 is partitioned 2 times, but the dimension size is 7" in answer.error
    assert "/" not in answer.error.split("(full shape")[0]
    assert answer.hint == (
        "dimension b of A has 7 elements, which 2 devices along X do not divide: choose a multiple of 2, "
        "or leave it whole"
    )


def uneven_problem():
    """`problem_from_text` refuses it, so it is built by hand."""
    from shardviz.notation.einsum import Einsum
    from shardviz.planner.problem import Problem, Statement
    from shardviz.sharding import ShardedArray

    rows, whole = PartitionSpec((("X",), ())), PartitionSpec(((), ()))
    a = ShardedArray("A", ("b", "d"), (7, 8), "f32", rows)
    w = ShardedArray("W", ("d", "f"), (8, 8), "f32", whole)
    out = ShardedArray("Out", ("b", "f"), (7, 8), "f32", None)
    einsum = Einsum((("b", "d"), ("d", "f")), ("b", "f"))
    return Problem(parse_mesh("X=2,Y=4"), (Statement(einsum, (a, w), out),))


def test_the_text_names_the_arrays_and_no_file_of_ours(worker, matmul):
    problem = matmul("XY,_Y->XY")
    text = worker.ask(problem, CPU).text
    assert all(f'op_name="{array.name}"' in text for array in problem.arguments)
    assert ".py" not in text


def test_real_uses_the_devices_that_jax_finds(matmul, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    with Worker() as worker:
        assert worker.job().result().process_of == (0,) * 8
        answer = worker.ask(matmul("XY,Y_->X_"), TARGETS["real"])
        assert (answer.target, moves(answer.collectives)) == (
            "real",
            [("all-reduce", ("Y",), "f32", 131_072)],
        )
        answer = worker.ask(matmul("X_,_Y", mesh="X=4,Y=4"), TARGETS["real"])
        assert answer.status == "unavailable"
        assert answer.error == "the mesh has 16 devices but JAX finds 8 here"
        assert "--target cpu" in answer.hint
        answer = worker.ask(matmul("X_,__", mesh="X=4096,Y=1", sizes="b=4096,d=8,f=8"), TARGETS["real"])
        assert answer.error == "the mesh has 4,096 devices but JAX finds 8 here"
        assert answer.hint == "ask --target shardy for a mesh of any size"


def test_a_dtype_that_a_compiler_lacks_is_named_with_those_that_it_has(worker, matmul):
    answer = worker.ask(matmul("XY,Y_->X_", dtype="u2"), CPU)
    assert answer.status == "error"
    assert "U2" in answer.error
    assert answer.hint == "this compiler lacks an operation on u2: use --dtype bf16, f32 or s8"
