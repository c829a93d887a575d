"""Element types, under the names that HLO prints, and the bytes they take."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shardviz.errors import QuestionError, quote

BITS: dict[str, int] = {
    "pred": 8,
    **{f"{sign}{bits}": bits for sign in "su" for bits in (2, 4, 8, 16, 32, 64)},
    "f4e2m1fn": 4,
    **dict.fromkeys(
        ("f8e3m4", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu"),
        8,
    ),
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
    "token": 0,
    "opaque": 0,
}
"""Bits of one element in memory; `pred` takes a byte."""

_ALIASES: dict[str, str] = {
    "bool": "pred",
    "bfloat16": "bf16",
    "float16": "f16",
    "half": "f16",
    "float32": "f32",
    "float": "f32",
    "float64": "f64",
    "double": "f64",
    "complex64": "c64",
    "complex128": "c128",
    **{f"int{bits}": f"s{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"i{bits}": f"s{bits}" for bits in (1, 2, 4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    "i1": "pred",
}


def canonical_dtype(name: str) -> str:
    """The HLO name of a dtype given as HLO, JAX, NumPy or MLIR name it.

    Raises `QuestionError` for a name that none of them knows.
    """
    text = name.strip().lower()
    found = _ALIASES.get(text, text)
    if found not in BITS:
        found = text.replace("float", "f").replace("_", "")
    if found not in BITS:
        raise QuestionError(
            f"unknown dtype {quote(name)}", "use for example bf16, f32, f16, f8e4m3fn, s8, s32"
        )
    return found


def array_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of an array of that shape; types under a byte are packed, and a part of a byte counts whole."""
    return -(-math.prod(shape) * BITS[dtype] // 8)
