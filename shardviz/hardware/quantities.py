"""Numbers with units as hardware has them: ``45GB/s``, ``1us``, ``197TFLOP/s``, ``16GiB``, ``1.5GHz``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from shardviz.errors import NotationError, quote

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf\b|nan\b)")
_MAX_LENGTH = 60


@dataclass(frozen=True)
class Quantity:
    """A kind of number: its name, its units with their factors, and the hint that shows how to write one."""

    name: str
    units: Mapping[str, float]
    hint: str

    def parse(self, text: str) -> float:
        """The number, in the unit whose factor is 1; only 0, ``inf`` and ``nan`` need none.

        Raises `NotationError`.
        """
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


_DECIMAL = {letter: 1000.0**power for power, letter in enumerate("kMGTP", 1)}
_BYTES = {
    "B": 1.0,
    **{f"{letter}B": factor for letter, factor in _DECIMAL.items()},
    "KB": 1e3,
    **{f"{letter}iB": 1024.0**power for power, letter in enumerate("KMGTP", 1)},
    "kiB": 1024.0,
}
_WORK = {
    f"{letter}{unit}": factor
    for letter, factor in {"": 1.0, **_DECIMAL}.items()
    for unit in ("FLOP/s", "FLOPS", "FLOPs/s", "OP/s", "OPS", "OPs/s")
}

LATENCY = Quantity(
    "latency",
    {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9},
    "write a number with s, ms, us or ns, as in 1us; 0 needs none",
)
TIME = Quantity("time", LATENCY.units, "write a number with s, ms, us or ns, as in 1.5ms")
BANDWIDTH = Quantity(
    "bandwidth",
    {f"{unit}{per}": factor for unit, factor in _BYTES.items() for per in ("/s", "ps")},
    "write a number with B/s, kB/s, MB/s, GB/s, TB/s or KiB/s, MiB/s, GiB/s, as in 45GB/s, or inf",
)
SIZE = Quantity("size", _BYTES, "write a number with MB, GB or MiB, GiB, as in 16GiB")
PAYLOAD = Quantity("data size", _BYTES, "write a number with B, KiB, MiB or GiB, as in 4KiB")
MEASURED = Quantity("measured bandwidth", BANDWIDTH.units, BANDWIDTH.hint)
SPREAD = Quantity("error of a bandwidth", BANDWIDTH.units, "write a number with MB/s or GB/s, as in 0.2GB/s")
PEAK = Quantity("peak", _WORK, "write a number with TFLOP/s or TOP/s, as in 197TFLOP/s")
CLOCK = Quantity("clock", {"Hz": 1.0, "MHz": 1e6, "GHz": 1e9}, "write a number with MHz or GHz, as in 1.5GHz")
