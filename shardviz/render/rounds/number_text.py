"""Numbers as they stand in cells: short, and alike for every dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardviz.collectives.values import plain_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


def number(value: bool | int | float | complex) -> str:
    """``3``, ``0.3333``, ``1.5e+10``, ``1+2j``, ``nan``: four digits of what is not whole."""
    if isinstance(value, complex):
        sign = "" if str(value.imag).startswith("-") else "+"
        return f"{number(value.real)}{sign}{number(value.imag)}j"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.4g}"
    return str(value)


def numbers(values: NDArray[Any]) -> list[str]:
    """Every element, in row-major order."""
    return [number(value) for value in plain_values(values.reshape(-1))]
