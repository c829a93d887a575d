"""Files of rules, told apart by their endings, and the sets that ship, by name.

TOML            [rules] with patterns and specs, or [logical] with logical axes; and perhaps `inputs`
Python          a list of pairs or a dictionary, read as it is written, without running the file: regular
                expressions with `PartitionSpec`s, logical axes with mesh axes, or a `base_model_tp_plan`
FILE.py:NAME    that list of several
YAML            `logical_axis_rules` of a MaxText configuration, `axis_resources` and
                `parameter_axis_resources` of a Levanter one (haliax)
JSON            an object of patterns or logical axes"""

from __future__ import annotations

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError, ShardvizError, did_you_mean, quote
from shardviz.models.rule_set import (
    BATCH_AXES,
    STYLES,
    Kind,
    Pair,
    RuleError,
    RuleSet,
    ShardingRule,
    logical_rules,
    named_axis,
)
from shardviz.models.sources import json_table, text_of
from shardviz.notation.spec_string import write_spec
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.strict_table import parsed_table

if TYPE_CHECKING:
    from yaml.nodes import Node

_SPECS = ("PartitionSpec", "PS", "P")
_WORD = re.compile(r"[A-Za-z0-9](?:\w*[A-Za-z0-9])?", re.ASCII)
"""A logical axis, or a mesh axis; ``X_`` is a spec."""
_TABLES: dict[str, Kind] = {"rules": "patterns", "logical": "logical"}
_LIST = "logical_axis_rules"
_RESOURCES = ("parameter_axis_resources", "axis_resources")
"""Where Levanter says how named axes are split: of parameters, and of all arrays, whose word counts for the
axes that the first does not name."""
_NULL, _TEXT = (f"tag:yaml.org,2002:{name}" for name in ("null", "str"))
MAX_BYTES = 500_000
"""Bytes of a file of rules, ten times those of the longest that is known, MaxText's."""


def named_rules(text: str, mesh: Mesh) -> RuleSet:
    """The rules of a file, or of sets that ship. Raises `QuestionError` for neither."""
    name = text.rpartition(":")[0] if ".py:" in text else text
    is_file = name.lower().endswith((".toml", ".json", ".yml", ".yaml", ".py")) or "/" in name or "\\" in name
    return read_rule_file(text) if is_file else shipped_rules(text, mesh)


def read_rule_file(text: str) -> RuleSet:
    """The rules of a file. Raises `RuleError` for text that holds none, with the line where one can be shown,
    and `QuestionError` for a file that cannot be read."""
    name, wanted = (text.rpartition(":")[::2]) if ".py:" in text else (text, "")
    path = Path(name)
    content = text_of(path, MAX_BYTES)
    match path.suffix.lower():
        case ".py":
            return _python_rules(content, name, wanted)
        case ".json":
            pairs = json_table(content, name).values.items()
            return rules_of_pairs([(subject, value, 0) for subject, value in pairs], name)
        case ".yml" | ".yaml":
            return rules_of_pairs(_yaml_pairs(content, name), name, "logical")
    return _toml_rules(content, name)


def rules_of_pairs(pairs: Sequence[Pair], name: str, kind: Kind | None = None, inputs: str = "") -> RuleSet:
    """The rules of subjects and what they are given; without a `kind` logical axes where every subject is a
    word and every value mesh axes, else patterns. Raises `RuleError` for none and for unfit values."""
    if not pairs:
        hint = "write patterns and specs, or logical axes and mesh axes"
        raise RuleError(name, "", "there are no rules", hint)
    if kind is None:
        styles = (*STYLES, "replicated")
        is_logical = all(
            _WORD.fullmatch(subject)
            and _is_axes(value)
            and not (isinstance(value, str) and value.removesuffix("_rep") in styles)
            for subject, value, _ in pairs
        )
        kind = "logical" if is_logical else "patterns"
    rules = []
    for subject, value, line in pairs:
        location = f"line {line}" if line else ""
        shown = f"{quote(subject)} is given {quote(repr(value), 40)[1:-1]}"
        if kind == "logical":
            if not _is_axes(value):
                hint = 'write embed = "fsdp", or embed = [] for none'
                raise RuleError(name, location, f"{shown}, which is not a mesh axis or a list of them", hint)
            rules.append(ShardingRule(subject, _axes(value), location))
        elif isinstance(value, PartitionSpec | str):
            rules.append(ShardingRule(subject, value, location))
        else:
            hint = "write 'tensor _', P('tensor', None), colwise, rowwise or replicated"
            raise RuleError(name, location, f"{shown}, which is not a spec", hint)
    return RuleSet(name, kind, tuple(rules), inputs)


