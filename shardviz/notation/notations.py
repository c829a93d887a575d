"""Every notation for one array's sharding, in one table: reading, writing and translating one array, the
arrays of a text that shards several, and a layout of a shape and a sharding."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.notation.book import parse_product, read_book, write_book_reading
from shardviz.notation.einshard import read_einshard, write_einshard
from shardviz.notation.gspmd import read_gspmd, write_gspmd
from shardviz.notation.jax_spec import read_jax, write_jax
from shardviz.notation.numbers import parse_shape
from shardviz.notation.reading import Context, Reading
from shardviz.notation.shardy import read_shardy, write_shardy
from shardviz.notation.spec_string import parse_specs, read_spec_string, write_spec_string
from shardviz.notation.typeof import read_shardlib, read_typeof, write_shardlib, write_typeof
from shardviz.sharding import Layout, Mesh, ShardedArray, canonical_dtype
from shardviz.sharding.axis_parts import axis_part


@dataclass(frozen=True)
class Notation:
    """A way to write a sharding. `looks` matches the beginning of texts that are written so.

    `read` and `write` raise `ShardvizError` for what they cannot read or say; what `write` gives, `read`
    reads as the same spec, and the same dimensions, shape and dtype where the notation has them. All read
    parts of axes; one that `has_parts` can write them. One that `has_devices` can say that a single device
    holds the array."""

    key: str
    title: str
    looks: re.Pattern[str]
    read: Callable[[str, Context], Reading]
    write: Callable[[Reading, Context], str]
    has_parts: bool = False
    has_devices: bool = False


# fmt: off
NOTATIONS = (
    Notation("shardviz", "spec string", re.compile(""), read_spec_string, write_spec_string, True, True),
    Notation("jax", "PartitionSpec",
             re.compile(r"(\w++\.)*+(PartitionSpec|P|NamedSharding|SingleDeviceSharding)\s*\("
                        r"|\(\s*(['\"(]|None\b)"),
             read_jax, write_jax, has_devices=True),
    Notation("book", "scaling book", re.compile(r"[\w'\\{}*<>/]*\["), read_book, write_book_reading, True),
    Notation("typeof", "jax.typeof",
             re.compile(r"~?\w+(<\w+>)?\[[^]]*@|~?(bool|pred|[a-z]+[0-9]\w*)(<\w+>)?\[[0-9,\s]*\]"),
             read_typeof, write_typeof),
    Notation("shardlib", "shardlib", re.compile(r"\w+(\s+\w+)*\s*/|\w+/"), read_shardlib, write_shardlib),
    Notation("einshard", "einshard", re.compile(r"[^\[\]{}<>@/(),;?]*->"),
             read_einshard, write_einshard, True),
    Notation("gspmd", "GSPMD in HLO", re.compile(r"\{"), read_gspmd, write_gspmd, True, True),
    Notation("shardy", "Shardy", re.compile(r"#?sdy\.sharding|<|\[\s*\{"),
             read_shardy, write_shardy, True, True),
)
# fmt: on
"""In the order in which they are shown. A text is taken for the last one that it looks like."""


def find_notation(key: str) -> Notation:
    by_key = {known.key: known for known in NOTATIONS}
    if key not in by_key:
        raise QuestionError(f"unknown notation {quote(key, 30)}", f"the notations are {', '.join(by_key)}")
    return by_key[key]


def detect(text: str) -> Notation:
    return next(known for known in reversed(NOTATIONS) if known.looks.match(text.strip()))


def read_sharding(text: str, context: Context, key: str | None = None) -> Reading:
    """Read one array's sharding in the notation of `key`, or in the one that it looks like."""
    return (detect(text) if key is None else find_notation(key)).read(text, context)


def write_sharding(notation: Notation, reading: Reading, context: Context) -> str:
    """The sharding in a notation; raises `ShardvizError` where it cannot be said there."""
    parts = [axis for axis in (*reading.spec.axes, *reading.spec.unreduced) if axis_part(axis)]
    if parts and not notation.has_parts:
        problem = f"{notation.title} text names whole axes, and {parts[0]} is a part of one"
        raise QuestionError(problem, "make two axes of it in the mesh")
    if reading.spec.devices and not notation.has_devices:
        problem = f"{notation.title} text names axes only, and this sharding names devices"
        raise QuestionError(problem, "the notations shardviz, jax, gspmd and shardy name devices")
    return notation.write(reading, context)


def write_all(reading: Reading, context: Context) -> dict[str, str | ShardvizError]:
    """The sharding in every notation, by key; the error where a notation cannot say it."""
    written: dict[str, str | ShardvizError] = {}
    for known in NOTATIONS:
        try:
            written[known.key] = write_sharding(known, reading, context)
        except ShardvizError as error:
            written[known.key] = error
    return written


def read_arrays(text: str, context: Context, notation: Notation | None = None) -> tuple[Reading, ...]:
    """Every array that `text` says the sharding of, in its order, the result last. Spec strings
    (``XY,Y_->X_``) and products have several, without those left open with ``?``; the others have one."""
    notation = notation or detect(text)
    if notation.key == "shardviz" and any(mark in text for mark in (",", ";", "->")):
        readings: list[Reading] = []
        for part in parse_specs(text, context.axis_sizes):
            names = iter("AWVUTS")
            specs = [(next(names, "A"), spec) for spec in part.operands] + [("Out", part.result)]
            readings.extend(Reading(spec, name=name) for name, spec in specs if spec is not None)
        if len({reading.name for reading in readings}) == len(readings):
            return tuple(readings)
        return tuple(each._replace(name=f"{each.name}{number}") for number, each in enumerate(readings, 1))
    if notation.key == "book" and any(mark in text for mark in ("*", "·", "->", "@")):
        product = parse_product(text, context.axis_sizes)
        arrays = [*product.operands, *([product.result] if product.result else [])]
        return tuple(Reading(array.spec, dims=array.dims, name=array.name) for array in arrays)
    return (notation.read(text, context),)


def parse_layout(shape: str, mesh: Mesh, spec: str, dtype: str | None) -> Layout:
    """The layout that a user wrote; the sharding's text may name the array, its dimensions and its dtype,
    which is else bf16. Raises `ShardvizError`."""
    sizes = parse_shape(shape)
    return layout_as_read(sizes, mesh, spec, read_sharding(spec, Context(mesh, len(sizes))), dtype)


def layout_as_read(
    sizes: tuple[int, ...],
    mesh: Mesh,
    spec: str,
    reading: Reading,
    dtype: str | None,
    default_dtype: str = "bf16",
) -> Layout:
    """The layout of an array of these sizes from what `spec` was read as. Raises as `parse_layout`."""
    shape = "x".join(map(str, sizes)) or "()"
    if reading.spec.rank != len(sizes):
        problem = f"the spec {quote(spec)} has rank {reading.spec.rank}, but {quote(shape)} has {len(sizes)}"
        raise QuestionError(problem, "write one entry for each dimension; _ or None leaves it unsharded")
    if reading.shape is not None and reading.shape != sizes:
        problem = f"the spec {quote(spec)} has the shape {'x'.join(map(str, reading.shape))}, not {shape}"
        raise QuestionError(problem, "give the same sizes twice, or a spec without sizes")
    element = canonical_dtype((reading.dtype or default_dtype) if dtype is None else dtype)
    return Layout(ShardedArray(reading.name or "A", reading.dim_names, sizes, element, reading.spec), mesh)
