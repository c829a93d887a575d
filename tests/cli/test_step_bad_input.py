"""Wrong questions to `shardviz step`: one sentence with the piece, one hint, exit code 2, and at once."""

from __future__ import annotations

import re
import time

import pytest

from shardviz.cli.group import run

GATHER = ("step", "all_gather", "--mesh", "i=4", "--on", "none")
SUM = ("step", "psum", "--mesh", "i=4", "--on", "none")
MANY = "999999999999999999"
EXPLAIN = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--target", "none")

CASES = [
    (("step",), "missing argument 'OP'", "shardviz step --help"),
    (("step", "psumm"), "unknown operation 'psumm'", "did you mean psum?"),
    (("step", ""), "unknown operation ''", "ragged_all_to_all"),
    # Data, shape and spec.
    ((*GATHER, "--data", "3,9,5"), "dimension 0 has 3 elements, which i=4 does not divide", "multiple of 4"),
    ((*GATHER, "--data", "3,x,5,2"), "'x' is not a number at character 3 of '3,x,5,2'", "3,9,5,2"),
    (
        (*GATHER, "--data", "3,9,5,2", "--shape", "2x4"),
        "--data has 4 numbers, but an array of the shape 2x4 has 8",
        "leave out --data",
    ),
    ((*GATHER, "--shape", f"4x{MANY}"), "4 shards of 3,999,999,999,999,999,996 bytes", "smaller sizes"),
    ((*GATHER, "--spec", "X"), "unknown mesh axis 'X'", "one axis: i"),
    ((*GATHER, "--spec", "A[I]{U_i}"), "the array is a pending sum over i", "its addend"),
    ((*GATHER, "--spec", "_ _", "--data", "1,2"), "2 dimensions, but the array has 1", "one entry"),
    # Dtypes.
    ((*GATHER, "--dtype", "f17"), "unknown dtype 'f17'", "bf16"),
    ((*GATHER, "--data", "1,2,3,300", "--dtype", "s8"), "number 4 of the data, '300', does not fit s8", ""),
    ((*GATHER, "--data", "1,2,3,1e400"), "'1e400', does not fit f32", "wider"),
    # Parameters.
    ((*SUM, "--perm", "(0,1)"), "--perm is not a parameter of psum", "psum takes no parameter"),
    (
        (*GATHER, "--source", "0"),
        "--source is not a parameter of all_gather",
        "--gather-dimension and --untiled",
    ),
    (("step", "ppermute", "--mesh", "i=4"), "ppermute needs --perm", "--perm '(0,1),(1,2)'"),
    (
        ("step", "ppermute", "--mesh", "i=4", "--perm", "(0,7)"),
        "there is no device 7 in a group of 4 at character 4",
        "from 0 to 3",
    ),
    (
        ("step", "ppermute", "--axis", "Y,X", "--perm", "(0,1)"),
        "ppermute takes mesh axes in the mesh's order, not Y, X",
        "X, Y",
    ),
    (("step", "ragged_all_to_all", "--mesh", "i=2"), "needs --send-sizes", "--send-sizes '1,2;0,3'"),
    (
        ("step", "ragged_all_to_all", "--mesh", "i=2", "--send-sizes", "1,2;3,4", "--shape", "4"),
        "device 0 of the group sends 3 rows, but dimension 0 of a shard has 2 elements",
        "--shape 14 would work: 7 along that dimension on each device",
    ),
    (
        ("step", "ragged_all_to_all", "--mesh", "i=2", "--send-sizes", f"{MANY},{MANY};3,4"),
        "too large to count",
        "smaller sizes",
    ),
    (
        ("step", "all_to_all", "--mesh", "i=4", "--shape", "4"),
        "has 1 element, which 4 devices do",
        "--shape 16 would",
    ),
    (
        ("step", "psum_scatter", "--mesh", "i=4", "--data", "3,9,5,2"),
        "dimension 0 of a shard has 1 element, which 4 devices do not divide",
        "16 numbers would work: 4 along that dimension on each device",
    ),
    # Mesh and axes.
    ((*GATHER, "--axis", "Z"), "unknown mesh axis 'Z' at character 1 of 'Z'", "one axis: i"),
    ((*GATHER, "--axis", "i,i"), "mesh axis 'i' is named twice, again at character 3", "once"),
    (("step", "psum", "--mesh", "i=0"), "mesh axis i has the size 0", "1 or more"),
    (("step", "psum", "--mesh", "i=1099511627776"), "has 1,099,511,627,776 devices", "1,048,576"),
    # Algorithms, rounds and links.
    ((*SUM, "--algorithm", "rung"), "unknown algorithm 'rung'", "did you mean ring?"),
    (
        ("step", "psum", "--mesh", "i=5", "--algorithm", "halving-doubling"),
        "halving-doubling cannot do this: 5 devices are not a power of two",
        "there are ring",
    ),
    ((*SUM, "--pieces", "0"), "0 is not in the range", "--help"),
    ((*SUM, "--pieces", "3"), "3 pieces", "or choose bidirectional-ring or double-binary-tree"),
    ((*SUM, "--round", "9"), "round 9 does not exist: ring has 6 rounds here", "rounds are 1 to 6"),
    (
        (*SUM, "--round", "-1"),
        "round -1 does not exist: ring has 6 rounds here",
        "0 is before the first, then",
    ),
    (
        ("step", "ppermute", "--mesh", "i=4", "--perm", "[]", "--round", "1"),
        "round 1 does not exist: direct has 0 rounds here",
        "0 shows what each device holds",
    ),
    ((*SUM, "--topology", "moebius"), "'moebius' is not a topology", "ring, line, torus, switch"),
    ((*SUM, "--topology", "3x3"), "a topology of 3x3 has 9 devices, but the group has 4", "multiply to 4"),
    ((*SUM, "--latency", "soon"), "'soon' is not a latency", "1us"),
    # Ways to answer.
    ((*SUM, "--round", "0", "--compare"), "--round and --compare cannot be combined", "leave out one"),
    (
        (*SUM[:4], "--compare", "--on", "cpu"),
        "so --on cpu has nothing to verify",
        "leave out",
    ),
    ((*SUM[:4], "--on", "tpu"), "'tpu' is not one of 'cpu', 'real', 'none'", "--help"),
    # Too much.
    (
        ("step", "psum", "--mesh", "i=1048576", "--data", "1,2,3,4", "--spec", "_", "--on", "none"),
        "recursive-doubling over 1,048,576 devices moves more than 16,777,216 pieces",
        "leave out --data",
    ),
    (
        ("step", "psum", "--mesh", "i=4,j=262144", "--axis", "i", "--data", "1," * 127 + "1", "--spec", "_"),
        "1,048,576 devices would hold 134,217,728 numbers together, more than 256 MiB",
        "leave out --data",
    ),
    (
        ("step", "psum", "--mesh", "i=1048576", "--compare"),
        "algorithms are compared over up to 65,536 devices, and the group has 1,048,576",
        "--axis",
    ),
    (
        ("step", "all_gather", "--mesh", "i=600", "--json", "--on", "none"),
        "--json lists every send, and ring on 600 devices has more than 262,144",
        "leave out --json",
    ),
    (
        ("step", "psum", "--mesh", "i=4,j=1024", "--axis", "i", "--json", "--shape", "2048", "--spec", "_"),
        "--json lists every number, and 4,096 devices hold more than 524,288",
        "leave out --json",
    ),
    (
        ("step", "psum", "--mesh", "i=4", "--shape", "16384x16384", "--on", "cpu"),
        "the 268,435,456 elements are followed without numbers",
        "up to 65,536, or skip verification with --on none",
    ),
    (
        ("step", "psum", "--mesh", "i=4096", "--axis", "i", "--shape", "4096", "--spec", "_", "--on", "cpu"),
        "4,096",
        "",
    ),
    # Steps of a plan.
    (("step", "bd,df->bf"), "'bd,df->bf' is not one collective", "shardviz explain 'bd,df->bf' --step"),
    (("step", "my.py:fn"), "'my.py:fn' is not one collective", "shardviz program my.py:fn --values"),
    (
        (*EXPLAIN, "--step", "1", "--round", "1"),
        "--round applies to the rounds of one collective",
        "--step N",
    ),
    (
        (*EXPLAIN, "--mesh", "X=64,Y=64", "--step"),
        "a plan is played on up to 512 devices, and X=64,Y=64 has more",
        "--step N",
    ),
    ((*EXPLAIN, "--step", "7"), "step 7 does not exist: the plan has 2", "its collective is step 2 (psum)"),
    (
        (*EXPLAIN, "--step", "2", "--round", "99"),
        "round 99 does not exist: bidirectional-ring has 4 rounds here",
        "0 is before",
    ),
    (
        (*EXPLAIN, "--step", "2", "--target", "none", "--matmul", "--round", "1", "--json"),
        "--round and --json cannot be combined",
        "leave out one",
    ),
    (
        (*EXPLAIN, "--step", "2", "--target", "none", "--matmul", "--compare"),
        "--matmul and --compare cannot be combined",
        "leave out one",
    ),
    (
        (*EXPLAIN[:-1], "cpu", "--step", "2", "--compare"),
        "so --target cpu has nothing to verify",
        "leave out --compare or --target",
    ),
    (("explain", "bd,df->bf", "--specs", "XY,Y_", "--step", "2", "--target", "abacus"), "'abacus'", "shardy"),
]


@pytest.mark.parametrize(("words", "said", "hint"), CASES, ids=[" ".join(case[0])[:70] for case in CASES])
def test_one_sentence_and_one_hint(
    words: tuple[str, ...], said: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.process_time()
    assert run(words) == 2
    assert time.process_time() - started < 20
    out, err = capsys.readouterr()
    assert out == ""
    first, *rest = err.splitlines()
    assert first.startswith("shardviz: error: ")
    assert said in first
    assert len(rest) == 1
    assert rest[0].startswith("hint: ")
    assert hint in rest[0]
    assert len(err) < 600


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("name", ["ragged_all_to_all", "ppermute"])
def test_what_the_hint_says_for_a_missing_parameter_works(name, devices, capsys):
    asked = ["step", name, "--mesh", f"i={devices}", "--on", "none"]
    assert run(asked) == 2
    hint = capsys.readouterr().err.splitlines()[-1]
    option, value = re.search(r"(--[a-z-]+) '([^']+)'", hint).groups()
    assert run([*asked, option, value]) == 0
