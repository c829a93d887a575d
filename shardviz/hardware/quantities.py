"""Numbers with units as hardware has them: ``45GB/s``, ``1us``, ``197TFLOP/s``, ``16GiB``, ``1.5GHz``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from shardviz.errors import NotationError, quote
from shardviz.strict_table import StrictTable

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf\b|nan\b)")
_MAX_LENGTH = 60
_DIGITS = 6
"""Digits of a figure that is written: more than anybody measures."""


@dataclass(frozen=True)
class Quantity:
    """A kind of number: its name, its units with their factors, and the hint that shows how to write one.

    In a machine's file it is from `least` to `most`, in words `bounds`: a plain number that was meant in
    another unit is outside. It is written in `unit`."""

    name: str
    units: Mapping[str, float]
    hint: str
    least: float = 0.0
    most: float = math.inf
    bounds: str = ""
    unit: str = ""
    may_be_unlimited: bool = False

    def parse(self, text: str) -> float:
        """The number, in the unit whose factor is 1; only 0, ``inf`` and ``nan`` need none. Raises
        `NotationError`."""
        start = len(text) - len(text.lstrip())
        body = text.strip()
        end = start + len(body)
        number = _NUMBER.match(body)
        if number is None or len(body) > _MAX_LENGTH:
            problem = f"{quote(body, 30)} is not a {self.name}" if body else f"there is no {self.name}"
            raise NotationError(problem, text, start, max(end, start + 1), self.hint)
        unit = body[number.end() :].strip()
        if unit and unit not in self.units:
            problem = f"{quote(unit, 20)} is not a unit of {self.name}"
            raise NotationError(problem, text, end - len(unit), end, self.hint)
        value = float(number.group())
        if not unit and value and math.isfinite(value):
            raise NotationError(f"{quote(body, 30)} has no unit of {self.name}", text, start, end, self.hint)
        return value * (self.units[unit] if unit else 1.0)

    def toml(self, value: float) -> str:
        return '"inf"' if value == math.inf else f'"{value / self.units[self.unit]:.{_DIGITS}g}{self.unit}"'


_DECIMAL = {letter: 1000.0**power for power, letter in enumerate("kMGTP", 1)}
_BYTES = {
    "B": 1.0,
    **{f"{letter}B": factor for letter, factor in _DECIMAL.items()},
    "KB": 1e3,
    **{f"{letter}iB": 1024.0**power for power, letter in enumerate("KMGTP", 1)},
    "kiB": 1024.0,
}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_RATES = {f"{unit}{per}": factor for unit, factor in _BYTES.items() for per in ("/s", "ps")}
_WORK = {
    f"{letter}{unit}": factor
    for letter, factor in {"": 1.0, **_DECIMAL}.items()
    for unit in ("FLOP/s", "FLOPS", "FLOPs/s", "OP/s", "OPS", "OPs/s")
}
_CLOCKS = {"Hz": 1.0, "MHz": 1e6, "GHz": 1e9}
_RATE = "write a number with B/s, kB/s, MB/s, GB/s, TB/s or KiB/s, MiB/s, GiB/s, as in 45GB/s, or inf"

# fmt: off
LATENCY = Quantity("latency", _TIMES, "write a number with s, ms, us or ns, as in 1us; 0 needs none",
                   0.0, 1.0, "0 to 1 s", "us")
TIME = Quantity("time", _TIMES, "write a number with s, ms, us or ns, as in 1.5ms")
MEASURED_TIME = Quantity("time", _TIMES, "write a number with s, ms, us or ns, as in 33us",
                         1e-9, 1e4, "1 ns to 10,000 s", "us")
BANDWIDTH = Quantity("bandwidth", _RATES, _RATE, 1e6, 1e16, "1 MB/s to 10 PB/s, or inf", "GB/s", True)
MEASURED = Quantity("measured bandwidth", _RATES, _RATE,
                    1e3, 1e16, "1 kB/s to 10 PB/s, or inf", "GB/s", True)
SPREAD = Quantity("error of a bandwidth", _RATES, "write a number with MB/s or GB/s, as in 0.2GB/s",
                  0.0, 1e16, "0 to 10 PB/s", "GB/s")
SIZE = Quantity("size", _BYTES, "write a number with MB, GB or MiB, GiB, as in 16GiB",
                2.0**20, 2.0**50, "1 MiB to 1 PiB")
PAYLOAD = Quantity("data size", _BYTES, "write a number with B, KiB, MiB or GiB, as in 4KiB",
                   0.0, 2.0**50, "0 to 1 PiB")
PEAK = Quantity("peak", _WORK, "write a number with TFLOP/s or TOP/s, as in 197TFLOP/s",
                1e9, 1e19, "1 GFLOP/s to 10,000 PFLOP/s", "GFLOP/s")
CLOCK = Quantity("clock", _CLOCKS, "write a number with MHz or GHz, as in 1.5GHz",
                 1e6, 1e12, "1 MHz to 1,000 GHz", "MHz")
# fmt: on


def quoted(text: str) -> str:
    """A text as a value of TOML, whose basic strings have the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False)


def figure(table: StrictTable, key: str, quantity: Quantity, default: float | None = None) -> float:
    """A number with a unit, or a plain one in the unit without a prefix; `default` where there is none.
    Raises what the table makes, for another type and for a figure that no hardware has."""
    if default is not None and key not in table:
        return default
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
    # A number with so many digits that it overflows does not mean "unlimited".
    is_unlimited = quantity.may_be_unlimited and number == math.inf and not re.search("[0-9]", str(value))
    if not (quantity.least <= number <= quantity.most or is_unlimited):
        shown = quote(str(value), 30)[1:-1]
        table.fail(key, f"{shown} is outside the range {quantity.bounds}", quantity.hint)
    return number


def count(table: StrictTable, key: str, before: int, most: int) -> int:
    """A whole number from 1 to `most`; `before` where the table has none."""
    if key not in table:
        return before
    number = table.typed(key, int)
    if not 1 <= number <= most:
        shown = quote(str(number), 30)[1:-1]
        table.fail(key, f"{shown} is outside the range 1 to {most:,}", "write a whole number")
    return number
