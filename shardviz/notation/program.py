"""Programs: statements that name arrays, each made of others.

::

    program   := statement ((';' | newline) statement)*
    statement := (array '=')? sum ('->' array)?  |  name '=' einsum
    sum       := product (('+' | '-') product)*
    product   := factor ('*' factor | '/' factor)*
    factor    := array | number | function '(' argument (',' argument)* ')' | '(' sum ')' | '-' factor
    argument  := sum | letter '=' letters
    array     := name | name '[' dimensions ']' as the scaling book writes it
    einsum    := operand (',' operand)* '->' (letters | array)
    operand   := letters | sum

``H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = (silu(H) * G) * W3[f,d]``, or ``h = bd,df->bf; …``. An array that
nothing has made is an argument and has its dimensions where it stands first. A product means what it means in
`book`, and in brackets what it would mean in a statement of its own. Any text of a problem may end with
``× 32``, which runs it 32 times, or with ``× 32 sharing M, P``: all runs then take the same M and P."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from shardviz.errors import NotationError, plural, quote
from shardviz.notation.book import ARROWS, TIMES, BookArray, book_array, summed_dims
from shardviz.notation.scanner import MAX_RANK, Scanner, Word

PROGRAM_HINT = "write statements as H = X[b, d] * W1[d, f]; Y = silu(H) * W2[f, d]"
_LAYERS = re.compile(r"(?:×\s*|\bx[ \t]+)(\d{1,9})(?:\s+sharing\s+([\w',\s]+?))?\s*\Z")
_COMMENT = re.compile(r"#[^\n]*")
_ASSIGNS = re.compile(r"(?:\A|;)\s*[A-Za-z][A-Za-z0-9_']*\s*=(?!=)")
_THREE_OPERANDS = re.compile(r"(?:\A|;)\s*(?:[A-Za-z]+\s*,\s*){2,}[A-Za-z]+\s*(?:,|->|→)")
"""An einsum of letters that has more than two operands: a chain's have two, and its results no names."""
_INSIDE = re.compile(r"(?<=\[)[^\]]*|\\?\{[^}]*\}|<sub>[^<]*</sub>|\\\w+|(?<=[*@·×⋅])_\w+")
_BEYOND_PRODUCT = re.compile(r"[;,\n+/()]|-(?!>)|(?<!\w)\d|[A-Za-z][\w']*+(?!\s*+(?:\[|\*\*))")
"""An operation that a product lacks, or a name without brackets, once what stands in brackets is gone."""
_OPEN_END = re.compile(r"(?:[-+*/@=,·×⋅(]|->|→|\\cdot)\s*\Z")
_OPEN_START = re.compile(r"\s*(?:[-+*/@,·×⋅)]|→|\\cdot)")


def is_program(text: str) -> bool:
    """Return whether a text is a program, rather than an einsum, a chain of them or one product."""
    plain = _COMMENT.sub("", text).strip().strip(";")
    if "#" in text:
        return True
    if "[" not in plain:
        return _ASSIGNS.search(plain) is not None or _THREE_OPERANDS.search(plain) is not None
    return _BEYOND_PRODUCT.search(_INSIDE.sub("", plain)) is not None


class Layers(NamedTuple):
    """A text without the ``× 32 sharing M, P`` at its end: its runs, and the arrays that all of them take."""

    text: str
    runs: int = 1
    shared: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The end, as it may be written."""
        sharing = f" sharing {', '.join(self.shared)}" * bool(self.shared)
        return f" × {self.runs}{sharing}" if self.runs > 1 else ""


def split_layers(text: str) -> Layers:
    """The text and the layers of a problem. Raises `NotationError` for 0 of them."""
    match = _LAYERS.search(text)
    if match is None:
        return Layers(text)
    if not int(match.group(1)):
        problem = "a program runs at least once, not 0 times,"
        raise NotationError(problem, text, match.start(1), match.end(1), PROGRAM_HINT)
    shared = dict.fromkeys(re.findall(r"[\w']+", match.group(2) or ""))
    return Layers(text[: match.start()].rstrip(" \t\r\n;"), int(match.group(1)), tuple(shared))


def joined_lines(text: str) -> str:
    """A program on one line, with ``;`` between its statements and without comments; any other text stays."""
    if "\n" not in text.strip() and "#" not in text:
        return text
    statements = (" ".join(statement.split()) for statement in on_one_line(text).split(";"))
    joined = "; ".join(filter(None, statements))
    return re.sub(r";( (?:×|x )\s*\d+(?: sharing [\w', ]+)?)$", r"\1", joined)


def on_one_line(text: str) -> str:
    """The text with ``;`` for line breaks that end a statement, and blanks for comments and other breaks;
    every character stays in its place."""
    text = _COMMENT.sub(lambda match: " " * len(match.group()), text)
    pieces, depth = [], 0
    lines = text.split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        depth += sum(line.count(bracket) for bracket in "([{") - sum(line.count(bracket) for bracket in ")]}")
        joins = depth > 0 or _OPEN_END.search(line) or _OPEN_START.match(after)
        pieces += [line, " " if joins else ";"]
    return "".join(pieces[:-1]).replace("\r", " ").replace("\t", " ")


Summed: TypeAlias = "tuple[str, ...] | None"
"""The dimensions that a product says it sums over, if it does."""
MAX_STATEMENTS = 1024
MAX_DEPTH = 64
"""Brackets within brackets, terms of a sum, factors of a product."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_']*")
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?")
_LETTERS = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True)
class Mention:
    """An array where it stands in an expression; `array` is None where it has no brackets."""

    name: str
    array: BookArray | None
    start: int
    stop: int


