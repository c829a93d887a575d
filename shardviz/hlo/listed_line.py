"""One instruction as a line to read: its parts, without what only a compiler wants to know."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardviz.hlo.collective import Collective
from shardviz.hlo.text.folding import fold
from shardviz.hlo.text.instruction import closing, open_instruction

MAX_LITERAL = 40
"""Characters of a constant that are kept."""

_LEFT_OUT = frozenset(
    (
        "sharding",
        "channel_id",
        "use_global_device_ids",
        "output_to_operand_aliasing",
        "operand_layout_constraints",
        "control-predecessors",
        "cross_program_prefetch_index",
        "is_host_transfer",
        "calls",
        "origin",
        "statistics",
    )
)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}()\[\]]|, ')
_OPERAND = re.compile(r"%([^\s,{}()=]++)")
_PLAIN_OPERAND = re.compile(r"[^\s,{}()=]++")
_COMMENT = re.compile(r"/\*[^*]{0,40}\*/ ?")


@dataclass(frozen=True)
class ListedLine:
    """One instruction, layouts, metadata and backend_config folded away, or the head of a computation.

    A head has an even `depth`, its instructions one more; what a loop, a call or a branch runs comes right
    after the line that does, one deeper. A head's `opcode` is "ENTRY" or how it is called ("body"), and its
    `operands` name the caller. Of a fusion, `holds` tells what it does, as opcodes. `folded` tells how many
    characters were left out. `collective` is the record of the collective that this line is, or begins.
    `ends` is the number of the line that begins what this one ends (a done), None elsewhere. `repeats`
    counts the lines in a row that take elements of one tuple, where they share this one.
    """

    depth: int
    name: str
    shape: str
    opcode: str
    operands: str
    attributes: tuple[str, ...]
    folded: int
    holds: tuple[str, ...] = ()
    collective: Collective | None = None
    ends: int | None = None
    repeats: int = 1

    @property
    def is_head(self) -> bool:
        return self.depth % 2 == 0

    def continues(self, other: ListedLine) -> bool:
        """Whether this line takes an element of the same tuple as `other` does."""
        return (
            self.opcode == other.opcode == "get-tuple-element"
            and self.operands == other.operands
            and self.depth == other.depth
        )

    @property
    def operand_names(self) -> list[str]:
        """The instructions that this one reads."""
        return _PLAIN_OPERAND.findall(self.operands)


def listed_line(text: str, depth: int) -> ListedLine | None:
    """An instruction as a line, its operands without their shapes; None when the text is none."""
    short = fold(text)
    opened = open_instruction(short)
    if opened is None:
        return None
    name, shape, opcode, start = opened
    stop = closing(short, start)
    operands = _operands(opcode, short[start : stop - short.endswith(")", start, stop)])
    attributes = _attributes(short[stop:])
    kept = len(name) + len(shape) + len(opcode) + len(operands) + sum(map(len, attributes))
    return ListedLine(depth, name, _COMMENT.sub("", shape), opcode, operands, attributes, len(text) - kept)


def _operands(opcode: str, text: str) -> str:
    if opcode in ("constant", "parameter"):
        return text if len(text) <= MAX_LITERAL else f"{text[:MAX_LITERAL]}…"
    return ", ".join(_OPERAND.findall(text)) if "%" in text else _COMMENT.sub("", text)


def _attributes(text: str) -> tuple[str, ...]:
    """The attributes that a reader may want, each as ``key=value``."""
    depth, start, kept = 0, 0, []
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece in "{([":
            depth += 1
        elif piece in "})]":
            depth -= 1
        elif piece == ", " and depth <= 0:
            kept.append(text[start : token.start()])
            start = token.end()
    kept.append(text[start:])
    return tuple(part for part in kept if part and part.partition("=")[0] not in _LEFT_OUT)