def _is_axes(value: object) -> bool:
    return value is None or all(isinstance(axis, str) and _WORD.fullmatch(axis) for axis in _listed(value))


def _axes(value: object) -> tuple[str, ...]:
    return tuple(axis for axis in _listed(value) if isinstance(axis, str))


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else () if value is None else (value,)


def _toml_rules(text: str, name: str) -> RuleSet:
    def fail(key: str, reason: str, hint: str) -> ShardvizError:
        line = _line_of(text, key)
        return RuleError(name, f"line {line}" if line else "", f"{key}: {reason}" if key else reason, hint)

    table = parsed_table(text, tomllib.loads, "TOML", "look at that line", fail)
    table.only(("inputs", *_TABLES))
    kinds = [key for key in _TABLES if key in table]
    if len(kinds) != 1:
        reason = "it has [rules] and [logical]" if kinds else "it has no [rules] and no [logical]"
        table.fail(None, reason, "write patterns and specs below [rules], or logical axes below [logical]")
    own = table.table(kinds[0])
    pairs = [(subject, value, _line_of(text, subject) or 0) for subject, value in own.values.items()]
    return rules_of_pairs(pairs, name, _TABLES[kinds[0]], table.text("inputs", ""))


def _line_of(text: str, key: str) -> int | None:
    """The line of a TOML text that begins with a key, from 1; None where none does."""
    written = (key, f'"{key}"', f"'{key}'", json.dumps(key, ensure_ascii=False))
    for number, line in enumerate(text.split("\n"), 1):
        left = line.strip()
        if key and any(left.startswith(word) and left[len(word) :].lstrip()[:1] in "=]" for word in written):
            return number
    return None


def _yaml_pairs(text: str, name: str) -> list[Pair]:
    """The logical axes of a configuration, or of a list of pairs alone, with their mesh axes and lines."""
    from yaml import SafeLoader, YAMLError, compose
    from yaml.nodes import MappingNode, ScalarNode, SequenceNode

    def fail(node: Node, reason: str) -> RuleError:
        kind = "a table" if isinstance(node, MappingNode) else "a list"
        shown = quote(node.value, 40) if isinstance(node.value, str) else kind
        hint = "write a list of pairs: [[mlp, tensor], [embed, [fsdp, data]]]"
        return RuleError(name, f"line {node.start_mark.line + 1}", f"{shown} {reason}", hint)

    def word(node: Node) -> str:
        if node.tag != _TEXT:
            raise fail(node, "is not the name of an axis")
        return str(node.value)

    def pairs(node: Node | None) -> Iterator[Pair]:
        if node is None or node.tag == _NULL:
            return
        if isinstance(node, SequenceNode):
            for row in node.value:
                if not isinstance(row, SequenceNode) or len(row.value) != 2:
                    raise fail(row, "is not a pair of a logical axis and its mesh axes")
            rows = [row.value for row in node.value]
        elif isinstance(node, MappingNode):
            rows = node.value
        else:
            raise fail(node, "is not a table or a list of pairs")
        for key, value in rows:
            subject = word(key)
            values = value.value if isinstance(value, SequenceNode) else [value]
            yield subject, [word(axis) for axis in values if axis.tag != _NULL], value.start_mark.line + 1

    try:
        root = compose(text, SafeLoader)
    except YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        location, reason = f"line {mark.line + 1}" if mark else "", problem or str(error).partition("\n")[0]
        hint = "check the brackets, quotes and indentation there and in the line before"
        raise RuleError(name, location, f"it is not YAML: {quote(reason, 100)[1:-1]}", hint) from None
    except RecursionError:
        raise RuleError(name, "", "it is not YAML: its lists are too deep", "look at its brackets") from None
    if isinstance(root, SequenceNode):
        return [*pairs(root)]
    # The first value of each of the keys of rules, wherever that stands.
    named: dict[str, Node] = {}
    queue, seen = [root], set[int]()
    for node in queue:
        if node is None or isinstance(node, ScalarNode) or id(node) in seen:
            continue
        seen.add(id(node))
        for child in node.value:
            if isinstance(node, MappingNode) and child[0].value in (_LIST, *_RESOURCES):
                named.setdefault(child[0].value, child[1])
            queue.append(child[1] if isinstance(node, MappingNode) else child)
    if _LIST in named:
        return [*pairs(named[_LIST])]
    by_axis: dict[str, Pair] = {}
    for key in _RESOURCES:
        # Of a key that stands twice in a table the last counts.
        for subject, pair in {pair[0]: pair for pair in pairs(named.get(key))}.items():
            by_axis.setdefault(subject, pair)
    if not by_axis:
        reason = f"it has no list {_LIST} and no {_RESOURCES[1]}"
        hint = "give a configuration of MaxText or Levanter, or a list of pairs: [[mlp, tensor]]"
        raise RuleError(name, "", reason, hint)
    return [*by_axis.values()]