@dataclass(frozen=True)
class Literal:
    value: float
    start: int
    stop: int


@dataclass(frozen=True)
class FunctionCall:
    """A function of expressions. `sums` are, for each ``*`` of a product, the dimensions that it says it sums
    over (``*_D``), if it does; `merges` a dimension and those that it stands for, of ``reshape(P, q=nh)``."""

    function: str
    operands: tuple[Expression, ...]
    start: int
    stop: int
    sums: tuple[Summed, ...] = ()
    merges: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class EinsumCall:
    """Expressions, or letters that stand for arrays, and the letters of the result."""

    operands: tuple[Expression, ...]
    result: tuple[str, ...]
    start: int
    stop: int


Expression: TypeAlias = "Mention | Literal | FunctionCall | EinsumCall"


@dataclass(frozen=True)
class Assignment:
    """A statement as it is written; `target` is None where the result has no name."""

    target: Mention | None
    value: Expression
    text: str
    start: int
    stop: int


@dataclass(frozen=True)
class ProgramText:
    """The statements of a program, and the text in which their places are."""

    statements: tuple[Assignment, ...]
    text: str


def parse_program(text: str, axis_sizes: Mapping[str, int] | None = None) -> ProgramText:
    """Read the statements of a program. Raises `NotationError`."""
    written = on_one_line(text)
    scanner = _ProgramScanner(written, PROGRAM_HINT, axis_sizes)
    statements: list[Assignment] = []
    while not scanner.at_end:
        if scanner.take(";"):
            continue
        statements.append(scanner.statement())
        if not (scanner.at_end or scanner.peek(";")):
            scanner.fail_here("an operation, ';' or the end")
        scanner.at_most(MAX_STATEMENTS, statements, "statements", scanner.pos, "use a shorter program")
    if not statements:
        raise NotationError("there is no statement", text, 0, hint=PROGRAM_HINT)
    return ProgramText(tuple(statements), written)


def without_subscripts(text: str) -> str:
    """A program's text whose arrays have dimensions alone, but for those that constrain a result where it is
    used. Raises `NotationError`."""
    program = parse_program(split_layers(text).text)
    made: set[str] = set()
    pieces, done = [], 0
    for statement in program.statements:
        for mention in (*filter(None, [statement.target]), *mentions(statement.value)):
            array = mention.array
            if array is None or mention.name in made or not (array.spec.axes or array.spec.unreduced):
                continue
            pieces += [text[done : mention.start], f"{array.name}[{','.join(array.dims)}]"]
            done = mention.stop
        if statement.target is not None:
            made.add(statement.target.name)
    return "".join([*pieces, text[done:]])


def mentions(value: Expression) -> Iterator[Mention]:
    """Every array, and every word that may be one, of an expression, in order."""
    if isinstance(value, Mention):
        yield value
    elif not isinstance(value, Literal):
        for operand in value.operands:
            yield from mentions(operand)


