"""The arrays of a text that shards one, or several: a product, or the specs of an einsum."""

from __future__ import annotations

from dataclasses import replace

from shardviz.notation.notations import Notation, detect
from shardviz.notation.product import parse_product
from shardviz.notation.reading import Context, Reading
from shardviz.notation.spec_string import parse_specs


def read_arrays(text: str, context: Context, notation: Notation | None = None) -> tuple[Reading, ...]:
    """Every array that `text` says the sharding of, in its order, the result last.

    Spec strings (``XY,Y_->X_``) and products (``A[B_X, D] * W[D, F] -> Out[B_X, F]``) have several; the
    others have one. An array left open with ``?`` is not among them. Raises `ShardvizError` as the
    notation's reader does.
    """
    notation = notation or detect(text)
    if notation.key == "shardviz" and any(mark in text for mark in (",", ";", "->")):
        return _of_specs(text, context)
    if notation.key == "book" and any(mark in text for mark in ("*", "·", "->", "@")):
        product = parse_product(text, context.axis_names)
        arrays = [*product.operands, *([product.result] if product.result else [])]
        return tuple(Reading(array.spec, dims=array.dims, name=array.name) for array in arrays)
    return (notation.read(text, context),)


def _of_specs(text: str, context: Context) -> tuple[Reading, ...]:
    readings: list[Reading] = []
    for part in parse_specs(text, context.axis_names):
        names = iter("AWVUTS")
        specs = [(next(names, "A"), spec) for spec in part.operands] + [("Out", part.result)]
        readings.extend(Reading(spec, name=name) for name, spec in specs if spec is not None)
    if len({reading.name for reading in readings}) < len(readings):
        return tuple(
            replace(reading, name=f"{reading.name}{number}") for number, reading in enumerate(readings, 1)
        )
    return tuple(readings)
