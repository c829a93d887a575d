"""`shardviz step`: what it prints, as text and as JSON, and what JAX says of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardviz.stepping.collective_run
from shardviz.cli.group import run
from shardviz.collectives.verification import VerificationResult

Capture = pytest.CaptureFixture[str]
SIXTEEN = "3,1,4,1,5,9,2,6,5,3,5,8,9,7,1,2"
FOUR = ("--mesh", "i=4", "--data", SIXTEEN)


def printed(capsys: Capture, *words: str, code: int = 0) -> str:
    assert run(("step", *words)) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def document(capsys: Capture, *words: str, on: str = "none") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(capsys, *words, "--json", "--on", on))
    assert found["schema"] == "shardviz/1"
    return found


def values(devices: Sequence[dict[str, Any]]) -> list[Any]:
    return [device["values"] for device in devices]


# The outputs printed in the tutorial.
TUTORIAL = [
    (
        "all_gather",
        ("--mesh", "i=4", "--data", "3,9,5,2"),
        [[3, 9, 5, 2]] * 4,
        [3, 9, 5, 2] * 4,
    ),
    ("psum", FOUR, [[22, 20, 12, 17]] * 4, [22, 20, 12, 17]),
    ("psum_scatter", FOUR, [[22], [20], [12], [17]], [22, 20, 12, 17]),
    (
        "all_to_all",
        FOUR,
        [[3, 5, 5, 9], [1, 9, 3, 7], [4, 2, 5, 1], [1, 6, 8, 2]],
        [3, 5, 5, 9, 1, 9, 3, 7, 4, 2, 5, 1, 1, 6, 8, 2],
    ),
]


@pytest.mark.parametrize(("name", "words", "after", "final"), TUTORIAL, ids=[each[0] for each in TUTORIAL])
def test_the_tutorials_results(
    name: str, words: tuple[str, ...], after: list[list[int]], final: list[int], capsys: Capture
) -> None:
    found = document(capsys, name, *words, on="cpu")
    numbers = [int(number) for number in words[-1].split(",")]
    assert [each for device in values(found["before"]) for each in device] == numbers
    assert values(found["after"]) == after
    assert found["result"]["values"] == final
    assert found["verified_against"] == "cpu"
    assert found["verdict"] == "equal"
    out = printed(capsys, name, *words, "--on", "none", "--width", "100", "-v")
    assert out.index("BEFORE") < out.index("round 1") < out.index("AFTER") < out.index("FINAL RESULT")
    last = out.partition("FINAL RESULT")[2].splitlines()[1]
    assert [int(number) for number in last.split()] == final


def test_an_all_reduce_is_a_reduce_scatter_then_an_all_gather(capsys: Capture) -> None:
    rounds = document(capsys, "psum", *FOUR)["rounds"]
    assert [each["phase"] for each in rounds] == ["reduce-scatter"] * 3 + ["all-gather"] * 3
    scatter = document(capsys, "psum_scatter", *FOUR)
    assert rounds[:3] == scatter["rounds"]
    out = printed(capsys, "psum", *FOUR, "--on", "none", "--width", "120", "-v")
    assert "5+5+9+3=22" in out.partition("AFTER")[0]


def test_ring_and_bidirectional_ring(capsys: Capture) -> None:
    ring = document(capsys, "all_gather", "--mesh", "i=8")
    assert len(ring["rounds"]) == 7
    for each in ring["rounds"]:
        assert [(send["src"], send["dst"]) for send in each["sends"]] == [(i, (i + 1) % 8) for i in range(8)]
    both = document(capsys, "all_gather", "--mesh", "i=8", "--algorithm", "bidirectional-ring")
    assert len(both["rounds"]) == 4
    assert both["after"] == ring["after"]


@pytest.mark.parametrize(
    ("axis", "device", "gathered"),
    [
        ("X", 6, [2, 6]),
        ("Y,X", 6, [0, 4, 1, 5, 2, 6, 3, 7]),
    ],
)
def test_gathers_over_axes_of_a_mesh(axis: str, device: int, gathered: list[int], capsys: Capture) -> None:
    found = document(capsys, "all_gather", "--mesh", "X=2,Y=4", "--axis", axis, on="cpu")
    assert found["axes"] == axis.split(",")
    assert found["after"][device]["values"] == gathered
    assert found["verified_against"] == "cpu"


def test_a_large_sum_is_summarised(capsys: Capture) -> None:
    out = printed(capsys, "psum", "--mesh", "X=16,Y=16", "--on", "none", "--width", "80")
    assert len(out.splitlines()) <= 44
    assert max(map(len, out.splitlines())) <= 80
    found = document(capsys, "psum", "--mesh", "X=8,Y=8")
    assert len(found["before"]) == 64
    assert found["algorithm"] == "torus"
    total = np.arange(4096).reshape(64, 64).sum(axis=0).tolist()
    assert all(device["values"] == total for device in found["after"])


def test_comparison(capsys: Capture) -> None:
    out = printed(capsys, "psum", "--mesh", "i=5", "--compare", "--width", "100")
    for name in ("ring", "bidirectional-ring", "recursive-doubling", "halving-doubling", "direct"):
        assert name in out
    assert "5 devices are not a power of two" in out
    assert "★ fastest here" in out


def test_a_comparison_counts_the_payload_asked_for(capsys: Capture) -> None:
    found = document(capsys, "psum", "--mesh", "i=8", "--compare", "--shape", "8x1024", "--dtype", "bf16")
    rows = {each["algorithm"]: each for each in found["algorithms"]}
    assert rows["ring"]["wire_bytes"] == 2 * 7 * 1024 * 2 // 8


@pytest.mark.parametrize(
    ("number", "said", "unsaid"),
    [
        ("0", "before any round", "round 1"),
        ("2", "round 2 of 6", "round 3"),
        ("6", "round 6 of 6", "AFTER"),
    ],
)
def test_one_round(number: str, said: str, unsaid: str, capsys: Capture) -> None:
    out = printed(capsys, "psum", *FOUR, "--round", number, "--on", "none")
    assert said in out
    assert unsaid not in out


# Parameters, the shape that they need, and the result by NumPy.
HALVES = np.arange(16).reshape(4, 4)
PARAMETERS = [
    (("all_gather", "--gather-dimension", "1", "--shape", "4x2"), [[[0, 1, 2, 3, 4, 5, 6, 7]]] * 4),
    (("all_gather", "--untiled", "--shape", "4"), [[[0], [1], [2], [3]]] * 4),
    (("psum_scatter", "--untiled", "--shape", "16"), HALVES.sum(axis=0).tolist()),
    (
        ("psum_scatter", "--scatter-dimension", "1", "--shape", "4x4"),
        [[[int(total)]] for total in HALVES.sum(axis=0)],
    ),
    (
        ("all_to_all", "--split-axis", "1", "--concat-axis", "0", "--shape", "4x4"),
        [column.reshape(4, 1).tolist() for column in HALVES.T],
    ),
    (("all_to_all", "--untiled", "--shape", "16"), HALVES.T.tolist()),
    (("ppermute", "--perm", "(0,1),(1,2)", "--data", "3,9,5,2"), [[0], [3], [9], [0]]),
    (("pbroadcast", "--source", "2", "--data", "3,9,5,2"), [[5]] * 4),
    (("pmean", "--data", "3,9,5,2"), [[4.75]] * 4),
    (("pmax", "--data", "3,9,5,2"), [[9]] * 4),
    (
        ("ragged_all_to_all", "--send-sizes", "1,1,0,0;0,2,0,0;0,0,0,1;0,0,0,0", "--shape", "8"),
        [[0, 0, 0], [1, 2, 3], [0, 0, 0], [4, 0, 0]],
    ),
    (("psum", "--shape", "()"), [0] * 4),
    (("psum", "--data", "true,true,false,true"), [[3]] * 4),
    (("psum", "--data", "1+1j,2,3j,4"), [[[7.0, 4.0]]] * 4),
]


@pytest.mark.parametrize(("words", "after"), PARAMETERS, ids=[" ".join(case[0])[:60] for case in PARAMETERS])
def test_parameters(words: tuple[str, ...], after: list[Any], capsys: Capture) -> None:
    found = document(capsys, *words, "--mesh", "i=4", on="cpu")
    assert values(found["after"]) == after
    assert found["verified_against"] == "cpu"


@pytest.mark.parametrize(("spec", "shape"), [("P('j', 'i')", "4x8"), ("f32[8,4@(i,j)]", "8x4")])
def test_the_array_is_split_as_layout_splits_it(spec: str, shape: str, capsys: Capture) -> None:
    before = values(document(capsys, "psum", "--mesh", "i=2,j=2", "--shape", shape, "--spec", spec)["before"])
    assert run(["layout", shape, "--mesh", "i=2,j=2", "--spec", spec, "--json"]) == 0
    layout = json.loads(capsys.readouterr().out)
    whole = np.arange(32).reshape([int(size) for size in shape.split("x")])
    for device, shard in zip(layout["devices"], before, strict=True):
        assert whole[tuple(slice(*bounds) for bounds in device["slices"])].tolist() == shard


@pytest.mark.parametrize("name", ["all_gather", "psum_scatter", "all_to_all"])
def test_the_smallest_array_is_one_with_which_the_operation_works(name: str, capsys: Capture) -> None:
    for mesh in ("i=1", "i=6", "a=2,b=1,c=3"):
        assert document(capsys, name, "--mesh", mesh)["before"]


@pytest.mark.parametrize(("data", "dtype"), [("1,.5", "f32"), ("true,false", "pred")])
def test_the_dtype_follows_the_data(data: str, dtype: str, capsys: Capture) -> None:
    assert document(capsys, "all_gather", "--mesh", "i=2", "--data", data)["dtype"] == dtype


@pytest.mark.parametrize("dtype", ["s4", "bf16", "pred", "f4e2m1fn"])
def test_counting_stays_within_the_dtype(dtype: str, capsys: Capture) -> None:
    found = document(capsys, "all_gather", "--mesh", "i=4", "--shape", "1024", "--dtype", dtype)
    numbers = [float(each) for device in values(found["before"]) for each in device]
    turn = numbers.index(max(numbers)) + 1
    assert numbers == [float(place % turn) for place in range(1024)]


def test_too_many_numbers_to_show_are_followed_as_chunks(capsys: Capture) -> None:
    found = document(capsys, "psum", "--mesh", "i=4", "--shape", "16384x16384")
    assert found["before"] is None
    assert found["rounds"][0]["sends"][0]["bytes"] == 16384 * 16384 * 4 // 16
    out = printed(capsys, "psum", "--mesh", "i=4", "--shape", "16384x16384")
    assert "not verified by JAX: the 268,435,456 elements are followed without numbers" in out
    many = ("psum", "--mesh", "i=4,j=1024", "--axis", "i", "--shape", "8192")
    assert "not verified by JAX: the mesh" in printed(capsys, *many, "--width", "200")
    assert "not verified" not in printed(capsys, *many, "--on", "none")


def test_jax_that_differs_fails_the_check(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        shardviz.stepping.collective_run,
        "verify",
        lambda *_: VerificationResult("different", 4, 1, 1, 2, (0,), "7", "8"),
    )
    out = printed(capsys, "psum", "--mesh", "i=4", "--data", "3,9,5,2", code=1)
    assert "1 of 4 values differ" in out
    assert "7 here, 8 in JAX" in out


@pytest.mark.usefixtures("own_compilers")
def test_a_jax_that_does_not_load_is_a_note_unless_it_was_asked_for(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jax.py").write_text("raise ImportError('no jax today')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words = ["step", "psum", "--mesh", "i=2"]
    assert run(words) == 0
    out, err = capsys.readouterr()
    assert err.startswith("shardviz: note: nothing is verified: cpu: ")
    assert "FINAL RESULT" in out
    assert run([*words, "--on", "cpu"]) == 3
    out, err = capsys.readouterr()
    assert "FINAL RESULT" in out
    first, hint = err.splitlines()
    assert first.startswith("shardviz: error: cpu: ")
    assert hint.startswith("hint: ")
    assert run([*words, "--on", "none"]) == 0
    assert capsys.readouterr().err == ""


EXPLAIN = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--sizes", "b=8,d=16,f=4")


def test_a_step_of_a_plan(capsys: Capture) -> None:
    assert run([*EXPLAIN, "--dtype", "f32", "--step", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["op"], found["axes"], found["shard_shape"]) == ("psum", ["Y"], [4, 4])
    assert found["verified_against"] == "cpu"
    # Every device's addend is its own: they count on from one another.
    assert sorted(np.ravel(values(found["before"])).tolist()) == list(range(128))
    addends = np.arange(128).reshape(4, 8, 4)
    assert found["result"]["values"] == addends.sum(axis=0).tolist()


def test_a_step_of_a_plan_is_shown_as_any_collective(capsys: Capture) -> None:
    words = [*EXPLAIN, "--step", "2", "--target", "none", "--width", "100"]
    assert run([*words, "--round", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(" 2  psum Out over Y")
    assert "round 2 of 4" in out
    assert run([*words, "--algorithm", "recursive-doubling"]) == 0
    assert "round 2" in capsys.readouterr().out
    assert run([*words, "--compare"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(" 2  psum Out over Y")
    assert "fastest here" in out


def test_a_step_of_a_plan_takes_the_links_that_step_takes(capsys: Capture) -> None:
    """The same collective, asked in either way, takes the same time."""
    links = ["--latency", "5us", "--bandwidth", "1GB/s", "--json"]
    assert run([*EXPLAIN, "--step", "2", "--algorithm", "ring", "--target", "none", *links]) == 0
    of_plan = json.loads(capsys.readouterr().out)
    alone = ["step", "psum", "--mesh", "X=2,Y=4", "--axis", "Y", "--shape", "8x4", "--spec", "X_"]
    assert run([*alone, "--dtype", "bf16", "--on", "none", *links]) == 0
    assert of_plan["seconds"] == json.loads(capsys.readouterr().out)["seconds"]
    assert of_plan["latency_s"] == pytest.approx(5e-6)
    assert run([*EXPLAIN, "--step", "2", "--target", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] < of_plan["seconds"]


def test_numbers_that_nobody_gave_are_said_to_be_examples(capsys: Capture) -> None:
    said = "the numbers 0, 1, 2, … are only examples"
    assert said in printed(capsys, "psum", "--mesh", "i=4", "--on", "none")
    assert said not in printed(capsys, "psum", *FOUR, "--on", "none")
    assert run([*EXPLAIN, "--step", "2", "--target", "none"]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("einsum", "mesh", "specs", "op"),
    [
        ("ij,jk->ik", "x=2,y=2", "_x,x_->x_", "psum_scatter"),
        ("ij,jk->ik", "X=2,Y=4", "X_,__->_X", "all_to_all"),
        ("ij,jk->ik", "X=2,Y=2", "XY,_Y->YX", "ppermute"),
    ],
)
def test_steps_of_every_kind(einsum: str, mesh: str, specs: str, op: str, capsys: Capture) -> None:
    words = ["explain", einsum, "--mesh", mesh, "--specs", specs, "--sizes", "i=8,j=8,k=8", "--dtype", "f32"]
    words += ["--objective", "bytes"]
    assert run([*words, "--target", "none", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["plan"]["steps"]
    number = [each["op"] for each in steps].index(op) + 1
    assert run([*words, "--step", str(number), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["op"] == op
    assert found["verified_against"] == "cpu"
    after = {tuple(device["coords"]): device["values"] for device in found["after"]}
    spec = steps[number - 1]["to_spec"]
    assert run(["layout", "8x8", "--mesh", mesh, "--spec", jax_spec(spec), "--json"]) == 0
    layout = json.loads(capsys.readouterr().out)
    if op == "psum_scatter":
        whole = np.arange(128).reshape(2, 8, 8).sum(axis=0)
    else:
        whole = np.arange(64).reshape(8, 8)
    for device in layout["devices"]:
        part = whole[tuple(slice(*bounds) for bounds in device["slices"])]
        assert np.array_equal(after[tuple(device["coords"])], part)


def jax_spec(spec: list[list[str]]) -> str:
    return f"P({', '.join(repr(tuple(axes)) if axes else 'None' for axes in spec)},)"


def test_many_devices_without_numbers_have_a_summary(capsys: Capture) -> None:
    assert run(("step", "psum", "--mesh", "i=50000", "--on", "none")) == 0
    out = capsys.readouterr().out
    assert "each sends 1 chunk to the next" in out
    assert "99,998 rounds" in out
    assert "their places are not tracked" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "6 µs on a ring of 4, 1 µs and 45 GB/s per v5e link, assumed"),
        (("--bandwidth", "90GB/s"), "6 µs on a ring of 4, 1 µs and 90 GB/s per link\n"),
        (("--compare",), "on a ring of 4 with 1 µs and 45 GB/s per v5e link, assumed"),
    ],
)
def test_whose_links_they_are_is_said(capsys, monkeypatch, words, said):
    monkeypatch.setenv("COLUMNS", "100")
    assert said in printed(
        capsys, "psum", *FOUR, *words, *(() if words == ("--compare",) else ("--on", "none"))
    )


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("none", "on a ring of 4, 1 µs and 45 GB/s per v5e link, assumed"),
        ("v5p:2x2x1", "8 µs on a ring of 4, 4 µs to start, 1 µs and 90 GB/s per v5p link of v5p:2x2x1\n"),
        ("h100:4", "23 µs on a switch with 4, 23 µs to start, 187 GB/s per h100 link of h100:4\n"),
    ],
)
def test_a_step_of_a_plan_has_the_links_of_its_target(capsys, target, said):
    question = ("explain", "bd,df->bf", "--mesh", "Y=4", "--specs", "_Y,Y_->__", "--sizes", "b=4,d=8,f=8")
    assert run((*question, "--step", "2", "--target", target)) == 0
    assert said in capsys.readouterr().out


# All published times: tests/hardware/test_published_times.py.
TIMED = {
    "all_gather --axis X,Y --mesh X=4,Y=4,Z=4 --shape 1024x4096 --spec XY --machine v4:4x4x4": (
        "The scaling book counts 46.6 µs"
    ),
    "all_gather --mesh X=8 --shape 1024x16384 --spec X_ --machine h100:8": "The scaling book counts 65.2 µs",
    "all_gather --axis Y --mesh X=8,Y=4 --shape 2048x8192 --spec Y_ --machine v5e:4x8": (
        "3/4 of 32 MiB over 45 GB/s; at least 3 hops of 1 µs, and 3 µs to start. The scaling book "
        "counts 559 µs"
    ),
    "ppermute --perm (0,15) --mesh X=4,Y=4 --shape 128x128x8192 --spec (XY)__ --machine v5e:4x4": (
        "6 µs, then 16 MiB over 2 links at once, 90 GB/s, and 3 µs to start. The scaling book counts 192 µs"
    ),
}


@pytest.mark.parametrize(("line", "said"), TIMED.items())
def test_published_times_on_their_machines(capsys: Capture, line: str, said: str) -> None:
    out = printed(capsys, *line.split(), "--dtype", "bf16", "--on", "none", "-v")
    assert said in " ".join(out.split())


def test_a_document_has_the_machine_and_the_time_by_formula(capsys: Capture) -> None:
    words = "all_gather --mesh X=16 --shape 1024x1024 --machine h100:2x8 --dtype bf16 --compare"
    found = document(capsys, *words.split())
    assert found["machine"] == "h100:2x8"
    assert [(level["name"], level["kind"], level["members"]) for level in found["levels"]] == [
        ("network", "network", 2),
        ("NVLink", "switch", 8),
    ]
    closed = found["closed_form"]
    assert closed["seconds"] == pytest.approx(closed["latency_seconds"] + closed["bandwidth_seconds"])
    assert closed["bound"] == "latency"


def test_a_machine_of_another_size_is_refused(capsys: Capture) -> None:
    assert run(("step", "psum", "--mesh", "X=4", "--machine", "v5e:2x4")) == 2
    assert "v5e:2x4 has 8 devices, but the mesh X=4 has 4" in capsys.readouterr().err


def test_the_blocks_of_a_matmul_beside_a_step_of_a_plan(capsys):
    words = ["explain", "bd,df->bf", "--specs", "XY,__->X_", "--target", "none", "--step", "1", "--matmul"]
    words += ["--algorithm", "ring"]
    assert run([*words, "--round", "1"]) == 0
    out = capsys.readouterr().out
    assert "device 0 multiplies A[b, d:δ] × W[d:δ, f], added to Out[b, f]" in out
    assert "without overlap" in out
    assert run([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["slots"]) == 4