class _ProgramScanner(Scanner):
    _depth = 0

    def statement(self) -> Assignment:
        start = self.skip()
        target = None
        if self._assigns():
            target = self._mention()
            self.expect("=")
        value = self._sum()
        operands = [value]
        while self.take(","):
            operands.append(self._sum())
            self.at_most(MAX_RANK, operands, "operands", self.pos)
        if self.take(*ARROWS):
            self.skip()
            result: tuple[str, ...] | None = None
            if not self._bracket_follows():
                letters = self.match(_LETTERS)
                result = tuple(letters.text) if letters else ()
            elif target is not None:
                self.fail_here("the end: the result has a name already", "write = or ->, not both")
            else:
                target = self._mention()
                result = target.array.dims if len(operands) > 1 and target.array is not None else None
            if result is not None:
                value, operands = EinsumCall(tuple(operands), result, operands[0].start, self.pos), []
        if len(operands) > 1:
            self.fail_here("'->' and the letters of the result", "an einsum is written h = bd,df->bf")
        text = self.text[start : self.pos].strip()
        return Assignment(target, value, text, start, start + len(text))

    def _assigns(self) -> bool:
        """A name, perhaps with brackets, and ``=`` stand next."""
        begin = self.pos
        name = self.match(_NAME)
        if name is not None and self.peek("["):
            end = self.text.find("]", self.pos)
            self.pos = len(self.text) if end < 0 else end + 1
            if self.take("{"):
                end = self.text.find("}", self.pos)
                self.pos = len(self.text) if end < 0 else end + 1
        is_assignment = name is not None and self.peek("=")
        self.pos = begin
        return is_assignment

    def _bracket_follows(self) -> bool:
        match = _NAME.match(self.text, self.pos)
        return self.text.startswith("[", self.pos if match is None else match.end())

    def _sum(self) -> Expression:
        start = self.skip()
        left, terms = self._product(), 1
        while not self.peek("->") and (sign := self.take("+", "-")):
            right = self._product()
            terms += 1
            if terms > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} terms", self.pos, hint="make several statements of them")
            left = FunctionCall("add" if sign == "+" else "subtract", (left, right), start, self.pos)
        return left

    def _product(self) -> Expression:
        """Factors in a row are one call; those in brackets are multiplied before it."""
        start = self.skip()
        factors: list[Expression] = [self._factor()]
        sums: list[Summed] = []
        for count in itertools.count(2):
            sign = self.take("/", *TIMES)
            if not sign:
                break
            if count > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} factors", self.pos, hint="make several statements of them")
            if sign == "/":
                divided = _call_of(factors, sums, start, self.pos)
                factors = [FunctionCall("divide", (divided, self._factor()), start, self.pos)]
                sums = []
                continue
            words = summed_dims(self)
            sums.append(None if words is None else tuple(word.text for word in words))
            factors.append(self._factor())
        return _call_of(factors, sums, start, self.pos)

    def _factor(self) -> Expression:
        start = self.skip()
        if self.take("("):
            nested = self._nested()
            self.expect(")")
            return nested
        if not self.peek("->") and self.take("-"):
            if self.peek("-"):
                self.fail_here("an array, a function or a number")
            value = self._factor()
            if isinstance(value, Literal):
                return Literal(-value.value, start, value.stop)
            return FunctionCall("negative", (value,), start, self.pos)
        if number := self.match(_NUMBER):
            literal = Literal(float(number.text), number.start, number.stop)
            if math.isinf(literal.value):
                self.fail("a number is too large", number.start, number.stop, "write it below 1e308")
            return literal
        name = _NAME.match(self.text, self.pos)
        if name is not None and self.text.startswith("(", name.end()):
            return self._call()
        return self._mention()

    def _nested(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail(f"more than {plural(MAX_DEPTH, 'bracket')} within each other", self.pos)
        expression = self._sum()
        self._depth -= 1
        return expression

    def _call(self) -> FunctionCall:
        function = self.name("a function")
        self.expect("(")
        operands: list[Expression] = []
        merges: list[tuple[str, tuple[str, ...]]] = []
        for _ in self.items(")", last_comma=False):
            self.skip()
            if self._assigns():
                merges.append(self._merge())
            else:
                operands.append(self._nested())
        return FunctionCall(function.text, tuple(operands), function.start, self.pos, merges=tuple(merges))

    def _merge(self) -> tuple[str, tuple[str, ...]]:
        """``q=nh``, or ``q = heads * head_dim`` where a dimension is a word."""
        whole = self.name("a dimension")
        self.expect("=")
        words: list[Word] = [self.name("the dimensions that it stands for")]
        while self.take(*TIMES):
            words.append(self.name("a dimension"))
        dims = tuple(word.text for word in words)
        if len(dims) == 1:
            dims = tuple(dims[0])
        if len(set(dims)) < max(2, len(dims)):
            hint = f"write {whole.text}=nh for n times h, or {whole.text} = heads * size"
            problem = f"{quote(whole.text, 30)} must stand for two dimensions or more, each once,"
            self.fail(problem, whole.start, self.pos, hint)
        return whole.text, dims

    def _mention(self) -> Mention:
        start = self.skip()
        if self._bracket_follows() or self.peek("\\math") or self.peek("\\text"):
            array = book_array(self)
            if not array.name:
                self.fail("an array without a name begins", start, hint="write it as X[b, d]")
            return Mention(array.name, array, start, len(self.text[: self.pos].rstrip()))
        name = self.match(_NAME) or self.fail_here("an array, a function or a number")
        return Mention(name.text, None, name.start, name.stop)


def _call_of(factors: list[Expression], sums: list[Summed], start: int, stop: int) -> Expression:
    if len(factors) == 1:
        return factors[0]
    return FunctionCall("multiply", tuple(factors), start, stop, tuple(sums))
