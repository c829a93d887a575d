"""Programs that JAX and XLA have saved in binary: read as their text is, and compiled where they can be."""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path

import pytest

from shardviz.cli.group import run

WRITES = """
import io, os, jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
x = jax.ShapeDtypeStruct((8, 64), "float32", sharding=NamedSharding(mesh, P("X", "Y")))
w = jax.ShapeDtypeStruct((64, 32), "float32", sharding=NamedSharding(mesh, P("Y", None)))
matmul = jax.jit(lambda x, w: x @ w, out_shardings=NamedSharding(mesh, P("X", None)))
lowered = matmul.lower(x, w)
code = io.BytesIO()
lowered.compiler_ir("stablehlo").operation.write_bytecode(code)
compiled = lowered.compile()
(module,) = compiled.runtime_executable().hlo_modules()
proto = module.as_serialized_hlo_module_proto()
size = len(proto)
length = bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14])
files = {
    "module.pb": proto,
    "module_0000.jit_f.cpu_after_optimizations.hlo.pb": b"\\n" + length + proto,  # HloProto, as XLA dumps it
    "module.mlirbc": code.getvalue(),
    "module.mlir": lowered.as_text().encode(),
    "module.jax": jax.export.export(matmul)(x, w).serialize(),
    "module.txt": compiled.as_text().encode(),
}
for name, content in files.items():
    with open(name, "wb") as file:
        file.write(content)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("binary")
    with contextlib.chdir(folder):
        exec(compile(WRITES, "write.py", "exec"), {})
    with zipfile.ZipFile(folder / "module.zip", "w") as packed:
        packed.write(folder / "module.pb", "module.pb")
    return folder


@pytest.fixture
def _inside(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(saved)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


@pytest.mark.usefixtures("_inside")
@pytest.mark.parametrize("name", ["module.pb", "module.zip", "."])
def test_a_proto_is_read_as_its_text_is(name, capsys):
    assert answer(capsys, "hlo", name)["collectives"] == answer(capsys, "hlo", "module.txt")["collectives"]
    assert run(["hlo", name]) == 0
    assert capsys.readouterr().out.startswith("jit__lambda  8 partitions, scheduled\n")


@pytest.mark.usefixtures("_inside")
@pytest.mark.parametrize("name", ["module.mlirbc", "module.jax"])
def test_bytecode_and_exports_are_stablehlo(name, capsys):
    assert run(["hlo", name]) == 0
    out = capsys.readouterr().out
    assert out.startswith("jit__lambda  StableHLO, no schedule\nmesh X=2, Y=4  8 devices\n")


@pytest.mark.usefixtures("_inside")
@pytest.mark.parametrize("name", ["module.mlirbc", "module.jax"])
def test_stablehlo_is_compiled_for_a_target(name, capsys):
    (target,) = answer(capsys, "program", name)["targets"]  # type: ignore[misc]
    collectives = [
        (each["op"], each["axes"], each["operand_shape"]) for each in target["program"]["collectives"]
    ]
    assert collectives == [("all-reduce", ["Y"], [4, 32])]


def test_a_module_without_names_or_shardings_is_compiled(tmp_path, capsys):
    body = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
    (tmp_path / "plain.mlir").write_text(f"module {{ {body} }}")
    (tmp_path / "other.mlir").write_text(f"module {{ {body.replace('main', 'other')} }}")
    assert run(["program", str(tmp_path / "plain.mlir"), "--arrays"]) == 0
    assert "f32 8" in capsys.readouterr().out
    assert run(["program", str(tmp_path / "other.mlir")]) == 2
    assert "its module has no function main" in capsys.readouterr().err


@pytest.mark.usefixtures("_inside")
@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (["hlo", "cut.pb"], "'cut.pb' is not a program that XLA reads", "HLO proto"),
        (["hlo", "cut.mlirbc"], "'cut.mlirbc' is not a program that JAX reads", "bytecode"),
        (["hlo", "cut.jax"], "'cut.jax' is not a program that JAX reads", "jax.export"),
        (["hlo", "two.zip"], "'two.zip' is a zip of 2 files", "unzip"),
        (["hlo", "cut.zip"], "'cut.zip' cannot be unzipped", "unzip"),
        (["program", "module.txt"], "'module.txt' is not a program that JAX reads", "shardviz hlo FILE"),
        (["program", "module.jax", "--mesh", "X=8"], "'module.jax' has its own mesh", "leave out --mesh"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(words, problem, hint, saved, capsys):
    for name in ("module.pb", "module.mlirbc", "module.jax", "module.zip"):
        content = (saved / name).read_bytes()
        (saved / name.replace("module", "cut")).write_bytes(content[: len(content) // 2])
    with zipfile.ZipFile(saved / "two.zip", "w") as packed:
        packed.write(saved / "module.pb", "one")
        packed.write(saved / "module.txt", "other")
    assert run(words) == 2
    err = capsys.readouterr().err
    assert problem in err
    assert hint in err
