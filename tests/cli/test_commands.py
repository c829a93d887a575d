"""What each command prints on stdout, as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shardviz.cli.group import run
from shardviz.targets import parse_targets, pip

Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *words: str, code: int = 0) -> str:
    assert run(words) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def document(capsys: Capture, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(capsys, *words, "--json"))
    assert found["schema"] == "shardviz/1"
    return found


QUESTION = (
    "explain",
    "bd,df->bf",
    "--specs",
    "XY,Y_->X_",
    "--sizes",
    "b=8,d=2048,f=8192",
    "--target",
    "none",
)


def test_explain(capsys: Capture) -> None:
    out = printed(capsys, *QUESTION, "--width", "80")
    assert "A[b_X, d_Y]                    ·  W[d_Y, f]         →  Out[b_X, f]" in out
    assert " 2  psum Out over Y       96 KiB sent     4 µs  adds partial sums of Out" in out
    assert max(map(len, out.splitlines())) <= 80
    whole = printed(capsys, *QUESTION, "--width", "80", "-v")
    assert " 2  psum Out over Y   → Out[b_X, f]           96 KiB sent     4 µs  latency" in whole
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_explain_in_the_books_notation_is_the_same(capsys: Capture) -> None:
    book = "A[b_X, d_Y] * W[d_Y, f] -> Out[b_X, f]"
    out = printed(capsys, "explain", book, "--sizes", "b=8,d=2048,f=8192", "--target", "none")
    assert out == printed(capsys, *QUESTION)


def test_the_pictures_can_be_left_out(capsys: Capture) -> None:
    words = ["explain", "bd,df->bf", "--mesh", "X=8,Y=8", "--specs", "XY,Y_->X_", "--target", "none"]
    whole = printed(capsys, *words)
    out = printed(capsys, *words, "--no-layout")
    assert out.splitlines()[2].startswith("A[b_X, d_Y]  bf16  1024×2048 → 128×256 per device")
    assert out.splitlines()[6].startswith("plan  48.5 µs, case 3 over Y: both")
    assert "┌" not in out
    # All the words stand as they did.
    assert out[out.index("A[") :] == whole[whole.rindex("A[b_X") :]


def test_ranking(capsys: Capture) -> None:
    words = ("explain", "bd,df->bf", "--width", "100", "--limit", "3", "--specs", "--target", "shardy")
    assert run(words) == 0
    out, err = capsys.readouterr()
    assert err == "shardviz: note: a ranking asks the planner only, not --target\n"
    lines = out.splitlines()
    assert lines[0] == "bd,df->bf  mesh X=2, Y=4, 8 devices"
    assert lines[2].split() == ["specs", "time", "bound", "sent", "memory", "work", "collectives", "case"]
    assert [line.split()[0] for line in lines[3:6]] == ["1", "2", "3"]
    assert "X_,_Y->XY" in out
    assert "78 more shardings: --limit 81 or --json shows all." in " ".join(out.split())


def test_a_ranking_keeps_the_specs_that_are_given(capsys: Capture) -> None:
    found = document(capsys, "explain", "bd,df->bf", "--specs", "X_,?->X_", "--sizes", "d=4k")
    assert len(found["candidates"]) == 9
    costs = [
        (each["cost"]["serial_seconds"], each["memory_bytes_per_device"]) for each in found["candidates"]
    ]
    assert costs == sorted(costs)
    assert run(("explain", "bd,df->bf", "--specs", "X_,?", "--step", "1")) == 2
    assert "a ranking and --step cannot be combined" in capsys.readouterr().err


def test_layout(capsys: Capture) -> None:
    out = printed(capsys, "layout", "16384x16384", "--mesh", "axis=4", "--spec", "_ axis", "--width", "80")
    assert out.splitlines()[-1] == "mesh axis=4, 4 devices"
    assert "│  α 0  │  β 1  │  γ 2  │  δ 3  │" in out
    assert "16384×16384 → 16384×4096 per device  128 MiB\n  not replicated" in out


def test_layout_lists_devices(capsys: Capture) -> None:
    out = printed(capsys, "layout", "8x16", "--spec", "Y X", "--devices")
    rows = [line.split() for line in out.splitlines()[-8:]]
    assert rows[5] == ["5", "X=1", "Y=1", "δ", "A[2:4,", "8:16]"]


def test_layout_as_json(capsys: Capture) -> None:
    found = document(capsys, "layout", "8x16", "--spec", "Y _")
    assert found["devices"][5] == {"id": 5, "coords": [1, 1], "slices": [[2, 4], [0, 16]], "shard": 1}
    assert run(["layout", "8x16", "--mesh", "X=1024,Y=1024", "--spec", "XY", "--json"]) == 2
    assert "use a mesh of up to 32,768 devices" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "title", "dtype"),
    [
        ("Act[b_X, d_Y]", "Act[b_X, d_Y]", "bf16"),
        ("f32[8@X,16@Y]", "A[I_X, J_Y]", "f32"),
    ],
)
def test_layout_reads_every_notation(spec: str, title: str, dtype: str, capsys: Capture) -> None:
    out = printed(capsys, "layout", "8x16", "--spec", spec)
    assert out.splitlines()[0] == title
    assert f"{title}  {dtype}  8×16 → 4×4 per device" in out


@pytest.mark.parametrize("shape", ["8×16", "(8, 16)"])
def test_shapes(shape: str, capsys: Capture) -> None:
    assert "8×16 → 4×4 per device" in printed(capsys, "layout", shape, "--spec", "XY")


def test_translate(capsys: Capture) -> None:
    assert printed(capsys, "translate", "P('X', None)", "--to", "book") == "A[I_X, J]\n"
    assert printed(capsys, "translate", "A[I_X, J]", "--to", "gspmd", "--mesh", "X=2,Y=4") == (
        "{devices=[2,1,4]<=[8] last_tile_dim_replicate}\n"
    )
    out = printed(capsys, "translate", "XY")
    assert out.splitlines()[0].split() == ["shardviz", "XY", "spec", "string", "read"]
    assert out.splitlines()[-1] == "mesh X=2, Y=4, 8 devices"


@pytest.mark.parametrize(
    ("text", "to", "said"),
    [
        ("NamedSharding(mesh=Mesh('a': 2, 'b': 4), spec=P('a', ('b',)))", "gspmd", "{devices=[2,4]<=[8]}"),
        ('<mesh<["x"=8]>, [{"x":(1)2}, {?}]>', "shardy", '<@mesh, [{"x":(1)2}, {?}]>'),
        ('<@mesh, [{"Y":(1)2}, {}]>', "gspmd", "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"),
    ],
)
def test_translate_takes_the_mesh_and_parts_of_axes_from_the_text(
    text: str, to: str, said: str, capsys: Capture
) -> None:
    assert printed(capsys, "translate", text, "--to", to) == f"{said}\n"


def test_translate_every_array_of_a_problem(capsys: Capture) -> None:
    product = "A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]"
    assert printed(capsys, "translate", product, "--to", "shardviz") == "XY\nY_\nX_\n"
    assert printed(capsys, "translate", "XY,Y_->X_", "--to", "jax") == (
        "P('X', 'Y')\nP('Y', None)\nP('X', None)\n"
    )
    arrays = document(capsys, "translate", product)["arrays"]
    assert [array["name"] for array in arrays] == ["A", "W", "Out"]
    assert arrays[1]["translations"]["shardlib"] == "D/Y F"
    assert printed(capsys, "translate", "XY,Y_->X_").count("PartitionSpec") == 3


def test_translate_text_that_does_not_say_its_rank(capsys: Capture) -> None:
    assert printed(capsys, "translate", "{replicated}", "--rank", "1", "--to", "jax") == "P(None)\n"


def test_translate_axes_of_an_unknown_mesh(capsys: Capture) -> None:
    found = document(capsys, "translate", "P('data', None)")
    assert found["notation"] == "jax"
    assert found["mesh"] is None
    (array,) = found["arrays"]
    assert array["translations"]["book"] == "A[I_{data}, J]"
    assert "no mesh" in array["untranslatable"]["gspmd"]


def test_info(capsys: Capture) -> None:
    out = printed(capsys, "info")
    assert "shardviz targets lists the targets" in out
    found = document(capsys, "info")
    assert {"python", "shardviz", "jax", "jaxlib"} <= set(found["versions"])


def test_targets(capsys: Capture) -> None:
    out = printed(capsys, "targets", "--width", "100")
    assert "JAX alone  ready" in out
    assert "v5e:2x4" in out
    assert "-m pip install 'jax[cuda12]'" in " ".join(out.split()) or "jax-cuda12-plugin" in out
    groups = {each["group"]: each for each in document(capsys, "targets")["groups"]}
    assert [each["target"] for each in groups["jax"]["targets"]] == ["shardy", "cpu", "real"]
    assert groups["tpu"]["available"] == ("libtpu" in groups["tpu"]["versions"])
    assert groups["cuda"]["install"] == pip("install", "jax[cuda12]")
    # What is listed can be given.
    names = [each["target"] for group in groups.values() for each in group["targets"]]
    assert [target.name for target in parse_targets(",".join(names))] == names


def test_an_example_stands_for_the_program_and_its_options(capsys):
    assert run(["explain", "--example"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        *("swiglu", "residual", "attention", "experts", "embedding", "sequence", "encoder", "decoder"),
        *("window", "context", "ulysses", "latent", "mask", "ssm", "delta", "recurrence", "lora", "switch"),
        *("loss", "softcap", "fsdp", "cache"),
    ]
    page = printed(capsys, "explain", "--example", "swiglu", "--target", "none")
    assert "mesh data=2, tensor=4, 8 devices" in page
    assert "psum Y over tensor" in page
    page = printed(capsys, "explain", "--mesh", "data=8,tensor=1", "--example", "swiglu", "--target", "none")
    assert "mesh data=8, tensor=1, 8 devices" in page
    assert "psum" not in page
    page = printed(
        capsys, "search", "--example", "embedding", "--machine", "v5e:2x2", "--axes", "data,tensor"
    )
    assert "take(W[v,d], T[b,t])" in page
