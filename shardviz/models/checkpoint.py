"""Checkpoints of Orbax: the arrays and how they were split, and what restoring them in another way reads.

A folder of one item has `_METADATA` (the tree, and the shape of each array's stored pieces) and `_sharding`
(mesh and spec of each array, by its name in base64). Shape and dtype are in `.zarray` or `zarr.json` of each
array, which OCDBT, Orbax's default, keeps in a database: tensorstore reads it, where that is installed. Else
a shape is known where every device wrote its own piece: devices with the same elements share these."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from shardviz.errors import QuestionError, quote
from shardviz.models.model import Model, ModelParameter
from shardviz.models.rule_set import FoldedParameter, RuleSet, SplitModel, folded, split_model
from shardviz.models.sources import ModelFileError, announce, in_order, json_table, text_of
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray, canonical_dtype
from shardviz.sharding.mesh import writable_names
from shardviz.user_files import is_folder, is_there

METADATA, SHARDING = "_METADATA", "_sharding"
MAX_BYTES = 2**30
"""Bytes of a file: each array of a large mesh names all devices."""
ONE = Mesh(("device",), (1,))
_NUMBER = re.compile(r"(\d+)")
_NUMPY = re.compile(r"[<>|=]([fiucb])(\d+)")
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, QuestionError)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Checkpoint:
    """The arrays of a checkpoint as a model's parameters, each with the spec in which it was saved, the dtype
    "" where no file says it; the mesh of most; the names without a shape; the shapes of stored pieces."""

    model: Model
    mesh: Mesh | None
    shapeless: tuple[str, ...]
    pieces: Mapping[str, Shape]


@dataclass(frozen=True)
class RestoredArray:
    """Arrays that are alike, restored: `bytes` of one device for all of them, None where the dtype is not
    known; the part of its elements that it `held` when they were saved, and how many times as many the stored
    pieces have that it reads, both the averages of all devices."""

    array: FoldedParameter
    bytes: int | None
    held: float
    pieces: float


@dataclass(frozen=True)
class Restore:
    """A checkpoint, and how it is split after it was restored; of the arrays whose dtype is known the bytes
    of a device, those that it held, and those of the stored pieces, each of which is read whole. With
    `is_moved` the mesh or a spec is another than that which was saved."""

    checkpoint: Checkpoint
    split: SplitModel
    arrays: tuple[RestoredArray, ...]
    bytes: int
    held_bytes: int
    piece_bytes: int
    is_moved: bool


def restored(checkpoint: Checkpoint, mesh: Mesh | None = None, rules: RuleSet | None = None) -> Restore:
    """The checkpoint on a mesh, by default that of which it was saved, split by rules, by default as it was
    saved, over the axes that the mesh has. Raises `RuleError` as `split_model` does."""
    saved = checkpoint.mesh or ONE
    mesh = mesh or saved
    given = {parameter.name: parameter.spec for parameter in checkpoint.model.parameters}

    def as_saved(name: str, shape: Shape) -> PartitionSpec:
        dims = (given[name] or PartitionSpec.replicated(len(shape))).dims
        return PartitionSpec(tuple(tuple(axis for axis in dim if axis in mesh.axis_names) for dim in dims))

    split = split_model(checkpoint.model, rules or RuleSet("as saved", "function", function=as_saved), mesh)
    arrays = []
    for array in folded(split.parameters):
        own, piece = array.first.parameter, checkpoint.pieces.get(array.first.parameter.name, ())
        piece = piece if len(piece) == len(own.shape) else own.shape
        reads = _read(own.shape, own.spec, saved, array.first.spec, mesh, piece)
        arrays.append(RestoredArray(array, array.bytes_per_device if own.dtype else None, *reads))
    shares = [(one.bytes or 0, (one.bytes or 0) * one.held, (one.bytes or 0) * one.pieces) for one in arrays]
    needed, held_bytes, read = (round(sum(column)) for column in zip(*shares, strict=True))
    is_same = mesh == saved and all(p.parameter.spec in (p.spec, None) for p in split.parameters)
    return Restore(checkpoint, split, tuple(arrays), needed, held_bytes, read, not is_same)


@lru_cache(maxsize=4096)
def _read(
    shape: Shape, before: PartitionSpec | None, saved: Mesh, after: PartitionSpec, mesh: Mesh, piece: Shape
) -> tuple[float, float]:
    """`held` and `pieces` of a `RestoredArray`; of an array that was on no mesh no device held anything."""
    dims = tuple(f"d{dim}" for dim in range(len(shape)))
    held_by, needed, held, read = {}, 0, 0, 0
    if before is not None:
        layout = Layout(ShardedArray("x", dims, shape, "u8", before), saved)
        held_by = {shard.id: shard.slices for shard in layout}
    for device in Layout(ShardedArray("x", dims, shape, "u8", after), mesh):
        needed += math.prod(stop - start for start, stop in device.slices)
        both = zip(device.slices, held_by.get(device.id, ((0, 0),) * len(dims)), strict=True)
        held += math.prod(max(min(b, d) - max(a, c), 0) for (a, b), (c, d) in both)
        for_each = zip(device.slices, piece, shape, strict=True)
        read += math.prod(min(-(-b // n) * n, size) - a // n * n for (a, b), n, size in for_each if n)
    return held / max(needed, 1), read / max(needed, 1)


# Files.


def read_checkpoint(text: str, dtype: str = "") -> Checkpoint:
    """The checkpoint in a folder, the newest of one that has several steps, or one of its files; what says no
    dtype has this one. Raises `ModelFileError` for none, and for what cannot be read."""
    folder = _folder(text)
    try:
        pieces, splits = _pieces(folder), _splits(folder)
    except ModelFileError:
        raise
    except _DAMAGE as error:
        reason = f"its {METADATA} or {SHARDING} is damaged: {error}"
        raise ModelFileError(str(folder), "", reason, "copy it anew") from None
    stored = _stored(folder)
    meshes = Counter(mesh for mesh, _ in splits.values() if mesh is not None)
    mesh = max(meshes, key=lambda candidate: meshes[candidate], default=None)
    arrays, shapeless = [], []
    names = dict.fromkeys((*pieces, *splits))
    for name in sorted(names, key=in_order):
        on, entries = splits.get(name, (None, ()))
        shape, kind = _declared(stored, name)
        piece, spec = pieces.get(name, ()), None
        if mesh is not None and on == mesh:
            rank = len(shape if shape is not None else piece)
            spec = PartitionSpec((*entries[:rank], *((),) * (rank - len(entries))))
            if shape is None and piece and mesh.group_size(spec.axes) == mesh.size:
                shape = tuple(size * count for size, count in zip(piece, spec.parts(mesh), strict=True))
        if shape is None:
            shapeless.append(name)
        else:
            arrays.append(ModelParameter(name, shape, kind or dtype, (), spec))
    if not arrays:
        reason = "no file of it says the shape of an array"
        raise ModelFileError(str(folder), "", reason, "install tensorstore beside shardviz")
    return Checkpoint(Model(folder.name, str(folder), tuple(arrays)), mesh, tuple(shapeless), pieces)


def is_checkpoint(folder: Path) -> bool:
    """Return whether a folder has one, or numbered steps that do."""
    return any(any(folder.glob(f"{depth}{METADATA}")) for depth in ("", "*[0-9]/", "*[0-9]/*/"))


def _folder(text: str) -> Path:
    """The folder of the newest step's only item."""
    path = Path(text).expanduser()
    announce(path)
    if "://" in text:
        hint = f"copy {METADATA}, {SHARDING} and manifest.ocdbt to a folder: no weights are needed"
        raise ModelFileError(text, "", "it is not on this machine", hint)
    if path.name.endswith((METADATA, SHARDING)):
        path = path.parent
    if not is_folder(path):
        raise ModelFileError(str(path), "", "there is no such folder", "give an Orbax checkpoint")
    steps = defaultdict(list)
    for depth in ("", "*/", "*/*/"):
        for file in path.glob(f"{depth}{METADATA}"):
            step = file.relative_to(path).parts[0]
            steps[tuple(map(int, _NUMBER.findall(step)))].append(file.parent)
    if not steps:
        hint = f"give the folder of one, which has {METADATA}"
        raise ModelFileError(str(path), "", "it has no Orbax checkpoint", hint)
    newest, *others = sorted(steps[max(steps)])
    if others:
        problem = f"{quote(str(path))} has {1 + len(others)} items"
        raise QuestionError(problem, f"name one, such as {newest}")
    return newest


