"""Numbers with their units, as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence

BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
SCALES = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def exact_bytes(count: int) -> str:
    return f"{count:,} byte{'' if count == 1 else 's'}"


def human_bytes(count: int, digits: int = 3) -> str:
    """``64 KiB``, ``1.5 MiB``, ``0 B``: three digits are enough to compare."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in BINARY:
        value /= 1024
        if value < 1023.5 or unit == BINARY[-1]:
            break
    return f"{value:,.0f} {unit}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g} {unit}"


def bytes_of(count: int, limit: int) -> str:
    """``17 GiB of 15.8 GiB``; ``15.78 GiB of 15.75 GiB``, with as many digits as tell them apart."""
    digits = 3
    while digits < 17 and human_bytes(count, digits) == human_bytes(limit, digits) and count != limit:
        digits += 1
    return f"{human_bytes(count, digits)} of {human_bytes(limit, digits)}"


def whole_bytes(count: int) -> str:
    """``64 KiB``; ``1.33 MiB (1,398,104 bytes)`` where three digits are not all."""
    human = human_bytes(count)
    digits, unit = human.split()
    size = 1024 ** (BINARY.index(unit) + 1) if unit in BINARY else 1
    return human if float(digits.replace(",", "")) * size == count else f"{human} ({exact_bytes(count)})"


def seconds(duration: float, digits: int = 3) -> str:
    """``39.8 ms``, ``1.7 ms``, ``250 ns``, ``1.24 s``: so many digits, without zeros at the end. A whole
    number of seconds has one, ``3.0 s``, as where seconds are counted while something runs."""
    if not duration:
        return "0 s"
    least = 1 - 0.5 * 10.0**-digits
    unit, size = next((scale for scale in SCALES if duration >= scale[1] * least), SCALES[-1])
    value = duration / size
    text = f"{value:,.{digits}g}" if value < 10**digits - 0.5 else f"{value:,.0f}"
    return f"{text}{'.0' if unit == 's' and text.isdecimal() and len(text) < digits else ''} {unit}"


def rate(bandwidth: float) -> str:
    """Bytes per second as ``45 GB/s``, in powers of ten, as makers of links give them."""
    return "unlimited bytes/s" if bandwidth == math.inf else _decimal(bandwidth, "B/s", 4)


def measured_rate(bandwidth: float) -> str:
    """Bytes per second as ``44.7 GB/s``: what is measured has three digits and no more."""
    return _decimal(bandwidth, "B/s", 3)


def flops(count: float, per_second: bool = False) -> str:
    """``4.29 GFLOP``; of a peak ``197 TFLOP/s``."""
    return _decimal(count, "FLOP/s" if per_second else "FLOP", 3)


def _decimal(value: float, unit: str, digits: int) -> str:
    """The value with so many digits and a prefix of the SI before its unit."""
    for power, letter in zip(range(18, 0, -3), "EPTGMk", strict=True):
        if value >= 10**power * (1 - 0.5 * 10.0**-digits):
            return f"{value / 10**power:.{digits}g} {letter}{unit}"
    return f"{value:.{digits}g} {unit}"


def percent(share: float) -> str:
    """``61 %``; small ones with a digit more, ``0.4 %``."""
    return f"{share * 100:.1f} %" if 0 < share < 0.095 else f"{share * 100:.0f} %"


def times(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def shaped(dtype: str, shape: Sequence[int]) -> str:
    """A type as XLA writes it: ``s32[4,2]``."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def may_fit_words(needed: int, most: int, limit: int | None) -> str:
    """``fits only if the compiler allocates at most 7 % more, of up to 38 %``; "" where `needed` bytes do not
    fit, and where all of the `most` that a compiler may allocate for them do."""
    if limit is None or not needed <= limit < most:
        return ""
    room, seen = limit / needed - 1, most / needed - 1
    return f"fits only if the compiler allocates at most {100 * room:.0f} % more, of up to {100 * seen:.0f} %"
