"""The header of `safetensors` files → parameters. No weights are read.

A file is 8 bytes, the length N of its header, little-endian; N bytes of JSON; and the data
(https://huggingface.co/docs/safetensors/index#format). Of a model in several files
`model.safetensors.index.json` names the file of each tensor, without shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from shardviz.errors import plural, quote
from shardviz.models.model import ModelParameter
from shardviz.models.sources.model_files import (
    MAX_BYTES,
    ModelFileError,
    fail_reading,
    json_table,
    opened,
    text_of,
)
from shardviz.strict_table import StrictTable

INDEX = ".index.json"
MAX_RANK = 64
MAX_SIZE = 2**48
DTYPES = {
    "BOOL": "pred",
    "F8_E4M3": "f8e4m3fn",
    "F8_E5M2": "f8e5m2",
    "F8_E8M0": "f8e8m0fnu",
    "F4": "f4e2m1fn",
    "BF16": "bf16",
    **{f"F{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "C64": "c64",
}
"""The format's dtypes, as HLO names them."""
_EXPERT = re.compile(r"(.*\bexperts)\.\d+\.(.*)")
_NUMBER = re.compile(r"(\d+)")


def read_safetensors(path: Path) -> tuple[ModelParameter, ...]:
    """The parameters of a file, or of all files that an index names, layers in order.

    Raises `ModelFileError` for a file that cannot be read or is not of the format, and for a tensor of the
    index that its file lacks.
    """
    found = _of_index(path) if path.name.endswith(INDEX) else _of_file(path)
    return tuple(stacked_experts(sorted(found, key=lambda each: _natural(each.name))))


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which layer 10 comes after layer 9."""
    pieces = _NUMBER.split(name)
    return tuple((1, int(piece), "") if piece.isdigit() else (0, 0, piece) for piece in pieces)


def _of_index(path: Path) -> list[ModelParameter]:
    index = json_table(text_of(path), str(path)).table("weight_map")
    files: dict[str, list[str]] = {}
    for name in index.values:
        files.setdefault(_file_name(index, name), []).append(name)
    found = []
    for file, names in files.items():
        own = {each.name: each for each in _of_file(path.with_name(file))}
        for name in names:
            if name not in own:
                index.fail(name, f"{quote(file)} has no such tensor", "download the files anew")
            found.append(own[name])
    return found


def _file_name(index: StrictTable, name: str) -> str:
    file = index.line(name, 255)
    if not file or Path(file).name != file:
        index.fail(name, f"{quote(file)} is not a file beside the index", "give the index of a checkpoint")
    return file


def _of_file(path: Path) -> list[ModelParameter]:
    try:
        with opened(path) as file:
            header = _header(path, file)
    except OSError as error:
        fail_reading(path, error)
    table = json_table(header, str(path))
    return [_parameter(table, name) for name in table.values if name != "__metadata__"]


def _header(path: Path, file: BinaryIO) -> bytes:
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= MAX_BYTES:
        reason = f"it does not begin with the length of a header of up to {MAX_BYTES:,} bytes"
        raise ModelFileError(str(path), "", reason, "give a file in the format safetensors")
    header = file.read(length)
    if len(header) < length:
        reason = f"its header ends after {plural(len(header), 'byte')} of {length:,}"
        raise ModelFileError(str(path), "", reason, "download the file anew")
    return header


def _parameter(table: StrictTable, name: str) -> ModelParameter:
    table.check_shown(name, name)
    own = table.table(name)
    dtype = own.text("dtype")
    if dtype not in DTYPES:
        own.fail("dtype", f"{quote(dtype, 30)} is not a dtype of the format", f"it has {', '.join(DTYPES)}")
    sizes = own.listed("shape", MAX_RANK)
    return ModelParameter(name, tuple(sizes.count(place, MAX_SIZE) for place in sizes.values), DTYPES[dtype])


def stacked_experts(parameters: Iterable[ModelParameter]) -> Iterator[ModelParameter]:
    """The parameters, of which those of a layer's experts (``experts.0.w1``, ``experts.1.w1``, …) are one.

    So JAX programs hold them, and so a mesh axis can split the experts. Those that are not alike stay apart.
    """
    groups: dict[str, list[ModelParameter]] = {}
    for each in parameters:
        match = _EXPERT.fullmatch(each.name)
        groups.setdefault(each.name if match is None else f"{match[1]}.{match[2]}", []).append(each)
    for name, group in groups.items():
        first = group[0]
        if first.name == name or len({(each.shape, each.dtype) for each in group}) > 1:
            yield from group
        else:
            yield ModelParameter(name, (len(group), *first.shape), first.dtype)