def _python_rules(text: str, name: str, wanted: str) -> RuleSet:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        location = f"line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise RuleError(name, location, f"it is not Python: {error}", "look at that line") from None
    except (MemoryError, RecursionError):
        raise RuleError(name, "", "its expressions are too deep", "look at its brackets and signs") from None
    lists = dict(_literals(tree))
    if wanted in lists or (not wanted and len(lists) == 1):
        return rules_of_pairs(lists[wanted or next(iter(lists))], name)
    if lists:
        reason = f"it has no list {quote(wanted)}" if wanted else "it has several lists of rules"
        raise RuleError(name, "", reason, f"name one: {name}:{' or '.join(lists)}")
    hint = "write RULES = [('q_proj', P('tensor', None))]; shardviz.model takes functions"
    raise RuleError(name, "", "it has no list of rules", hint)


def _literals(tree: ast.AST) -> Iterator[tuple[str, list[Pair]]]:
    """The lists of rules that a file assigns or returns, by the name of the variable or function."""
    for node in ast.walk(tree):
        named: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = [(target.id, node.value) for target in targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.FunctionDef):
            own = (t for t in ast.walk(node) if isinstance(t, ast.Return))
            named = [(node.name, returned.value) for returned in own if returned.value is not None]
        for name, value in named:
            with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                if pairs := _pairs(value):
                    yield name, pairs


def _pairs(node: ast.expr) -> list[Pair]:
    """The pairs of a list of pairs, or of a dictionary; an error for anything else."""
    if isinstance(node, ast.Dict):
        rows = [*zip(node.keys, node.values, strict=True)]
    elif isinstance(node, ast.List | ast.Tuple):
        # What is not a pair cannot be unpacked.
        elements = (elt.elts if isinstance(elt, ast.List | ast.Tuple) else [] for elt in node.elts)
        rows = [(key, value) for key, value in elements]
    else:
        raise ValueError
    if not all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key, _ in rows):
        raise ValueError
    return [(ast.literal_eval(key), _value(value), value.lineno) for key, value in rows if key is not None]


def _value(node: ast.expr) -> object:
    """A spec of JAX's under any of its names, or a constant."""
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called not in _SPECS or node.keywords:
        raise ValueError
    return PartitionSpec(tuple(_axes(ast.literal_eval(arg)) for arg in node.args))


def function_rules(function: Callable[[str, tuple[int, ...]], object], name: str) -> RuleSet:
    """The rules that are a function of a parameter's name and shape, to a spec, its text, or None."""

    def split(parameter: str, shape: tuple[int, ...]) -> object:
        try:
            given = function(parameter, shape)
        except Exception as error:
            reason = f"it fails for {parameter}: {type(error).__name__}: {quote(str(error), 200)[1:-1]}"
            raise RuleError(name, "", reason, "it is called with a name and a shape") from None
        return given if given is None or isinstance(given, str | PartitionSpec) else spec_of_jax(given, name)

    return RuleSet(name, "function", function=split)


