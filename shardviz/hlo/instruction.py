"""One line of HLO taken apart: ``ROOT %name = shape opcode(operands), key=value, ...``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardviz.hlo.group_text import groups_end

_HEAD = re.compile(r"\s*(?:ROOT\s+)?%?([^\s=,(){}]+) = ")
_OPCODE = re.compile(r"\s*([a-z][a-z0-9-]*)\(")
_PAREN = re.compile(r"[()]")
_SHAPE_END = re.compile(r"\s|$")
_ATTRIBUTE = re.compile(
    r'"(?:[^"\\]|\\.)*+"?'
    r"|\b(replica_groups|source_target_pairs|dimensions|split_dimension|concat_dimension|channel_id"
    r"|use_global_device_ids|op_name|source_file|source_line|stack_frame_id|calls|to_apply|body|condition"
    r"|true_computation|false_computation|branch_computations|called_computations)="
)
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*+)"?|\{([^{}]*)\}|%?([^\s,{}()"]+)')
_GROUPS = ("replica_groups", "source_target_pairs")


@dataclass(frozen=True)
class Instruction:
    """The parts of a line, as text. `attributes` holds those that matter to collectives and calls."""

    name: str
    shape: str
    opcode: str
    operands: str
    attributes: dict[str, str]


def parse_instruction(line: str) -> Instruction | None:
    """The parts of a line; None when it is no instruction. Reads what there is of a line that is cut off."""
    opened = open_instruction(line)
    if opened is None:
        return None
    name, shape, opcode, start = opened
    stop = closing(line, start)
    return Instruction(name, shape, opcode, line[start:stop], _attributes(line, stop))


def open_instruction(line: str) -> tuple[str, str, str, int] | None:
    """Name, shape and opcode of a line, and where its operands begin."""
    head = _HEAD.match(line)
    if head is None:
        return None
    start = head.end()
    stop = closing(line, start + 1) if line.startswith("(", start) else _SHAPE_END.search(line, start).start()  # type: ignore[union-attr]
    opcode = _OPCODE.match(line, stop)
    if opcode is None:
        return None
    return head[1], line[start:stop], opcode[1], opcode.end()


def closing(line: str, start: int) -> int:
    """The place after the parenthesis that closes the one before `start`, or the end of the line."""
    depth = 1
    for paren in _PAREN.finditer(line, start):
        depth += 1 if paren[0] == "(" else -1
        if depth == 0:
            return paren.end()
    return len(line)


def _attributes(line: str, start: int) -> dict[str, str]:
    """The attributes outside of strings; the first of each name counts."""
    found: dict[str, str] = {}
    position = start
    while match := _ATTRIBUTE.search(line, position):
        position = match.end()
        key = match[1]
        if key is None:
            continue
        if key in _GROUPS:
            position = groups_end(line, match.end())
            found.setdefault(key, line[match.end() : position])
        elif value := _VALUE.match(line, match.end()):
            position = value.end()
            found.setdefault(key, next((part for part in value.groups() if part is not None), ""))
    return found
