"""Checkpoints of Orbax: the arrays and how they were split, and what restoring them in another way reads.

A folder of one item has `_METADATA` (the tree, and the shape of each array's stored pieces) and `_sharding`
(mesh and spec of each array, by its name in base64). Shape and dtype are in `.zarray` or `zarr.json` of each
array, which OCDBT, Orbax's default, keeps in a database: tensorstore reads it, where that is installed. Else
a shape is known where every device wrote its own piece: devices with the same elements share these.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from shardviz.errors import QuestionError, quote
from shardviz.models.model import Model, ModelParameter
from shardviz.models.rule_set import RuleSet
from shardviz.models.sources import ModelFileError, announce, json_table, text_of
from shardviz.models.splitting import FoldedParameter, SplitModel, folded, split_model
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray, canonical_dtype
from shardviz.sharding.mesh import writable_names
from shardviz.user_files import is_folder, is_there

METADATA, SHARDING = "_METADATA", "_sharding"
MAX_BYTES = 2**30
"""Bytes of a file: each array of a large mesh names all devices."""
ONE = Mesh(("device",), (1,))
UNKNOWN = ""
"""The dtype of an array whose files do not say it."""
_NUMBER = re.compile(r"(\d+)")
_NUMPY = re.compile(r"[<>|=]([fiucb])(\d+)")
_LETTERS = {"f": "f", "i": "s", "u": "u", "c": "c"}


@dataclass(frozen=True)
class Checkpoint:
    """The arrays of a checkpoint, each with the spec in which it was saved, as a model's parameters; the mesh
    of most of them, None where none is told; the names of those whose shape no file says; and the shapes of
    stored pieces, by name."""

    model: Model
    mesh: Mesh | None
    shapeless: tuple[str, ...] = ()
    pieces: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)


@dataclass(frozen=True)
class RestoredArray:
    """Arrays that are alike, restored: of one device's elements the part that it `held` when they were saved,
    and how many times as many the stored pieces have that it reads, both the averages of all devices."""

    array: FoldedParameter
    held: float
    pieces: float

    @property
    def bytes(self) -> int | None:
        """Bytes of one device for all of them; None where the dtype is not known."""
        return self.array.bytes_per_device if self.array.first.parameter.dtype else None


@dataclass(frozen=True)
class Restore:
    """A checkpoint, and how it is split after it was restored."""

    checkpoint: Checkpoint
    split: SplitModel
    arrays: tuple[RestoredArray, ...]

    @property
    def bytes(self) -> int:
        """Bytes that a device reads, of all arrays whose dtype is known."""
        return sum(one.bytes or 0 for one in self.arrays)

    @property
    def held_bytes(self) -> int:
        return round(sum((one.bytes or 0) * one.held for one in self.arrays))

    @property
    def piece_bytes(self) -> int:
        """Bytes of the stored pieces in which these are, each of which is read whole."""
        return round(sum((one.bytes or 0) * one.pieces for one in self.arrays))

    @property
    def untyped(self) -> tuple[FoldedParameter, ...]:
        """The arrays without a dtype."""
        return tuple(one.array for one in self.arrays if not one.array.first.parameter.dtype)

    @property
    def is_moved(self) -> bool:
        """The mesh or a spec is another than that which was saved."""
        specs = ((each.spec, each.parameter.spec) for each in self.split.parameters)
        is_same = all(before in (after, None) for after, before in specs)
        return self.split.mesh != (self.checkpoint.mesh or ONE) or not is_same


def restored(checkpoint: Checkpoint, mesh: Mesh | None = None, rules: RuleSet | None = None) -> Restore:
    """The checkpoint on a mesh, by default that of which it was saved, split by rules, by default as it was
    saved, over the axes that the mesh has. Raises `RuleError` as `split_model` does."""
    saved = checkpoint.mesh or ONE
    mesh = mesh or saved
    given = {each.name: each.spec for each in checkpoint.model.parameters}

    def as_saved(name: str, shape: tuple[int, ...]) -> PartitionSpec:
        spec = given[name] or PartitionSpec.replicated(len(shape))
        return PartitionSpec(tuple(tuple(a for a in dim if a in mesh.axis_names) for dim in spec.dims))

    split = split_model(checkpoint.model, rules or RuleSet("as saved", "function", function=as_saved), mesh)
    arrays = []
    for array in folded(split.parameters):
        own = array.first.parameter
        piece = checkpoint.pieces.get(own.name) or ()
        piece = piece if len(piece) == len(own.shape) else own.shape
        held, pieces = _read(own.shape, own.spec, saved, array.first.spec, mesh, piece)
        arrays.append(RestoredArray(array, held, pieces))
    return Restore(checkpoint, split, tuple(arrays))


@lru_cache(maxsize=4096)
def _read(
    shape: tuple[int, ...],
    before: PartitionSpec | None,
    saved: Mesh,
    after: PartitionSpec,
    mesh: Mesh,
    piece: tuple[int, ...],
) -> tuple[float, float]:
    """The parts of `RestoredArray`; nothing of an array that was on no mesh is held by a device."""
    dims = tuple(f"d{dim}" for dim in range(len(shape)))
    old, new = (
        Layout(ShardedArray("x", dims, shape, "u8", spec), on)
        for spec, on in ((before or PartitionSpec.replicated(len(shape)), saved), (after, mesh))
    )
    held_by = {device.id: device.slices for device in old} if before else {}
    held = pieces = needed = 0
    for device in new:
        needed += math.prod(stop - start for start, stop in device.slices)
        if (own := held_by.get(device.id)) is not None:
            both = zip(device.slices, own, strict=True)
            held += math.prod(max(min(b, d) - max(a, c), 0) for (a, b), (c, d) in both)
        whole = zip(device.slices, (max(step, 1) for step in piece), shape, strict=True)
        pieces += math.prod(
            min(-(-b // step) * step, size) - a // step * step for (a, b), step, size in whole
        )
    return held / max(needed, 1), pieces / max(needed, 1)


# Files.


def read_checkpoint(text: str, dtype: str = UNKNOWN) -> Checkpoint:
    """The checkpoint in a folder, the newest of one that has several steps, or one of its files; what says no
    dtype has this one. Raises `ModelFileError` for none, and for what cannot be read."""
    folder = _folder(text)
    names = dict.fromkeys(chain(pieces := _pieces(folder), splits := _splits(folder)))
    stored = _stored(folder)
    meshes = Counter(mesh for mesh, _ in splits.values() if mesh is not None)
    mesh = max(meshes, key=lambda each: meshes[each], default=None)
    arrays, shapeless = [], []
    for name in sorted(names, key=lambda name: [(len(p) * p.isdigit(), p) for p in _NUMBER.split(name)]):
        on, entries = splits.get(name, (None, ()))
        shape, kind = _declared(stored, name)
        piece = pieces.get(name)
        rank = len(shape if shape is not None else piece or entries)
        spec = None
        if mesh is not None and on == mesh:
            spec = PartitionSpec((*entries[:rank], *((),) * (rank - len(entries))))
            if shape is None and piece is not None and mesh.group_size(spec.axes) == mesh.size:
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
        hint = f"copy {METADATA}, {SHARDING} and array_metadatas to a folder, which need no weights"
        raise ModelFileError(text, "", "it is not on this machine", hint)
    if path.name in (METADATA, SHARDING):
        return path.parent
    if not is_folder(path):
        reason = "it is not a folder" if is_there(path) else "there is no such folder"
        raise ModelFileError(str(path), "", reason, "give the folder of a checkpoint of Orbax")
    found = [file.parent for depth in ("", "*/", "*/*/") for file in path.glob(f"{depth}{METADATA}")]
    if not found:
        hint = f"give a folder of Orbax, which has {METADATA}"
        raise ModelFileError(str(path), "", "it has no checkpoint of Orbax", hint)
    steps = {
        each: [int(n) for part in each.relative_to(path).parts[:1] for n in _NUMBER.findall(part)]
        for each in found
    }
    newest = sorted(each for each in found if steps[each] == max(steps.values()))
    if len(newest) > 1:
        hint = f"name one, such as {newest[0]}"
        raise QuestionError(f"{quote(str(path))} has {len(newest)} items", hint)
    return newest[0]


def _pieces(folder: Path) -> dict[str, tuple[int, ...] | None]:
    """The shape of each array's stored pieces, None where older versions do not say it."""
    file = folder / METADATA
    tree = json_table(text_of(file, MAX_BYTES), str(file)).table("tree_metadata")
    found = {}
    for path in tree.values:
        leaf = tree.table(path)
        name = ".".join(str(key.values.get("key")) for key in leaf.tables("key_metadata"))
        value = leaf.table("value_metadata").values
        if value.get("value_type") in ("jax.Array", "np.ndarray"):
            found[name] = _sizes(value.get("write_shape"))
    return found


