"""One line of HLO taken apart: ``ROOT %name = shape opcode(operands), key=value, ...``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from shardviz.hlo.groups.group_text import GROUPS

_HEAD = re.compile(r"\s*(?:ROOT\s+)?%?([^\s=,(){}]+) = ")
_PLAIN = re.compile(
    r"\s*(?:ROOT\s+)?%?([^\s=,(){}]+) = "
    r"([^\s(][^\s]*+|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))\s*([a-z][a-z0-9-]*)\("
)
_WHOLE = re.compile(
    rf"{_PLAIN.pattern}([^()]*+\))(?:, channel_id=(\d++)(?=,|$))?(.*)",
    re.DOTALL,
)
"""All of a line whose operands have no parentheses: its parts, its channel and its other attributes."""
_OPCODE = re.compile(r"\s*([a-z][a-z0-9-]*)\(")
_PAREN = re.compile(r"[()]")
_BALANCED = re.compile(r"[^()]*+(?:\((?:[^()]++|\([^()]*+\))*+\)[^()]*+)*+\)")
"""Up to a closing parenthesis, with no deeper ones than a layout in a tuple has."""
_ATTRIBUTE = re.compile(
    r"[ ](?:metadata=\{)?(replica_groups|source_target_pairs|dimensions|split_dimension|concat_dimension"
    r"|slice_sizes|is_host_transfer|channel_id|use_global_device_ids|op_name|source_file|source_line|stack_frame_id|calls|to_apply|body"
    r"|condition|true_computation|false_computation|branch_computations|called_computations)="
    rf'({GROUPS}|"(?:[^"\\]|\\.)*+"?|\{{(?:[^{{}}]++|\{{[^{{}}]*+\}})*+\}}?|[^\s,{{}}()"]*+)'
    r'|"(?:[^"\\]|\\.)*+"?'
    r"|[ ]backend_config=.*+"
)
"""A key and its value; or a string, whose inside is none; or the rest of the line, which has no others."""
_GROUPS = ("replica_groups", "source_target_pairs")
_BARE = {'"': '"', "{": "}"}
_MARKS = ('"', "{", "%")
_NAME = re.compile(r"%([^\s,(){}=%]+)")
_NAME_WITHOUT_SIGN = re.compile(r"([A-Za-z_][^\s=,(){}\[\]]*)\s*(?=[,)]|$)")


MAX_DEPTH = 10_000
"""Parentheses nested deeper than this are in no program."""


class Instruction(NamedTuple):
    """The parts of a line, as text. `attributes` holds those that matter to collectives and calls."""

    name: str
    shape: str
    opcode: str
    operands: str
    attributes: Mapping[str, str]


def parse_instruction(line: str) -> Instruction | None:
    """The parts of a line; None when it is no instruction. Reads what there is of a line that is cut off."""
    if whole := _WHOLE.match(line):
        name, shape, opcode, operands, channel, rest = whole.groups()
        return Instruction(name, shape, opcode, operands, _attributes(rest, channel))
    opened = open_instruction(line)
    if opened is None:
        return None
    name, shape, opcode, start = opened
    stop = closing(line, start)
    return Instruction(name, shape, opcode, line[start:stop], _attributes(line[stop:]))


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


def _attributes(text: str, channel: str | None = None) -> Mapping[str, str]:
    """The attributes outside of strings, and the channel; the first of each name counts.

    A channel is each collective's own; the others the layers of a model share.
    """
    known = _known_attributes(text)
    return known if channel is None else {**known, "channel_id": channel}


@lru_cache(maxsize=512)
def _known_attributes(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for key, value in _ATTRIBUTE.findall(text):
        if key and key not in found:
            found[key] = value if key in _GROUPS or value[:1] not in _MARKS else _bare(value)
    return found


def _bare(value: str) -> str:
    """A value without its quotes, braces or percent sign."""
    end = _BARE.get(value[:1])
    return value.removeprefix("%") if end is None else value[1:].removesuffix(end)