def _pieces(folder: Path) -> dict[str, Shape]:
    """The shape of each array's stored pieces, () where older versions do not say it."""
    file = folder / METADATA
    tree = json_table(text_of(file, MAX_BYTES), str(file)).table("tree_metadata")
    found = {}
    for leaf in tree.values.values():
        keys, value = leaf["key_metadata"], leaf["value_metadata"]
        if value.get("value_type") in ("jax.Array", "np.ndarray"):
            name = ".".join(str(key["key"]) for key in keys)
            found[name] = tuple(map(int, value.get("write_shape", ())))
    return found


def _splits(folder: Path) -> dict[str, tuple[Mesh | None, tuple[tuple[str, ...], ...]]]:
    """The mesh of each array, None for one on a single device, and its spec's entries."""
    file, splits = folder / SHARDING, {}
    given = json_table(text_of(file, MAX_BYTES), str(file)).values if is_there(file) else {}
    for name, text in given.items():
        said, mesh = json.loads(text), None
        own = said.get("axis_names", ())
        axes = dict(zip(own, writable_names(own), strict=True))
        if said["sharding_type"] == "NamedSharding":
            mesh = Mesh(tuple(axes.values()), tuple(said["shape"]))
            order = tuple(map(int, re.findall(r'"id": (\d+)', json.dumps(said.get("device_mesh")))))
            with suppress(QuestionError):  # devices that are not numbered from 0
                mesh = mesh if order in ((), (*range(mesh.size),)) else replace(mesh, device_order=order)
        listed = (entry if isinstance(entry, list) else [entry] for entry in said.get("partition_spec", ()))
        entries = tuple(tuple(axes[axis] for axis in entry if axis is not None) for entry in listed)
        splits[b64decode(name).decode()] = mesh, entries
    return splits


def _stored(folder: Path) -> Callable[[str], str]:
    """A reader of the small files that say shape and dtype: those of the folder, or of its database."""
    with suppress(Exception):  # tensorstore is not installed, or the database is damaged
        if is_there(folder / "manifest.ocdbt"):
            base = {"driver": "ocdbt", "base": folder.resolve().as_uri() + "/"}
            store = import_module("tensorstore").KvStore.open(base).result(10)
            return lambda key: bytes(store.read(key).result(10).value).decode()
    return lambda key: text_of(folder / key)


def _declared(stored: Callable[[str], str], name: str) -> tuple[Shape | None, str]:
    """Shape and dtype of an array as Zarr has them; None and "" where it is silent."""
    for file in (".zarray", "zarr.json"):
        with suppress(*_DAMAGE):
            said = json.loads(stored(f"{name}/{file}"))
            kind, shape = str(said.get("dtype") or said.get("data_type")), tuple(map(int, said["shape"]))
            if match := _NUMPY.fullmatch(kind):
                letter = match[1].replace("i", "s")
                kind = "pred" if letter == "b" else f"{letter}{8 * int(match[2])}"
            with suppress(QuestionError):
                return shape, canonical_dtype(kind)
            return shape, ""
    return None, ""
