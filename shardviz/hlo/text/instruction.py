"""One line of HLO: ``ROOT %name = shape opcode(operands), key=value, ...``, each part read when asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from shardviz.hlo.replica_groups import GROUPS
from shardviz.hlo.text.opcodes import CALLING

HEAD: str = (
    r"[^\S\n]*+(ROOT\s++)?%?([^\s=,(){}]++) = "
    r"(\((?:[^()\n]++|\((?:[^()\n]++|\([^()\n]*+\))*+\))*+\)|[^\s(]\S*+)[^\S\n]*+([a-z][a-z0-9-]*+)\("
)
"""A line up to its operands: ROOT, name, shape, opcode."""
_HEAD = re.compile(HEAD)
_TUPLE = re.compile(r"[^\S\n]*+(ROOT\s++)?%?([^\s=,(){}]++) = (?=\()")
_OPCODE = re.compile(r"\s*([a-z][a-z0-9-]*)\(")
_PAREN = re.compile(r"[()]")
_CHANNEL = re.compile(r", channel_id=(\d++)(?=,|\Z)")
_ATTRIBUTE = re.compile(
    r"[ \t,](?:metadata=\s*+\{)?(replica_groups|source_target_pairs|dimensions|split_dimension"
    r"|concat_dimension|slice_sizes|is_host_transfer|channel_id|use_global_device_ids|op_name|source_file"
    rf"|source_line|stack_frame_id|{'|'.join(CALLING)})=\s*+"
    rf'({GROUPS}|"(?:[^"\\]|\\.)*+"?|\{{(?:[^{{}}]++|\{{[^{{}}]*+\}})*+\}}?|[^\s,{{}}()"]*+)'
    r'|"(?:[^"\\]|\\.)*+"?'
    r"|[ ]backend_config=.*+"
)
"""A key and its value; or a string, whose inside is none; or the rest of the line, which has no others."""
_REDUCTION = re.compile(r', to_apply=%[^,="]*+(?=,)')
"""The computation that adds, which XLA makes for each collective anew."""
_GROUPS = ("replica_groups", "source_target_pairs")
_ESCAPED = re.compile(r"\\(.)")
_BARE = {'"': '"', "{": "}"}
_MARKS = ('"', "{", "%")
_NAME = re.compile(r"%([^\s,(){}=%]+)")
OPERANDS: str = r"%([^\s,(){}=%]++(?:, (?:/\*index=\d++\*/)?+%[^\s,(){}=%]++)*+)(?=\))"
"""Operands that are names alone, as XLA prints them: of many, every fifth with its number."""
_OPERANDS = re.compile(OPERANDS)
_BETWEEN = re.compile(r", (?:/\*index=\d++\*/)?%")
_NAMES = re.compile(r"[^\s,{}()=%]+")
_NAME_WITHOUT_SIGN = re.compile(r"([A-Za-z_][^\s=,(){}\[\]]*)\s*(?=[,)]|$)")
_NUMBER = re.compile(r"\s*(\d{1,6})\s*\)")
_OP_NAME = 'op_name="'
_QUOTED = re.compile(r'(?:[^"\\\n]|\\.)*+')
_INDEX = re.compile(r" index=(\d{1,6})")


@dataclass(eq=False, slots=True)
class Computation:
    """A named computation; `start` and `stop` bound its instructions in the text. Instructions outside of any
    computation count as one without a name."""

    start: int
    stop: int
    name: str
    is_entry: bool


NOWHERE = Computation(0, 0, "", False)
"""The computation of a line that stands alone, or of what is no instruction."""


def line_at(text: str, position: int) -> tuple[int, int]:
    """Start and end of the line around a position."""
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, len(text) if end < 0 else end


class InstructionForm:
    """The common part of instructions that differ in names, operands, channels and reductions only. `words`
    are its attributes' text: the layers of a model share it."""

    def __init__(self, opcode: str, shape: str, words: str, has_own_channel: bool) -> None:
        self.opcode, self.shape, self.words, self._has_own_channel = opcode, shape, words, has_own_channel

    @property
    def has_channel(self) -> bool:
        return self._has_own_channel or "channel_id" in self.attributes

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """The attributes outside of strings that matter to collectives and calls, the first of each name."""
        found: dict[str, str] = {}
        for key, value in _ATTRIBUTE.findall(self.words):
            if key and key not in found:
                if key not in _GROUPS and value[:1] in _MARKS:
                    # Without its quotes, braces or percent sign, as it was before it was quoted.
                    end = _BARE.get(value[:1])
                    value = _unescaped(value[1:] if end is None else value[1:].removesuffix(end))
                found[key] = value
        return found

    @cached_property
    def is_wrapper(self) -> bool:
        """Return whether it starts a collective in a computation that it calls: it has no groups."""
        return "calls" in self.attributes and self.attributes.keys().isdisjoint(_GROUPS)


_form = lru_cache(maxsize=4096)(InstructionForm)