def rules_text(
    ending: str,
    specs: Mapping[str, PartitionSpec],
    inputs: PartitionSpec,
    dims: Mapping[str, Sequence[str]],
    mesh: Mesh,
) -> str:
    """The text of a file of rules, by its `ending`: TOML has the specs of parameters by their names, YAML the
    `logical_axis_rules` of MaxText, and Python those of Flax, both for parameters with these `dims` and for
    the `inputs` [batch, sequence]. Raises `QuestionError` where no rules of logical axes give these specs."""
    if ending == "toml":
        rules = (f"'{re.escape(name)}$' = \"{write_spec(spec)}\"\n" for name, spec in specs.items())
        return f'inputs = "{write_spec(inputs)}"\n\n[rules]\n{"".join(rules)}'
    split = [(dims[name], spec) for name, spec in specs.items()]
    tokens = [("batch", inputs.dims[0]), ("length", inputs.dims[1])]
    pairs = [*tokens, *((rule.subject, rule.split) for rule in logical_rules(split, mesh))]
    if ending == "py":
        return "logical_axis_rules = (\n" + "".join(f"    {pair!r},\n" for pair in pairs) + ")\n"
    of_maxtext = {"batch": ["activation_batch"], "length": ["activation_length"], "experts": ["exp"]}
    of_maxtext["heads"] = ["heads", "q_heads"]
    rows = ([name, [*axes]] for subject, axes in pairs for name in of_maxtext.get(subject, [subject]))
    return f"{_LIST}: [\n" + "".join(f"  {json.dumps(row)},\n" for row in rows) + "]\n"


def spec_of_jax(given: object, name: str) -> PartitionSpec:
    """A `jax.sharding.PartitionSpec`, known by its class's name, as ours. Raises `RuleError` for another."""
    if type(given).__name__ not in _SPECS:
        hint = "give P('tensor', None), 'tensor _' or None"
        raise RuleError(name, "", f"{quote(repr(given), 60)} does not say how a parameter is split", hint)
    entries = getattr(given, "partitions", given)
    return PartitionSpec(tuple(_axes(entry) for entry in entries))  # type: ignore[attr-defined]


# The sets that ship, alone or together: ``fsdp``, ``fsdp+tensor``, ``X=fsdp+Y=tensor``.

AXES = ["vocab", "embed", "heads", "kv_heads", "qkv", "mlp", "experts"]
AXES += ["norm", "head_size", "router", "positions", "q_lora", "kv_lora"]
"""The logical axes of the parameters of an architecture: those that no set splits stay whole."""


@cache
def shipped_sets() -> dict[str, dict[str, Any]]:
    """Every set by its name: ``what`` it is, the dimensions that it splits and the usual axes for it."""
    return tomllib.loads(files(__package__).joinpath("shipped.toml").read_text(encoding="utf-8"))


def shipped_rules(text: str, mesh: Mesh) -> RuleSet:
    """The sets that a text names, for the axes of a mesh; an axis called after the batch always splits it.
    Raises `QuestionError` for an unknown set, and for one of which the mesh has no axis."""
    sets, axis_of = shipped_sets(), dict[str, str]()
    for piece in text.split("+"):
        axis, equals, name = (word.strip() for word in piece.rpartition("="))
        if name not in sets:
            hint = f"{did_you_mean(name, sets)}the sets are {', '.join(sets)}; or give a file"
            raise QuestionError(f"there are no rules called {quote(name)}", hint)
        if equals:
            mesh.axis_size(axis)  # refuses an axis that the mesh lacks
        axis_of[name] = axis if equals else _usual_axis(name, mesh, "+" not in text)
    if len(set(axis_of.values())) < len(axis_of):
        twice = next(axis for axis in axis_of.values() if list(axis_of.values()).count(axis) > 1)
        names = " and ".join(name for name, axis in axis_of.items() if axis == twice)
        problem = f"{names} share the axis {twice}"
        raise QuestionError(problem, "give each its own axis, as in X=fsdp+Y=tensor")
    split_over = {axis: sets[name]["split"] for name, axis in axis_of.items()}
    is_of_batch = {axis: axis in BATCH_AXES for axis in mesh.axis_names}
    is_of_batch |= {axis: "batch" in dims for axis, dims in split_over.items()}
    batch = tuple(axis for axis, is_split in is_of_batch.items() if is_split)
    rules = [
        ShardingRule(dim, (axis,), name)
        for name, axis in axis_of.items()
        for dim in split_over[axis]
        if dim != "batch"
    ]
    rules += [ShardingRule(dim, ()) for dim in AXES]
    return RuleSet(text, "logical", (ShardingRule("batch", batch), *rules), for_any_model=True)


def _usual_axis(name: str, mesh: Mesh, is_alone: bool) -> str:
    names = shipped_sets()[name]["axes"]
    axis = named_axis(mesh, names) if is_alone else next((n for n in names if n in mesh.axis_names), None)
    if axis is None:
        hint = f"call one {', '.join(names[:-1])} or {names[-1]}, or name it: {mesh.axis_names[0]}={name}"
        raise QuestionError(f"the mesh {mesh} has no axis for {name}", hint)
    return axis
