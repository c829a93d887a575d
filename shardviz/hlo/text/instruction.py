"""One line of HLO taken apart: ``ROOT %name = shape opcode(operands), key=value, ...``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

from shardviz.hlo.groups.group_text import GROUPS

_HEAD = re.compile(r"\s*(?:ROOT\s+)?%?([^\s=,(){}]+) = ")
_PLAIN = re.compile(
    r"[^\S\n]*+(?:ROOT\s+)?%?([^\s=,(){}]+) = "
    r"([^\s(][^\s]*+|\((?:[^()\n]++|\((?:[^()\n]++|\([^()\n]*+\))*+\))*+\))[^\S\n]*+([a-z][a-z0-9-]*)\("
)
_WHOLE = re.compile(rf"{_PLAIN.pattern}([^()=\n]*+\))(?:, channel_id=(\d++)(?=[,\n]|\Z))?([^\n]*+)")
"""All of a line whose operands have no parentheses: its parts, its channel and its other attributes."""
_OPCODE = re.compile(r"\s*([a-z][a-z0-9-]*)\(")
_PAREN = re.compile(r"[()]")
_BALANCED = re.compile(r"[^()]*+(?:\((?:[^()]++|\([^()]*+\))*+\)[^()]*+)*+\)")
"""Up to a closing parenthesis, with no deeper ones than a layout in a tuple has."""
_ATTRIBUTE = re.compile(
    r"[ \t,](?:metadata=\s*+\{)?(replica_groups|source_target_pairs|dimensions|split_dimension"
    r"|concat_dimension|slice_sizes|is_host_transfer|channel_id|use_global_device_ids|op_name|source_file|source_line|stack_frame_id|calls|to_apply|body"
    r"|condition|true_computation|false_computation|branch_computations|called_computations)=\s*+"
    rf'({GROUPS}|"(?:[^"\\]|\\.)*+"?|\{{(?:[^{{}}]++|\{{[^{{}}]*+\}})*+\}}?|[^\s,{{}}()"]*+)'
    r'|"(?:[^"\\]|\\.)*+"?'
    r"|[ ]backend_config=.*+"
)
"""A key and its value; or a string, whose inside is none; or the rest of the line, which has no others."""
_REDUCTION = ", to_apply=%"
_GROUPS = ("replica_groups", "source_target_pairs")
_ESCAPED = re.compile(r"\\(.)")
_BARE = {'"': '"', "{": "}"}
_MARKS = ('"', "{", "%")
_NAME = re.compile(r"%([^\s,(){}=%]+)")
_NAMES = re.compile(r"[^\s,{}()=%]+")
_NAME_WITHOUT_SIGN = re.compile(r"([A-Za-z_][^\s=,(){}\[\]]*)\s*(?=[,)]|$)")


MAX_DEPTH = 10_000
"""Parentheses nested deeper than this are in no program."""


class InstructionForm:
    """The common part of lines that differ only in their names, operands, channels and reductions.

    The layers of a model share it; it is taken apart once. `text` are the attributes as they stand there.
    """

    def __init__(self, shape: str, opcode: str, text: str) -> None:
        self.shape = shape
        self.opcode = opcode
        self.text = text

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """Those outside of strings that matter to collectives and calls; the first of each name counts."""
        found: dict[str, str] = {}
        for key, value in _ATTRIBUTE.findall(self.text):
            if key and key not in found:
                found[key] = value if key in _GROUPS or value[:1] not in _MARKS else _bare(value)
        return found

    @cached_property
    def channel(self) -> str:
        """The channel where it does not stand first among the attributes."""
        return self.attributes.get("channel_id", "")

    @cached_property
    def is_wrapper(self) -> bool:
        """Return whether it starts a collective in a computation that it calls: it has no groups."""
        return "calls" in self.attributes and self.attributes.keys().isdisjoint(_GROUPS)

    @cached_property
    def begins(self) -> bool:
        """Return whether something else ends what it begins."""
        return self.opcode.endswith("-start") or self.opcode in ("send", "recv")

    @cached_property
    def is_alone(self) -> bool:
        """Return whether no other instruction seems to stand among the attributes."""
        return " = " not in self.text


_form = lru_cache(maxsize=4096)(InstructionForm)


class Instruction(NamedTuple):
    """The parts of a line, as text; the `channel` of a collective is "" where it has none."""

    name: str
    operands: str
    channel: str
    form: InstructionForm

    @property
    def shape(self) -> str:
        return self.form.shape

    @property
    def opcode(self) -> str:
        return self.form.opcode

    @property
    def attributes(self) -> Mapping[str, str]:
        return self.form.attributes

    def called(self, *keys: str) -> list[str]:
        """The computations that the attributes of these names have: one each, or several."""
        return _NAMES.findall(" ".join(self.attributes.get(key, "") for key in keys))

    @property
    def kind(self) -> tuple[InstructionForm, bool, str]:
        """The common part of collectives whose records differ in name only.

        Operands may have their shapes; of a ragged one the line that makes the operand tells what is sent.
        """
        tell = "[" in self.operands or "ragged" in self.form.opcode
        return self.form, self.channel != "", self.operands if tell else ""

    @property
    def is_alone(self) -> bool:
        """Return whether no other instruction seems to stand in its line."""
        return self.form.is_alone and " = " not in self.operands


def parse_instruction(text: str, start: int = 0) -> Instruction | None:
    """The parts of the line that begins at `start`; None when it is not an instruction.

    Reads what there is of a line that is cut off.
    """
    if whole := _WHOLE.match(text, start):
        name, shape, opcode, operands, channel, attributes = whole.groups()
        if "reduce" in opcode:
            attributes = _without_reduction(attributes)
        form = _form(shape, opcode, attributes)
        return Instruction(name, operands, channel or form.channel, form)
    end = text.find("\n", start)
    line = text[start:] if end < 0 else text[start:end]
    opened = open_instruction(line)
    if opened is None:
        return None
    name, shape, opcode, start = opened
    stop = closing(line, start)
    form = _form(shape, opcode, line[stop:])
    return Instruction(name, line[start:stop], form.channel, form)


def _without_reduction(attributes: str) -> str:
    """The attributes without the computation that adds, which XLA makes for each collective anew."""
    start = attributes.find(_REDUCTION)
    stop = attributes.find(",", start + 1)
    if start < 0 or stop < 0:
        return attributes
    before, name = attributes[:start], attributes[start + len(_REDUCTION) : stop]
    return attributes if '"' in before or "=" in name else before + attributes[stop:]


def open_instruction(line: str) -> tuple[str, str, str, int] | None:
    """Name, shape and opcode of a line, and where its operands begin."""
    if plain := _PLAIN.match(line):
        return plain[1], plain[2], plain[3], plain.end()
    head = _HEAD.match(line)
    if head is None or not line.startswith("(", head.end()):
        return None
    start = head.end()
    stop = closing(line, start + 1)
    opcode = _OPCODE.match(line, stop)
    if opcode is None:
        return None
    return head[1], line[start:stop], opcode[1], opcode.end()


def base_op(opcode: str) -> str:
    """The collective that an opcode is, or begins: ``all-gather`` for ``all-gather-start``."""
    return opcode.removesuffix("-start")


def closing(line: str, start: int) -> int:
    """The place after the parenthesis that closes the one before `start`, or the end of the line."""
    if balanced := _BALANCED.match(line, start):
        return balanced.end()
    depth = 1
    for paren in _PAREN.finditer(line, start):
        depth += 1 if paren[0] == "(" else -1
        if depth == 0:
            return paren.end()
        if depth > MAX_DEPTH:
            break
    return len(line)


def operand_names(operands: str) -> list[str]:
    """The names in a list of operands, with or without their shapes and percent signs."""
    return (_NAME if "%" in operands else _NAME_WITHOUT_SIGN).findall(operands)


def _bare(value: str) -> str:
    """A value without its quotes, braces or percent sign, as it was before it was quoted."""
    end = _BARE.get(value[:1])
    found = value.removeprefix("%") if end is None else value[1:].removesuffix(end)
    return _ESCAPED.sub(r"\1", found) if "\\" in found else found