class Instruction:
    """An instruction: its line is text[start:stop], and its operands begin at `inside`. `head` is what stands
    in front of these: ROOT or None, name, shape and opcode. What stands behind the opcode is read when it is
    first asked for. `home` is the computation that it stands in."""

    __slots__ = (
        "_form", "_operands", "home", "inside", "is_root", "name", "opcode", "shape", "start", "stop",
        "text",
    )  # fmt: skip
    name: str
    shape: str
    opcode: str
    _form: InstructionForm | None
    _operands: list[str] | None

    def __init__(
        self, text: str, start: int, stop: int, inside: int, home: Computation, head: Sequence[Any]
    ) -> None:
        self.text, self.start, self.stop, self.inside, self.home = text, start, stop, inside, home
        root, self.name, self.shape, self.opcode = head
        self.is_root = root is not None
        self._form = self._operands = None

    @property
    def operands(self) -> list[str]:
        """The names of the operands, with or without their shapes and percent signs in the text."""
        if self._operands is None:
            if names := _OPERANDS.match(self.text, self.inside, self.stop):
                self._operands = listed(names[1])
            else:
                written = self.operand_text
                self._operands = (_NAME if "%" in written else _NAME_WITHOUT_SIGN).findall(written)
        return self._operands

    @property
    def form(self) -> InstructionForm:
        """Its form; two lines of one text that have the same share it."""
        if self._form is None:
            text, stop = self.text, self.stop
            start = closing(text, self.inside, stop)
            channel = _CHANNEL.match(text, start, stop)
            start = channel.end() if channel else start
            words = text[start:stop]
            start = words.find(", to_apply=%") if "reduce" in self.opcode else -1
            if start >= 0 and (reduction := _REDUCTION.match(words, start)) and '"' not in words[:start]:
                words = words[:start] + words[reduction.end() :]
            self._form = _form(self.opcode, self.shape, words, channel is not None)
        return self._form

    @property
    def operand_text(self) -> str:
        """The text in the parentheses, with the last of them where the line has it."""
        return self.text[self.inside : closing(self.text, self.inside, self.stop)]

    @property
    def attributes(self) -> Mapping[str, str]:
        return self.form.attributes

    @property
    def channel(self) -> str:
        """The channel of a collective, "" where it has none."""
        written = _CHANNEL.match(self.text, closing(self.text, self.inside, self.stop), self.stop)
        return written[1] if written else self.attributes.get("channel_id", "")

    @property
    def op_name(self) -> str:
        """JAX's name of the operation that it is, or is made of; "" where it has none."""
        start = self.text.find(_OP_NAME, self.inside, self.stop)
        quoted = _QUOTED.match(self.text, start + len(_OP_NAME), self.stop) if start >= 0 else None
        return _unescaped(quoted[0]) if quoted else ""

    @property
    def has_operand_shapes(self) -> bool:
        """Return whether the operands stand there with their shapes."""
        end = self.text.find(")", self.inside, self.stop)
        return self.text.find("[", self.inside, self.stop if end < 0 else end) >= 0

    @property
    def written_operands(self) -> str:
        """The operands where they tell more than names: shapes, or of a ragged one what is sent."""
        return self.operand_text if "ragged" in self.opcode or self.has_operand_shapes else ""

    @property
    def parameter_number(self) -> int | None:
        """The number of the parameter that it is; None where it is damaged."""
        number = _NUMBER.match(self.text, self.inside, self.stop)
        return int(number[1]) if number else None

    @property
    def element_index(self) -> int | None:
        """The number of the element that a get-tuple-element takes; None where the line does not tell."""
        index = self.search(_INDEX)
        return int(index[1]) if index else None

    def called(self, *keys: str) -> list[str]:
        """The computations that the attributes of these names have: one each, or several."""
        return _NAMES.findall(" ".join(self.attributes.get(key, "") for key in keys))

    def search(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first match of a pattern behind the opcode."""
        return pattern.search(self.text, self.inside, self.stop)

    def says(self, words: str) -> bool:
        """Return whether these words stand behind the opcode."""
        return self.text.find(words, self.inside, self.stop) >= 0


def parse_instruction(text: str, start: int = 0, home: Computation = NOWHERE) -> Instruction | None:
    """The instruction in the line that begins at `start`, in the computation `home`; None when it is not one.
    Reads what there is of a line that is cut off."""
    end = text.find("\n", start)
    stop = len(text) if end < 0 else end
    if head := _HEAD.match(text, start, stop):
        return Instruction(text, start, stop, head.end(), home, head.groups())
    # A tuple of tuples of tuples.
    head = _TUPLE.match(text, start, stop)
    end = closing(text, head.end() + 1, stop) if head else stop
    match = _OPCODE.match(text, end, stop) if head else None
    if head is None or match is None:
        return None
    return Instruction(
        text, start, stop, match.end(), home, (*head.groups(), text[head.end() : end], match[1])
    )


def listed(operands: str) -> list[str]:
    """The names of `OPERANDS`."""
    return _BETWEEN.split(operands) if "/*" in operands else operands.split(", %")


def closing(text: str, start: int, stop: int | None = None) -> int:
    """The place after the parenthesis that closes the one before `start`, or the end of the line."""
    stop = len(text) if stop is None else stop
    end = text.find(")", start, stop)
    if end < 0:
        return stop
    if text.find("(", start, end) < 0:
        return end + 1
    depth = 1
    for paren in _PAREN.finditer(text, start, stop):
        depth += 1 if paren[0] == "(" else -1
        if depth == 0:
            return paren.end()
    return stop


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
