"""Rules in YAML: `logical_axis_rules` of a MaxText configuration, a list of pairs, and Levanter's
`axis_resources` and `parameter_axis_resources` (haliax), tables.

What PyYAML composes is read, and nothing is constructed: nodes have their lines, and what an alias stands for
is one node, however often it is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardviz.errors import quote
from shardviz.models.rules.rule_set import Pair, RuleError

if TYPE_CHECKING:
    from yaml.nodes import Node

RULES = "logical_axis_rules"
RESOURCES = ("parameter_axis_resources", "axis_resources")
"""Where Levanter says how named axes are split: of parameters, and of all arrays, whose word counts for the
axes that the first does not name."""
_NULL, _TEXT, _MERGE = (f"tag:yaml.org,2002:{name}" for name in ("null", "str", "merge"))
_SYNTAX = "check the brackets, quotes and indentation there and in the line before"
_HINT = "write a list of pairs: [[mlp, tensor], [embed, [fsdp, data]]]"


def yaml_pairs(text: str, name: str) -> list[Pair]:
    """The logical axes of a configuration, or of a list of pairs alone, each with its mesh axes and its line.

    Raises `RuleError` for text that is not YAML and for a configuration without rules.
    """
    from yaml import SafeLoader, SequenceNode, YAMLError, compose

    try:
        root = compose(text, SafeLoader)
    except YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        place, reason = f"line {mark.line + 1}" if mark else "", problem or str(error).partition("\n")[0]
        raise RuleError(name, place, f"it is not YAML: {quote(reason, 100)[1:-1]}", _SYNTAX) from None
    except RecursionError:
        raise RuleError(name, "", "it is not YAML: its lists are too deep", "look at its brackets") from None
    if isinstance(root, SequenceNode):
        return list(_pairs(root, name))
    named = _named(root)
    if RULES in named:
        return list(_pairs(named[RULES], name))
    found: dict[str, Pair] = {}
    for key in RESOURCES:
        # Of a key that stands twice in a table the last counts.
        for subject, pair in {pair[0]: pair for pair in _pairs(named.get(key), name)}.items():
            found.setdefault(subject, pair)
    if not found:
        reason = f"it has no list {RULES} and no {RESOURCES[1]}"
        hint = "give a configuration of MaxText or Levanter, or a list of pairs: [[mlp, tensor]]"
        raise RuleError(name, "", reason, hint)
    return [*found.values()]


def _named(root: Node | None) -> dict[str, Node]:
    """The first value of each of the keys of rules, wherever that stands."""
    from yaml import MappingNode, ScalarNode

    found: dict[str, Node] = {}
    queue, seen = [root], set()
    for node in queue:
        if node is None or isinstance(node, ScalarNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if not isinstance(node, MappingNode):
            queue += node.value
            continue
        for key, value in node.value:
            if key.value in (RULES, *RESOURCES):
                found.setdefault(key.value, value)
            queue.append(value)
    return found


def _pairs(node: Node | None, name: str) -> Iterator[Pair]:
    """The pairs of a list of pairs or of a table, of which other tables may be a part."""
    from yaml import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        pairs = [*_entries(node, name)]
    elif isinstance(node, SequenceNode):
        pairs = [_two(each, name) for each in node.value]
    elif node is None or node.tag == _NULL:
        return
    else:
        raise _error(node, name, "is not a table or a list of pairs")
    for key, value in pairs:
        values = value.value if isinstance(value, SequenceNode) else [value]
        axes = [_word(each, name) for each in values if each.tag != _NULL]
        yield _word(key, name), axes, value.start_mark.line + 1


def _entries(table: Node, name: str) -> Iterator[tuple[Node, Node]]:
    """The keys and values of a table, after those of the tables that `<<` puts in, which they change."""
    from yaml import SequenceNode

    queue, order, seen = [table], [], set()
    for each in queue:
        if id(each) in seen:
            continue
        seen.add(id(each))
        order.append(each)
        for key, value in _items(each, name):
            if key.tag == _MERGE:
                queue += value.value if isinstance(value, SequenceNode) else [value]
    for each in reversed(order):
        yield from (pair for pair in _items(each, name) if pair[0].tag != _MERGE)


def _items(node: Node, name: str) -> list[tuple[Node, Node]]:
    from yaml import MappingNode

    if not isinstance(node, MappingNode):
        raise _error(node, name, "is not a table")
    found: list[tuple[Node, Node]] = node.value
    return found


def _two(node: Node, name: str) -> tuple[Node, Node]:
    from yaml import SequenceNode

    if not isinstance(node, SequenceNode) or len(node.value) != 2:
        raise _error(node, name, "is not a pair of a logical axis and its mesh axes")
    return node.value[0], node.value[1]


def _word(node: Node, name: str) -> str:
    if node.tag != _TEXT:
        raise _error(node, name, "is not the name of an axis")
    return str(node.value)


def _error(node: Node, name: str, reason: str) -> RuleError:
    from yaml import MappingNode

    kind = "a table" if isinstance(node, MappingNode) else "a list"
    shown = quote(node.value, 40) if isinstance(node.value, str) else kind
    return RuleError(name, f"line {node.start_mark.line + 1}", f"{shown} {reason}", _HINT)
