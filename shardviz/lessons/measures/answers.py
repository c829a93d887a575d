"""Computed answers and their kinds: numbers, bytes, shapes, …: the value of a text, the text of a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shardviz.errors import QuestionError, quote
from shardviz.notation.numbers import parse_numbers, parse_shape
from shardviz.strict_table import closest
from shardviz.units import flops as human_flops, seconds as human_seconds


@dataclass(frozen=True)
class AnswerKind:
    """`read` makes of any text a value that is equal for equal answers, and raises `QuestionError` for text
    that is not an answer of this kind; `write` shows such a value."""

    read: Callable[[str], Any]
    write: Callable[[Any], str]

    def answer(self, value: object) -> ComputedAnswer:
        return ComputedAnswer(self.read, self.write, self.write(value))

    def shown(self, text: str) -> str:
        """Any answer in the form of the right one, so that its form gives nothing away."""
        return self.write(self.read(text))


@dataclass(frozen=True)
class ComputedAnswer(AnswerKind):
    """The right answer of a kind: `text` as it is shown among the choices."""

    text: str

    def is_same(self, text: str) -> bool:
        """Return whether a text says the same. Raises `QuestionError` as `read` does."""
        return bool(self.read(text) == self.read(self.text))


_UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
_UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgtpe", 1)}
_UNITS |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgtpe", 1)}
_BYTES = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*([a-zA-Z]*)", re.ASCII)
_SCALES = {"s": Fraction(1), "ms": Fraction(1, 10**3), "µs": Fraction(1, 10**6), "us": Fraction(1, 10**6)}
_SCALES["ns"] = Fraction(1, 10**9)
_FLOPS = {f"{letter}FLOP": Fraction(1000) ** power for power, letter in enumerate(("", *"kMGTPE"))}
_POWERS = {"million": Fraction(10**6), "billion": Fraction(10**9)}
_QUANTITY = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*([a-zA-Zµ]*)", re.ASCII)
_FIGURE = re.compile(
    rf"(?<![\w.,])\d[\d,]*(?:\.\d+)?\s(?:{'|'.join(_SCALES)}|[KMGTPEk]i?B|B|bytes?)(?![\w/])", re.ASCII
)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%", re.ASCII)
_WHOLE = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,30}", re.ASCII)
_POWER = re.compile(r"\b(\d{1,4})\s*\^\s*(\d{1,2})\b", re.ASCII)
NOTHING, NOBODY = "nothing", "nobody"


def check(word: str, known: Collection[str], problem: str) -> None:
    """Raise `QuestionError` for a word that is none of those known; the problem has its place: ``no {}``."""
    if word not in known:
        raise QuestionError(problem.format(quote(word, 30)), closest(word, tuple(known)))


def numeral(text: str) -> str:
    """A typed number with its powers computed: ``2^10 B`` → ``1024 B``, and ``.5 ms`` → ``0.5 ms``."""
    text = _POWER.sub(lambda match: str(int(match[1]) ** int(match[2])), text.strip())
    return f"0{text}" if text.startswith(".") else text


def whole_number(text: str) -> int:
    """``1,024`` → 1024."""
    if not _WHOLE.fullmatch(text.strip()):
        raise QuestionError(f"{quote(text, 30)} is not a whole number", "write for example 8")
    return int(text.replace(",", ""))


def byte_count(text: str) -> Fraction:
    """``2 KiB``, ``2048 B`` and ``2,048`` → 2048; a kB has 1000."""
    match = _BYTES.fullmatch(text.strip())
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or len(text) > 60:
        problem = f"{quote(text, 30)} is not a number of bytes"
        raise QuestionError(problem, "write for example 2 KiB or 2048 B")
    return Fraction(match[1].replace(",", "")) * unit


def bytes_text(count: Fraction | int) -> str:
    """``2 KiB``, ``1.5 MiB``: in the largest unit of which three decimals say it all, or ``1,001 B``."""
    for power, letter in zip(range(6, 0, -1), "EPTGMK", strict=True):
        value = Fraction(count) / 1024**power
        if value >= 1 and (value * 1000).denominator == 1:
            return f"{float(value):,.3f}".rstrip("0").rstrip(".") + f" {letter}iB"
    return f"{int(count):,} B" if Fraction(count).denominator == 1 else f"{float(count):,} B"


def _quantity(units: Mapping[str, Fraction], what: str, example: str) -> Callable[[str], Fraction]:
    """A reader of a number with one of some units, to three digits: what is shown alike is the same."""

    def read(text: str) -> Fraction:
        match = _QUANTITY.fullmatch(text.strip())
        if match is None or match[2] not in units or len(text) > 60:
            raise QuestionError(f"{quote(text, 30)} is not {what}", f"write for example {example}")
        return Fraction(f"{float(Fraction(match[1].replace(',', '')) * units[match[2]]):.2e}")

    return read


seconds = _quantity(_SCALES, "a time", "22 µs or 1.5 ms")
"""``22 µs``, ``1.5 ms`` → seconds."""


def figures(text: str) -> dict[str, Fraction]:
    """The times and bytes in a sentence, ``164 µs``, ``8 MiB``, with their seconds or bytes; no rates."""
    texts = [match[0] for match in _FIGURE.finditer(text)]
    return {piece: seconds(piece) if piece.split()[-1] in _SCALES else byte_count(piece) for piece in texts}


def percent(text: str) -> Fraction:
    """``61 %`` → 0.61."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise QuestionError(f"{quote(text, 30)} is not a percentage", "write for example 61 %")
    return Fraction(match[1]) / 100


