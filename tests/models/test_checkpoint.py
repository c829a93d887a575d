"""Checkpoints that Orbax 0.12.8 wrote on eight simulated devices, of which the small files are kept; what
devices hold of them is judged by JAX."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

from shardviz.cli.group import run
from shardviz.models.checkpoint import read_checkpoint, restored
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import PartitionSpec

SAVED = Path(__file__).parent / "checkpoints"
ARRAYS = {
    "params.embed": ((256, 64), "f32", P(("data", "model"), None)),
    "params.layers.0.b": ((128,), "f32", P("model")),
    "params.layers.0.w": ((64, 128), "bf16", P("data", "model")),
}


def axes_of(entry: object) -> tuple[str, ...]:
    return entry if isinstance(entry, tuple) else () if entry is None else (str(entry),)


def test_shapes_dtypes_and_specs_are_those_that_were_saved() -> None:
    checkpoint = read_checkpoint(str(SAVED / "zarr"))
    assert str(checkpoint.mesh) == "data=2,model=4"
    found = {each.name: each for each in checkpoint.model.parameters}
    assert [*found] == ["ids", "params.embed", *(f"params.layers.{n}.{x}" for n in (0, 1) for x in "bw")]
    for name, (shape, dtype, spec) in ARRAYS.items():
        assert (found[name].shape, found[name].dtype) == (shape, dtype)
        assert found[name].spec == PartitionSpec(tuple(map(axes_of, spec)))
    assert (found["ids"].shape, found["ids"].dtype, found["ids"].spec) == ((3, 4), "s32", None)


def test_a_database_that_nothing_reads_leaves_unknown_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Of `b`, 128 elements over 4 of 8 devices, two devices write halves of a shard: pieces of 16."""
    checkpoint = read_checkpoint(str(SAVED / "ocdbt" / "_METADATA"))
    assert {each.name: (each.shape, each.dtype) for each in checkpoint.model.parameters} == {
        "params.embed": ((256, 64), ""),
        "params.layers.0.w": ((64, 128), ""),
        "params.layers.1.w": ((64, 128), ""),
    }
    assert checkpoint.shapeless == ("ids", "params.layers.0.b", "params.layers.1.b")
    assert run(["checkpoint", str(SAVED / "ocdbt")]) == 0
    assert "unknown dtype 64×128" in capsys.readouterr().out
    assert run(["checkpoint", str(SAVED / "ocdbt"), "--dtype", "bf16", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes_per_device"] == 2 * (256 * 64 + 2 * 64 * 128) // 8


@pytest.mark.parametrize(
    ("mesh", "order"), [("data=4,model=2", None), ("model=8", None), ("data=2,model=4", "7,6,5,4,3,2,1,0")]
)
def test_what_a_device_held_and_reads_is_what_jax_says(mesh: str, order: str | None) -> None:
    after = parse_mesh(mesh, order)
    restore = restored(read_checkpoint(str(SAVED / "zarr")), after)
    devices = np.array(jax.devices()[:8], dtype=object)
    old_mesh = jax.sharding.Mesh(devices.reshape(2, 4), ("data", "model"))
    ids = [after.device_id(place) for place in range(8)]
    new_mesh = jax.sharding.Mesh(devices[ids].reshape(after.axis_sizes), after.axis_names)
    pieces = {"params.embed": (32, 64), "params.layers.0.b": (16,), "params.layers.0.w": (32, 32)}
    arrays = {one.array.first.parameter.name: one for one in restore.arrays}
    for name, (shape, _, spec) in ARRAYS.items():
        kept = P(*(tuple(axis for axis in axes_of(each) if axis in after.axis_names) for each in spec))
        old = NamedSharding(old_mesh, spec).devices_indices_map(shape)
        new = NamedSharding(new_mesh, kept).devices_indices_map(shape)
        chunk = np.ravel_multi_index(
            tuple(index // step for index, step in zip(np.indices(shape), pieces[name], strict=True)),
            tuple(size // step for size, step in zip(shape, pieces[name], strict=True)),
        )
        held = read = needed = 0
        for device, index in new.items():
            mine, was = np.zeros(shape, bool), np.zeros(shape, bool)
            mine[index] = was[old[device]] = True
            needed, held = needed + mine.sum(), held + (mine & was).sum()
            read += np.isin(chunk, np.unique(chunk[index])).sum()
        assert arrays[name].held == pytest.approx(held / needed)
        assert arrays[name].pieces == pytest.approx(read / needed)


def test_pages(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[rules]\n'w$' = '_ x'\nembed = 'x _'\n")
    for step in (9, 10):
        shutil.copytree(SAVED / "zarr", tmp_path / "run" / str(step) / "default")
        (tmp_path / "run" / str(step) / "_CHECKPOINT_METADATA").write_text("{}")
    assert run(["checkpoint", str(tmp_path / "run" / "9" / "_CHECKPOINT_METADATA")]) == 0
    assert "run/9/default" in capsys.readouterr().out
    assert run(["checkpoint", str(tmp_path / "run"), "--mesh", "x=4", "--rules", str(rules)]) == 0
    page = capsys.readouterr().out
    assert "run/10/default" in page
    assert " ".join(page.split()).count("each device needs 25 KiB, and held") == 1
    assert "params.layers.0–1.w  bf16 64×128  data model" in page
    assert "no rule matches: ids, params.layers.0–1.b" in page
    for width in (40, 60, 120):
        assert run(["checkpoint", str(tmp_path / "run"), "--mesh", "x=4", "--width", str(width)]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= width


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        ({"_METADATA": "{"}, "_METADATA': it is not JSON"),
        ({"_METADATA": "{}"}, "_METADATA': tree_metadata: it is missing"),
        ({"_METADATA": '{"tree_metadata": {"a": 1}}'}, "_METADATA or _sharding is damaged"),
        ({"_sharding": '{"YQ==": "no"}'}, "_METADATA or _sharding is damaged"),
        ({"_sharding": '{"a": "[]"}'}, "_METADATA or _sharding is damaged"),
        (
            {"_METADATA": '{"tree_metadata": {}}', "_sharding": "{}"},
            "no file of it says the shape of an array",
        ),
    ],
)
def test_damaged_files(
    damage: dict[str, str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAVED / "zarr", tmp_path / "c")
    for name, text in damage.items():
        (tmp_path / "c" / name).write_text(text)
    assert run(["checkpoint", str(tmp_path / "c")]) == 2
    assert error in capsys.readouterr().err


def test_folders_without_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, error in (
        (tmp_path, "it has no Orbax checkpoint"),
        ("gs://b/c", "it is not on this machine"),
    ):
        assert run(["checkpoint", str(name)]) == 2
        assert error in capsys.readouterr().err
    assert run(["checkpoint", str(SAVED / "zarr"), "--device-order", "0,1"]) == 2
    assert "--device-order needs a mesh" in capsys.readouterr().err
    for item in ("params", "state"):
        shutil.copytree(SAVED / "zarr", tmp_path / "3" / item)
    assert run(["checkpoint", str(tmp_path)]) == 2
    assert "has 2 items" in capsys.readouterr().err