def _splits(folder: Path) -> dict[str, tuple[Mesh | None, tuple[tuple[str, ...], ...]]]:
    """The mesh of each array, None for one on a single device, and its spec's entries."""
    file = folder / SHARDING
    if not is_there(file):
        return {}
    found = {}
    for name, text in json_table(text_of(file, MAX_BYTES), str(file)).values.items():
        try:
            said = json.loads(text)
            own = tuple(said.get("axis_names", ()))
            axes = dict(zip(own, writable_names(own), strict=True))
            mesh = None
            if said["sharding_type"] == "NamedSharding":
                mesh = Mesh(tuple(axes.values()), tuple(said["shape"]))
                with suppress(KeyError, QuestionError):  # devices that are not numbered from 0
                    order = tuple(map(int, re.findall(r'"id": (\d+)', json.dumps(said["device_mesh"]))))
                    mesh = mesh if order == tuple(range(mesh.size)) else replace(mesh, device_order=order)
            listed = (each if isinstance(each, list) else [each] for each in said.get("partition_spec", ()))
            entries = tuple(tuple(axes[axis] for axis in each if axis is not None) for each in listed)
            found[b64decode(name).decode()] = mesh, entries
        except (ValueError, KeyError, TypeError, AttributeError, QuestionError) as error:
            reason = f"the sharding of {quote(name, 40)} cannot be read: {error}"
            raise ModelFileError(str(file), "", reason, "copy the file anew") from None
    return found


