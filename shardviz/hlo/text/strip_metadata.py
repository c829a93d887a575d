"""A compiler's text without layouts, metadata and configurations, which only a compiler needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STRING = r'"(?:[^"\\]|\\.)*+"?'
_LAYOUT = re.compile(r"(?<=\])\{(?:[\d:][^{}\n]*+)?\}")
"""Directly after a shape: ``{1,0:T(8,128)(2,1)S(1)}``."""
_HIDDEN = re.compile(
    rf"{_STRING}"
    r"|(?P<attribute>, (?:metadata|backend_config|frontend_attributes|entry_computation_layout"
    r"|allow_spmd_sharding_propagation_to_(?:parameters|output))=)"
    r'|(?P<location> ?loc\((?=[#"]|callsite|unknown))'
    r"|(?P<header>(?<=^module ) ?(?:@[^\s{]++ )?attributes \{)"
)
_RULE = r"sdy\.sharding_rule = #sdy\.op_sharding_rule<[^<>\n]*+>[^<>\n]*+>"
_RULES = re.compile(rf" \{{{_RULE}\}}|, {_RULE}|{_RULE},? ?")
_BRACES = re.compile(rf"{_STRING}|[{{}}]")
_PARENS = re.compile(rf"{_STRING}|[()]")
_WORD = re.compile(r"[^,\n]*+")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def strip_metadata(line: str) -> str:
    """One line of HLO, StableHLO or Shardy text without what only a compiler wants to know.

    Left out: layouts, metadata, backend_config, frontend_attributes, source locations, and the rules by
    which Shardy propagates. Shapes, operands, groups and shardings stay. Any text is folded in linear time.
    """
    kept, position = [], 0
    while match := _HIDDEN.search(line, position):
        kept.append(line[position : match.start()])
        if match["attribute"]:
            position = _value_end(line, match.end())
        elif match["location"]:
            position = _closed(_PARENS, line, match.end(), ")")
        elif match["header"]:
            kept.append(match[0].removesuffix("attributes {"))
            position = _closed(_BRACES, line, match.end(), "}") + 1
        else:
            kept.append(match[0])
            position = match.end()
    kept.append(line[position:])
    short = "".join(kept)
    if "sdy.sharding_rule" in short:
        short = _RULES.sub("", short)
    return _LAYOUT.sub("", short).rstrip()


def stripped_lines(text: str) -> Iterator[str]:
    """The lines of a module, each folded, without the tables of source locations."""
    in_table = False
    last = ""
    for line in text.splitlines():
        if in_table and line[:1].isdigit():
            continue
        in_table = line in _TABLES
        if in_table or line.startswith("#loc"):
            continue
        short = strip_metadata(line)
        if short or last:
            yield short
        last = short


def _value_end(line: str, start: int) -> int:
    """The end of an attribute's value: an object in braces, a string, or a word."""
    if line.startswith("{", start):
        return _closed(_BRACES, line, start + 1, "}")
    if line.startswith('"', start) and (quoted := _BRACES.match(line, start)):
        return quoted.end()
    word = _WORD.match(line, start)
    return word.end() if word else start


def _closed(tokens: re.Pattern[str], line: str, start: int, close: str) -> int:
    """The place after the bracket that closes the one before `start`, strings passed over."""
    depth = 1
    for token in tokens.finditer(line, start):
        if token[0] == close:
            depth -= 1
        elif not token[0].startswith('"'):
            depth += 1
        if depth == 0:
            return token.end()
    return len(line)
