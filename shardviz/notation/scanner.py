"""A cursor over text that a notation reads: words with their places, and errors that show the place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import NamedTuple, NoReturn, TypeVar

from shardviz.errors import NotationError, quote
from shardviz.sharding import PartitionSpec
from shardviz.sharding.axis_parts import are_apart, axis_part, joined_parts, whole_axis
from shardviz.sharding.mesh import axes_like, is_axis_name

MAX_RANK = 64
"""Dimensions of one array, as NumPy limits them; also the most axes of a mesh."""

MAX_TEXT = 2**17
"""Characters of a text, as many as Linux passes to a program in one argument: longer ones take too long."""

MAX_DIGITS = 18
"""Longer integers do not fit into 64 bits."""

T = TypeVar("T")
_SPACE = re.compile(r"[ \t\r\n]*")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PART = re.compile(r"\s*+:\s*+\(\s*+([0-9]{1,18}+)\s*+\)\s*+([0-9]{1,18}+)(?![0-9])")
_DIGITS = re.compile(r"[0-9]+")
_QUOTES = ("'‘’", '"“”')
_QUOTE = re.compile(f"[{''.join(_QUOTES)}]")
_TOKEN = re.compile(r"\w+|.", re.DOTALL)


class Word(NamedTuple):
    text: str
    start: int
    stop: int


class Scanner:
    """Reads `text` from left to right; `pos` is the next character. Methods that look for something skip
    spaces before it. Every failure is a `NotationError` at a place; so is a text that is too long. `hint` is
    that of failures that have no other, `axis_sizes` are those of the mesh, where it is known."""

    def __init__(self, text: str, hint: str = "", axis_sizes: Mapping[str, int] | None = None) -> None:
        self.text, self.hint, self.axis_sizes = text, hint, axis_sizes
        self.pos = 0
        if len(text) > MAX_TEXT:
            hint = f"write at most {MAX_TEXT:,} characters"
            self.fail(f"{len(text):,} characters are too many, the first too many", MAX_TEXT, hint=hint)

    def fail(self, problem: str, at: int | Word, stop: int | None = None, hint: str = "") -> NoReturn:
        """Fail at a word, or at the characters from `at` to `stop`."""
        start, stop = (at.start, at.stop) if isinstance(at, Word) else (at, stop)
        raise NotationError(problem, self.text, start, stop, hint or self.hint)

    def at_most(self, most: int, sized: Sized, what: str, at: int | Word, hint: str = "") -> None:
        """Fail where so many things were found that nobody means them."""
        if len(sized) > most:
            self.fail(f"more than {most} {what}", at, hint=hint or f"use fewer {what}")

    def fail_here(self, expected: str, hint: str = "") -> NoReturn:
        """Fail at the next word: ``expected ')' but found 'x'``."""
        token = _TOKEN.match(self.text, self.skip())
        if token is None:
            self.fail(f"expected {expected}", len(self.text), hint=hint)
        word = quote(token.group(), 20)
        self.fail(f"expected {expected} but found {word}", token.start(), token.end(), hint)

    def skip(self) -> int:
        """Pass spaces; return the place behind them."""
        match = _SPACE.match(self.text, self.pos)
        self.pos = match.end() if match else self.pos
        return self.pos

    @property
    def at_end(self) -> bool:
        return self.skip() >= len(self.text)

    def peek(self, piece: str) -> bool:
        return self.text.startswith(piece, self.skip())

    def take(self, *pieces: str) -> str:
        """Pass the first of `pieces` that stands next and return it, or "" when none does."""
        self.skip()
        for piece in pieces:
            if self.text.startswith(piece, self.pos):
                self.pos += len(piece)
                return piece
        return ""

    def expect(self, *pieces: str, hint: str = "") -> None:
        for piece in pieces:
            if not self.take(piece):
                self.fail_here(quote(piece), hint)

    def expect_end(self, hint: str = "") -> None:
        if not self.at_end:
            self.fail_here("the end", hint)

    def separate(self, next_item: str) -> None:
        """Pass what stands between two items of a list: a comma, spaces or both, or the end."""
        self.skip()
        apart = self.text[self.pos - 1 : self.pos].isspace()
        if self.take(","):
            if self.at_end:
                self.fail_here(next_item)
        elif not (apart or self.at_end):
            self.fail_here("',' or a space")

    def apart(self, next_item: str, closing: str = "") -> Iterator[None]:
        """Take a turn for each item, apart by commas, spaces or both, up to the closing bracket or the
        end."""
        while not self.at_end and not (closing and self.peek(closing)):
            yield
            if not (closing and self.peek(closing)):
                self.separate(next_item)
        if closing:
            self.expect(closing)
            self.expect_end()

    def items(self, closing: str, last_comma: bool = True) -> Iterator[None]:
        """Take a turn for each item of a list, pass the commas and the closing bracket; where `last_comma`,
        one may stand behind the last item, too."""
        if self.take(closing):
            return
        while True:
            yield
            if self.take(closing):
                return
            if not self.take(","):
                self.fail_here(f"',' or {quote(closing)}")
            if last_comma and self.take(closing):
                return

    def match(self, pattern: re.Pattern[str]) -> Word | None:
        """Pass a match of `pattern` that begins right here, without skipping spaces."""
        match = pattern.match(self.text, self.pos)
        if match is None or match.end() == match.start():
            return None
        self.pos = match.end()
        return Word(match.group(), match.start(), match.end())

    def next(self, pattern: re.Pattern[str]) -> Word | None:
        """Pass spaces and a match of `pattern` behind them."""
        self.skip()
        return self.match(pattern)

    def name(self, what: str = "a name") -> Word:
        return self.next(_NAME) or self.fail_here(what)

    def axis(self, what: str = "a mesh axis") -> Word:
        return self.part_of(self.name(what))

    def part_of(self, axis: Word) -> Word:
        """The part of the axis that stands next, ``:(1)2``; the axis itself where none does."""
        match = _PART.match(self.text, self.pos)
        if match is None:
            return axis
        self.pos = match.end()
        return Word(f"{axis.text}:({int(match[1])}){int(match[2])}", axis.start, match.end())

    def braces(self, axis: Callable[[Scanner], T]) -> tuple[list[T], bool]:
        """``{"X", "Y", ?}``: each `axis` as it is read, and whether ``?`` stands behind them."""
        self.expect("{")
        axes: list[T] = []
        for _ in self.items("}"):
            if self.take("?"):
                self.expect("}")
                return axes, True
            axes.append(axis(self))
            self.at_most(MAX_RANK, axes, "axes", self.pos)
        return axes, False

    def string(self, what: str) -> Word:
        """The contents of a string in single or double quotes, straight or curly, without escapes."""
        start = self.skip()
        opening = self.match(_QUOTE) or self.fail_here(what)
        alike = next(quotes for quotes in _QUOTES if opening.text in quotes)
        closing = re.compile(f"[{alike}]").search(self.text, self.pos)
        if closing is None:
            self.fail(f"the string that begins with {opening.text} does not end,", start)
        word = Word(self.text[self.pos : closing.start()], self.pos, closing.start())
        self.pos = closing.end()
        return word

    def integer(self, what: str = "a number", hint: str = "") -> int:
        return self.to_int(self.whole(what, hint))

    def whole(self, what: str, hint: str = "") -> Word:
        """The digits of a non-negative integer, where its place is wanted."""
        return self.next(_DIGITS) or self.fail_here(what, hint)

    def to_int(self, word: Word) -> int:
        if len(word.text) > MAX_DIGITS:
            problem = f"the number {quote(word.text, 20)} of {len(word.text)} digits is too large"
            self.fail(problem, word, hint=f"use numbers of at most {MAX_DIGITS} digits")
        return int(word.text)

    def spec(self, dims: Sequence[Sequence[Word]], unreduced: Sequence[Word] = ()) -> PartitionSpec:
        """The spec made of axes and parts of axes, each known to the mesh and used once."""
        if len(dims) > MAX_RANK:
            problem = f"a spec of {len(dims)} dimensions is too long"
            self.fail(problem, 0, len(self.text), f"use up to {MAX_RANK}")
        used: dict[str, list[str]] = {}
        words = [*(axis for dim in dims for axis in dim), *unreduced]
        for word in words[: MAX_RANK + 1]:
            self._check_axis(word)
            others = used.setdefault(whole_axis(word.text), [])
            if not all(are_apart(word.text, other) for other in others):
                problem = f"mesh axis {quote(whole_axis(word.text), 20)} is used twice in one array, again"
                self.fail(problem, word, hint="an axis can shard only one dimension of an array")
            others.append(word.text)
        if words[MAX_RANK:]:
            self.at_most(MAX_RANK, words, "mesh axes in one array", words[MAX_RANK], "use fewer axes")
        sizes = self.axis_sizes or {}
        pending = sorted((axis.text for axis in unreduced), key=lambda name: axis_part(name) or (name, 0, 0))
        return PartitionSpec(
            tuple(joined_parts((axis.text for axis in dim), sizes) for dim in dims),
            joined_parts(pending, sizes),
        )

    def on_devices(self, spec: PartitionSpec, devices: Sequence[int], start: int) -> PartitionSpec:
        """The spec of an array that is on these devices, by their ids: one, or all in another order. What
        names them begins at `start`."""
        sizes = self.axis_sizes
        known = range(max(devices, default=0) + 1 if sizes is None else math.prod(sizes.values()))
        for device in devices:
            if device not in known:
                hint = f"its devices are 0 to {known[-1]}"
                self.fail(f"the mesh has no device {device}", start, self.pos, hint)
        if len(devices) != 1 and sorted(devices) != [*known]:
            problem = f"these are not the {len(known):,} devices of the mesh, each once"
            self.fail(problem, start, self.pos, "name one device, or all of them in another order")
        if len(devices) == 1 and (spec.axes or spec.unreduced or spec.open_dims):
            problem = f"an array that device {devices[0]} holds alone is split"
            self.fail(problem, start, self.pos, f"leave its dimensions whole: {'_' * spec.rank}@{devices[0]}")
        return replace(spec, devices=tuple(devices))

    def _check_axis(self, word: Word) -> None:
        name, colon, _ = word.text.partition(":")
        self.check_known(word)
        if not is_axis_name(name):
            hint = "use letters, digits and _, starting with a letter"
            self.fail(f"{quote(word.text, 20)} is not an axis name", word, hint=hint)
        if not colon:
            return
        part = axis_part(word.text)
        if part is None or part.size < 2:
            hint = "write the product of the sizes before it, then its own size, 2 or more: X:(1)2"
            self.fail(f"no axis has the part {quote(word.text, 30)}", word, hint=hint)
        if self.axis_sizes is not None and (whole := self.axis_sizes[name]) % (part.before * part.size):
            hint = f"{part.before} × {part.size} must divide {whole}"
            self.fail(f"mesh axis {name}={whole} has no part {part}", word, hint=hint)

    def check_known(self, word: Word, axes: Iterable[str] | None = None, advice: str = "") -> None:
        """Fail for an axis, or a part of one, that the mesh does not have, or a name not in `axes`."""
        known = self.axis_sizes if axes is None else axes
        name = word.text.partition(":")[0] if axes is None else word.text
        if known is not None and name not in known:
            hint = f"{axes_like(name, tuple(known))}{advice}"
            self.fail(f"unknown mesh axis {quote(name, 30)}", word, hint=hint)