def _stored(folder: Path) -> Callable[[str], str]:
    """A reader of the small files that say shape and dtype: those of the folder, or of its database."""
    with suppress(Exception):  # tensorstore is not installed, or the database is damaged
        if is_there(folder / "manifest.ocdbt"):
            base = {"driver": "ocdbt", "base": folder.resolve().as_uri() + "/"}
            store = import_module("tensorstore").KvStore.open(base).result(10)
            return lambda key: bytes(store.read(key).result(10).value).decode()
    return lambda key: text_of(folder / key, MAX_BYTES)


def _declared(stored: Callable[[str], str], name: str) -> tuple[tuple[int, ...] | None, str]:
    """Shape and dtype of an array as Zarr has them; None and `UNKNOWN` where it is silent."""
    for file in (".zarray", "zarr.json"):
        with suppress(ValueError, TypeError, AttributeError, QuestionError):
            said: dict[str, Any] = json.loads(stored(f"{name}/{file}"))
            kind = str(said.get("dtype") or said.get("data_type"))
            if match := _NUMPY.fullmatch(kind):
                kind = "pred" if match[1] == "b" else f"{_LETTERS[match[1]]}{8 * int(match[2])}"
            with suppress(QuestionError):
                return _sizes(said["shape"]), canonical_dtype(kind)
            return _sizes(said["shape"]), UNKNOWN
    return None, UNKNOWN


def _sizes(given: object) -> tuple[int, ...] | None:
    is_shape = isinstance(given, list) and all(type(size) is int and size >= 0 for size in given)
    return tuple(given) if is_shape else None  # type: ignore[arg-type]
