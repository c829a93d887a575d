"""What is asked of devices: operations, groups and sizes, with the counts of nccl-tests."""

from __future__ import annotations

import pytest

from shardviz.devices.question import Case, measure_question, parse_sizes
from shardviz.errors import QuestionError
from shardviz.notation.mesh import parse_mesh

MESH = parse_mesh("X=2,Y=4,Z=1")


def question(operations="psum", axes=(), sizes="4KiB", dtype="bf16", mesh=MESH):
    return measure_question(operations, mesh, axes, sizes, dtype, 10)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4KiB", (4096,)),
        ("4KiB:32KiB", (4096, 8192, 16384, 32768)),
        ("1kB:70kB:4", (1000, 4000, 16000, 64000)),
        ("1MiB, 4KiB:8KiB ,1MiB", (4096, 8192, 2**20)),
        ("3B:3B", (3,)),
    ],
)
def test_sizes(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no data size"),
        ("4", "'4' has no unit of data size"),
        ("8KiB:4KiB", "4KiB is less than 8KiB"),
        ("4KiB:8KiB:1", "is not a range of sizes"),
        ("4KiB:8KiB:x", "is not a range of sizes"),
        ("4KiB:8KiB:2:2", "is not a range of sizes"),
        ("0B", "a size of 0B cannot be measured"),
        ("infB", "is not a data size"),
        ("nanB", "is not a data size"),
        ("1PiB", "a size of 1PiB cannot be measured"),
        ("inf", "a size of inf cannot be measured"),
    ],
)
def test_sizes_that_are_none(text, message):
    with pytest.raises(QuestionError) as error:
        parse_sizes(text)
    assert message in error.value.message
    assert error.value.hint


def test_more_sizes_than_are_measured():
    with pytest.raises(QuestionError, match="more than 64 sizes"):
        parse_sizes(",".join(f"{number}KiB" for number in range(1, 67)))


def test_each_axis_and_all_of_them_are_the_usual_groups():
    assert question().groups == (("X",), ("Y",), ("X", "Y"))
    assert question(mesh=parse_mesh("X=8")).groups == (("X",),)
    assert question(axes=("Y", "Y,X", "X,Y")).groups == (("Y",), ("X", "Y"))


@pytest.mark.parametrize(
    ("op", "count", "size"),
    # Of 4 KiB in bf16 over four devices: sendcount or recvcount, as nccl-tests' columns have them.
    [("psum", 2048, 4096), ("all_gather", 512, 4096), ("psum_scatter", 512, 4096), ("all_to_all", 512, 4096),
     ("ppermute", 2048, 4096)],
)  # fmt: skip
def test_the_counts_of_nccl_tests(op, count, size):
    (case,) = question(op, ("Y",)).cases
    assert (case.count, case.size, case.group_size) == (count, size, 4)


def test_a_size_is_what_the_group_divides():
    (case,) = question("all_gather", ("X,Y",), "1001B", "f32").cases
    assert (case.count, case.size) == (31, 31 * 8 * 4)
    (case,) = question("all_gather", ("X,Y",), "1B", "f32").cases
    assert (case.count, case.size) == (1, 32)


def test_sizes_that_make_equal_arrays_are_measured_once():
    assert len(question("all_gather", ("X,Y",), "1B,2B,32B", "f32").cases) == 1


def test_a_matmul_is_square():
    (case,) = question("matmul", sizes="1MiB", dtype="f32").cases
    assert (case.side, case.size, case.flops, case.axes) == (512, 2**20, 2 * 512**3, ())


@pytest.mark.parametrize(
    ("op", "n", "factor"),
    # https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    [("psum", 8, 1.75), ("all_gather", 8, 0.875), ("psum_scatter", 8, 0.875), ("all_to_all", 8, 0.875),
     ("ppermute", 8, 1.0), ("psum", 2, 1.0), ("all_gather", 2, 0.5), ("copy", 1, 2.0)],
)  # fmt: skip
def test_the_bus_factors_of_nccl_tests(op, n, factor):
    assert Case(op, ("X",), n, 4096, 1, "f32").bus_factor == factor


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"operations": "psums"}, "'psums' cannot be measured"),
        ({"operations": "psum,,copy"}, "'' cannot be measured"),
        ({"axes": ("W",)}, "has no axis 'W'"),
        ({"axes": ("Z",)}, "Z has one device, which sends nothing"),
        ({"axes": ("X",), "operations": "copy"}, "copy runs on each device alone, over no axis"),
        ({"dtype": "s4"}, "s4 cannot be measured"),
        ({"dtype": "bf17"}, "bf17"),
        ({"mesh": parse_mesh("X=1")}, "the mesh X=1 has one device, which sends nothing"),
    ],
)
def test_questions_that_are_none(given, message):
    with pytest.raises(QuestionError) as error:
        question(**given)
    assert message in error.value.message
    assert error.value.hint
