"""Arrays of NumPy: their types, element types by HLO's names, and arrays of numbers that people wrote."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import TYPE_CHECKING, Any, TypeAlias

from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.sharding import canonical_dtype
from shardviz.sharding.array import jax_name

if TYPE_CHECKING:
    from numpy.typing import NDArray
with LazyImports("ml_dtypes", "numpy"):
    import ml_dtypes
    import numpy as np

Ints: TypeAlias = "NDArray[np.int64]"
Small: TypeAlias = "NDArray[np.int32]"
Bools: TypeAlias = "NDArray[np.bool_]"
Reals: TypeAlias = "NDArray[np.floating[Any]]"
Values: TypeAlias = "NDArray[Any]"

_NO_NUMBERS = ("token", "opaque")
_TRUTH = {"true": 1, "false": 0}


def check_dtype(dtype: str) -> None:
    if canonical_dtype(dtype) in _NO_NUMBERS:
        raise QuestionError(f"{dtype} is not a dtype of numbers", "use for example f32, bf16 or s32")


def check_zero(dtype: str, whose: str) -> None:
    """Raise `QuestionError` for the dtype that has no 0, which `whose` result would have to hold."""
    if dtype == "f8e8m0fnu":
        raise QuestionError(f"f8e8m0fnu has no 0, which {whose} would hold", "use for example f8e4m3fn")


def is_integer(dtype: str) -> bool:
    return dtype[0] in "su"


def is_complex(dtype: str) -> bool:
    return dtype[0] == "c"


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """NumPy's dtype for HLO's name, or that of ml_dtypes. Raises `QuestionError`."""
    check_dtype(dtype)
    name = jax_name(canonical_dtype(dtype))
    return np.dtype(getattr(ml_dtypes, name, name.rstrip("_")))


def float_limits(kind: np.dtype[Any]) -> Any:
    """`numpy.finfo` for floats of any kind; for complex numbers that of their parts."""
    return ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]


def array_from_numbers(numbers: Sequence[str], dtype: str) -> Values:
    """The numbers, as `parse_numbers` has read them, in one dimension; floats are rounded to the dtype, as
    NumPy rounds. Raises `QuestionError` for one that the dtype cannot hold."""
    kind = numpy_dtype(dtype)
    exact = is_integer(dtype) or dtype == "pred"
    read = [_number(number, index, dtype, exact) for index, number in enumerate(numbers)]
    if exact:
        low, high = 0, 1
        if dtype != "pred":
            bits = int(dtype[1:])
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype[0] == "s" else (0, 2**bits - 1)
        for index, value in enumerate(read):
            if not low <= value <= high:
                raise _unfit(numbers[index], index, dtype, f"holds {low:,} to {high:,}")
        wide = np.array(read, dtype="uint64" if dtype == "u64" else "int64")
        return wide.astype(kind)
    if is_complex(dtype):
        wide = np.array(read, dtype="complex128")
        _check_floats(np.array([wide.real, wide.imag]), np.finfo(kind).dtype, numbers, dtype)
    else:
        wide = np.array(read, dtype="float64")
        _check_floats(wide[None], kind, numbers, dtype)
    with np.errstate(all="ignore"):
        return wide.astype(kind)


def _number(text: str, index: int, dtype: str, exact: bool) -> Any:
    value: Any = _TRUTH.get(text.lower())
    if value is None:
        value = (int if text.lstrip("+-").isdecimal() else complex if text[-1] in "jJ" else float)(text)
    if isinstance(value, complex) and not is_complex(dtype):
        raise _unfit(text, index, dtype, "has real numbers only", "use --dtype c64")
    if exact and isinstance(value, float):
        if not value.is_integer():
            raise _unfit(text, index, dtype, "has whole numbers only", "use --dtype f32")
        return int(value)
    try:
        # A text such as 1e999 reads as infinity without a word.
        infinite = not exact and (isinf(value.real) or isinf(value.imag))
        beyond = infinite and "inf" not in text.lower()
    except OverflowError:
        beyond = True
    if beyond:
        raise _unfit(text, index, dtype, "ends far below it")
    return value


def _check_floats(parts: Values, kind: np.dtype[Any], numbers: Sequence[str], dtype: str) -> None:
    """`parts`: f64 of shape (1 or 2, numbers). Raise for what changes its nature in the type."""
    with np.errstate(all="ignore"):
        there = parts.astype(kind).astype("float64")
    top = float(float_limits(kind).max)
    fits = np.where(
        np.isfinite(parts), np.isfinite(there) & (abs(parts) <= top), (there == parts) | np.isnan(parts)
    )
    fits &= np.isnan(there) == np.isnan(parts)
    wrong = np.flatnonzero(~fits.all(axis=0))
    if len(wrong):
        index = int(wrong[0])
        bad = parts[:, index][~fits[:, index]][0]
        if np.isnan(bad):
            why = "has no NaN"
        elif np.isinf(bad):
            why = "has no infinity"
        elif abs(bad) > top:
            why = f"ends at {top:g}"
        else:
            why = f"holds {float(float_limits(kind).tiny):g} to {top:g}"
        raise _unfit(numbers[index], index, dtype, why)


def _unfit(text: str, index: int, dtype: str, why: str, hint: str = "") -> QuestionError:
    return QuestionError(
        f"number {index + 1} of the data, {quote(text, 30)}, does not fit {dtype}, which {why}",
        hint or "change it, or use a wider --dtype",
    )


def plain_values(values: Values) -> list[Any]:
    """Nested lists of Python's own bool, int, float or complex, for every dtype."""
    if values.dtype.kind in "biufc":
        listed: list[Any] = values.tolist()
        return listed
    # ml_dtypes' types are none of NumPy's kinds; every one of them fits one of these exactly.
    wide: list[Any] = values.astype("int64" if "int" in values.dtype.name else "float64").tolist()
    return wide