def shape_text(sizes: tuple[int, ...]) -> str:
    return "×".join(map(str, sizes)) or "scalar"


def slices(text: str) -> tuple[tuple[int, int], ...]:
    """``4:8, 0:16`` → ((4, 8), (0, 16))."""
    if text.strip() == "()":
        return ()
    bounds = []
    for part in text.strip().strip("[]").split(","):
        start, colon, stop = part.partition(":")
        if not colon:
            raise QuestionError(f"{quote(text, 40)} is not a list of slices", "write for example 4:8, 0:16")
        bounds.append((whole_number(start), whole_number(stop)))
    return tuple(bounds)


def devices(text: str) -> tuple[int, ...]:
    """``1, 5`` → (1, 5), in the order of their numbers; ``nobody`` → ()."""
    if text.strip().lower() in (NOBODY, "none"):
        return ()
    return tuple(sorted({whole_number(part) for part in text.replace(" and ", ",").split(",")}))


def coordinates(text: str) -> tuple[tuple[str, int], ...]:
    """``X=1, Y=2``, in the order of the axes' names."""
    coords = {}
    for part in text.replace(",", " ").split():
        axis, equals, value = part.partition("=")
        if not equals or not axis or axis in coords:
            problem = f"{quote(text, 40)} is not a list of coordinates"
            raise QuestionError(problem, "write for example X=1, Y=2")
        coords[axis] = whole_number(value)
    return tuple(sorted(coords.items()))


def numbers(text: str) -> tuple[float, ...]:
    """``3, 9`` → (3, 9), in their order; ``nothing`` → ()."""
    if text.strip().lower() == NOTHING:
        return ()
    parsed = parse_numbers(text)
    if parsed.kind == "complex":
        raise QuestionError(f"{quote(text, 40)} is not a list of real numbers", "write for example 3, 9")
    truth = {"true": 1.0, "false": 0.0}
    return tuple(truth[text.lower()] if parsed.kind == "bool" else float(text) for text in parsed.texts)


def numbers_text(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in values) or NOTHING


Sent = tuple[str, str, tuple[str, ...]]
"""A collective of a plan: the operation, the array, the axes in the order of their names."""


def collectives(text: str) -> tuple[Sent, ...]:
    """``all_gather A X; psum C Y``, also with ``over`` before the axes and ``then`` between → in order."""
    if text.strip().lower() == NOTHING:
        return ()
    sent = []
    for part in re.split(r"\s*(?:;|,?\s\bthen\b)\s*", text.strip()):
        words = [word for word in part.replace(",", " ").split() if word != "over"]
        if len(words) < 3:
            problem = f"{quote(part, 40)} is not a collective of a plan"
            raise QuestionError(problem, "write all_gather A X; psum C Y, or nothing")
        sent.append((words[0], words[1], tuple(sorted(words[2:]))))
    return tuple(sent)


def collectives_text(sent: tuple[Sent, ...]) -> str:
    return ", then ".join(f"{op} {array} over {', '.join(axes)}" for op, array, axes in sent) or NOTHING


def one_of(choices: Sequence[str]) -> AnswerKind:

    def read(text: str) -> str:
        answer = text.strip().lower()
        check(answer, choices, "{} is not an answer")
        return answer

    return AnswerKind(read, str)


NUMBER = AnswerKind(whole_number, "{:,}".format)
BYTES = AnswerKind(byte_count, bytes_text)
SECONDS = AnswerKind(seconds, lambda taken: human_seconds(float(taken)) if taken else "0 s")
FLOPS = AnswerKind(
    _quantity(_FLOPS, "a number of FLOPs", "4.29 GFLOP"), lambda count: human_flops(float(count))
)
LARGE_NUMBER = AnswerKind(
    _quantity(_POWERS, "a number", "8.03 billion"),
    lambda count: human_flops(float(count)).replace("MFLOP", "million").replace("GFLOP", "billion"),
)
PERCENT = AnswerKind(percent, lambda share: f"{float(share):.0%}".replace("%", " %"))
SHAPE = AnswerKind(parse_shape, shape_text)
SLICES = AnswerKind(slices, lambda bounds: ", ".join(f"{start}:{stop}" for start, stop in bounds) or "()")
DEVICES = AnswerKind(devices, lambda ids: ", ".join(map(str, ids)) or NOBODY)
COORDINATES = AnswerKind(coordinates, lambda at: ", ".join(f"{axis}={index}" for axis, index in at))
NUMBERS = AnswerKind(numbers, numbers_text)
COLLECTIVES = AnswerKind(collectives, collectives_text)
NAMES = AnswerKind(
    lambda text: frozenset(text.replace(",", " and ").split(" and ")),
    lambda names: " and ".join(sorted(names)) or "nothing",
)
