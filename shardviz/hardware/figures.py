"""Figures of a machine's file: numbers with units, within what hardware has."""

from __future__ import annotations

import math
import re

from shardviz.errors import NotationError, quote
from shardviz.hardware.quantities import (
    BANDWIDTH,
    CLOCK,
    LATENCY,
    MEASURED,
    PAYLOAD,
    PEAK,
    SIZE,
    SPREAD,
    Quantity,
)
from shardviz.strict_table import StrictTable

BOUNDS = {
    SIZE.name: (2.0**20, 2.0**50, "1 MiB to 1 PiB"),
    BANDWIDTH.name: (1e6, 1e16, "1 MB/s to 10 PB/s, or inf"),
    MEASURED.name: (1e3, 1e16, "1 kB/s to 10 PB/s, or inf"),
    LATENCY.name: (0.0, 1.0, "0 to 1 s"),
    PEAK.name: (1e9, 1e19, "1 GFLOP/s to 10,000 PFLOP/s"),
    PAYLOAD.name: (0.0, 2.0**50, "0 to 1 PiB"),
    SPREAD.name: (0.0, 1e16, "0 to 10 PB/s"),
    CLOCK.name: (1e6, 1e12, "1 MHz to 1,000 GHz"),
}
"""The least and the most of each quantity: a plain number that was meant in another unit is outside."""


def figure(table: StrictTable, key: str, quantity: Quantity) -> float:
    """A number with a unit, or a plain one in the unit without a prefix.

    Raises what the table makes, for another type and for a figure that no hardware has.
    """
    value = table.values.get(key)
    if type(value) in (int, float):
        assert isinstance(value, int | float)
        # A whole number may be too long for a float.
        number = float(min(value, 10**300)) if type(value) is int else value
    else:
        text = table.typed(key, str, quantity.hint)
        try:
            number = quantity.parse(text)
        except NotationError as error:
            table.fail(key, error.message, error.hint)
    least, most, bounds = BOUNDS[quantity.name]
    # A number with so many digits that it overflows does not mean "unlimited".
    is_unlimited = (
        quantity in (BANDWIDTH, MEASURED) and number == math.inf and not re.search("[0-9]", str(value))
    )
    if not (least <= number <= most or is_unlimited):
        table.fail(key, f"{quote(str(value), 30)[1:-1]} is outside the range {bounds}", quantity.hint)
    return number
