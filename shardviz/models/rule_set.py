"""Rules for the parameters of a model, and the sharding that they give each; alike layers count as one.

The first pattern found in a parameter's name decides (EasyLM's `match_partition_rules`). Logical axes are
tried in order: each splits the dimension of its name where neither that nor its mesh axes are taken (Flax's
`logical_to_mesh_axes`). Python's regular expressions go back and try again, without end where one is
``(.*)*z``: those that may go back are searched in a process of their own, within a limit of time."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, permutations
from typing import Literal, TypeAlias

from shardviz.errors import QuestionError, ShardvizError, plural, quote
from shardviz.models.model import Model, ModelParameter
from shardviz.notation.notations import read_sharding
from shardviz.notation.reading import Context
from shardviz.sharding import Mesh, PartitionSpec, Uneven, array_bytes, shard_shape, uneven_dims

SplitOf: TypeAlias = "PartitionSpec | str | tuple[str, ...]"
"""What a rule gives: a spec, the text of one or a style of `STYLES`, the mesh axes of a logical axis."""
Kind: TypeAlias = Literal["patterns", "logical", "function", "annotations"]
STYLES = ("colwise", "rowwise")
"""Styles of Hugging Face's `base_model_tp_plan`, of weights [outputs, inputs]; ``_rep``: a whole result."""
SECONDS = 5.0
"""The longest that all patterns of a set may take together: a thousand times what those of a model need."""
MOST_ORDERS = 50_000
"""Orders of rules that are tried."""
_NEVER_BACK = re.compile(r"(?:[^\\*+?{(]|\\.|\+\+)*+", re.DOTALL)
"""Patterns without groups, and without repeats but ``++``, which gives nothing back."""
_SEARCH = """
import json, re, sys
patterns, names = json.load(sys.stdin)
found = [-1] * len(names)
for number, pattern in enumerate(patterns):
    print(number, flush=True)
    search = re.compile(pattern).search
    for place, name in enumerate(names):
        if found[place] < 0 and search(name):
            found[place] = number
print(json.dumps(found))
"""
"""Prints the number of each pattern before its search, and at the end that of the pattern of each name."""
TENSOR_AXES = ("tensor", "model", "mp", "tp")
BATCH_AXES = ("data", "fsdp", "dp", "zero", "replica", "batch", "expert", "ep")
"""Mesh axes that split the batch where nothing else is said."""
ALIASES = {
    "q_heads": "heads",
    "exp": "experts",
    "expert": "experts",
    "activation_batch": "batch",
    "length": "sequence",
    "activation_length": "sequence",
}
"""Names of logical axes in MaxText and T5X, and ours."""


class RuleError(QuestionError):
    """An error of a rule; `name` is that of its file or set, `place` its line there."""

    def __init__(self, name: str, place: str, reason: str, hint: str = "") -> None:
        where = ", ".join(filter(None, (quote(name, 200), place)))
        super().__init__(f"{where}: {reason}", hint)
        self.name, self.place, self.reason = name, place, reason


@dataclass(frozen=True)
class ShardingRule:
    """One rule: `subject` is a pattern or a logical axis, `place` where it stands (``line 3``)."""

    subject: str
    split: SplitOf
    place: str = ""


Pair: TypeAlias = "tuple[str, object, int]"
"""What a file of rules says: a subject, what it is given, and its line; 0 where that is not known."""
Split: TypeAlias = "tuple[PartitionSpec | None, list[ShardingRule]]"
"""The spec of a parameter, None where nothing is said of it, and the rules that say it."""


@dataclass(frozen=True)
class RuleSet:
    """Rules of one kind, in order. `function` gives of the kind "function" a spec, its text or None for a
    name and a shape; "annotations" are those that the parameters bring themselves. `inputs` is the spec of
    the tokens [batch, sequence], as text, "" where it is the usual one. `changes` are patterns that decide
    before all rules. With `for_any_model` a rule that matches nothing is not worth a word."""

    name: str
    kind: Kind
    rules: tuple[ShardingRule, ...] = ()
    inputs: str = ""
    changes: tuple[ShardingRule, ...] = ()
    for_any_model: bool = False
    function: Callable[[str, tuple[int, ...]], object] | None = None

    def splits(self, parameters: Sequence[ModelParameter], mesh: Mesh) -> Iterator[Split]:
        """The spec of each parameter, None where nothing is said of it, and the rules that say it. Raises
        `RuleError` for a spec that does not fit, and for patterns that take too long."""
        changes = self._first_found(self.changes, parameters)
        rules = self._first_found(self.rules if self.kind == "patterns" else (), parameters)
        for parameter, change, rule in zip(parameters, changes, rules, strict=True):
            decides = change or rule
            if change is None and self.kind == "patterns" and parameter.elements == 1:
                yield PartitionSpec.replicated(len(parameter.shape)), []
            elif decides is not None:
                yield self._spec(decides, parameter, mesh), [decides]
            elif self.kind == "logical":
                yield logical_spec(parameter.dims, self.rules, mesh)
            else:
                yield self._own_spec(parameter, mesh), []

    def _own_spec(self, parameter: ModelParameter, mesh: Mesh) -> PartitionSpec | None:
        given: object = parameter.spec if self.kind == "annotations" else None
        if self.function is not None:
            given = self.function(parameter.name, parameter.shape)
        elif given is None and self.kind == "annotations" and {*parameter.dims} & {*mesh.axis_names}:
            # Dimensions that are called after the mesh axes that split them.
            return PartitionSpec(tuple((dim,) * (dim in mesh.axis_names) for dim in parameter.dims))
        if given is None:
            return None
        return self._spec(ShardingRule(parameter.name, given), parameter, mesh)  # type: ignore[arg-type]

    def _first_found(
        self, rules: Sequence[ShardingRule], parameters: Sequence[ModelParameter]
    ) -> Sequence[ShardingRule | None]:
        for rule in rules:
            try:
                with warnings.catch_warnings(action="ignore"):
                    re.compile(rule.subject)
            except (re.error, OverflowError, RecursionError) as error:
                why = "its groups are too deep" if isinstance(error, RecursionError) else str(error)
                reason = f"{quote(rule.subject)} is not a regular expression: {why}"
                hint = "write . for any character, \\. for a dot"
                raise RuleError(self.name, rule.place, reason, hint) from None
        try:
            numbers = first_found(
                tuple(rule.subject for rule in rules), tuple(parameter.name for parameter in parameters)
            )
        except _PatternSearchError as error:
            rule = rules[error.number]
            reason = f"the search for {quote(rule.subject)} {error.reason}"
            hint = "do not repeat what repeats, as in (.*)*: write .* once"
            raise RuleError(self.name, rule.place, reason, hint) from None
        return [None if number < 0 else rules[number] for number in numbers]

    def _spec(self, rule: ShardingRule, parameter: ModelParameter, mesh: Mesh) -> PartitionSpec:
        rank = len(parameter.shape)
        try:
            if isinstance(rule.split, str):
                return _spec_of_text(rule.split, rank, parameter.dims, mesh)
            if not isinstance(rule.split, PartitionSpec):
                problem = f"{quote(repr(rule.split))} does not say how a parameter is split"
                raise QuestionError(problem, "give a spec for each pattern: 'tensor _' or P('tensor', None)")
            return _of_rank(rule.split, rank, mesh)
        except ShardvizError as error:
            reason = f"{quote(rule.subject)}, which {parameter.name} matches: {error.message}"
            raise RuleError(self.name, rule.place, reason, error.hint) from error


def logical_spec(
    dims: Sequence[str], rules: Sequence[ShardingRule], mesh: Mesh
) -> tuple[PartitionSpec | None, list[ShardingRule]]:
    """The spec that rules of logical axes give an array of these dimensions, None where no rule names one,
    and those that do. Axes that the mesh lacks are left out, as if they had one device."""
    axes_of: dict[int, tuple[str, ...]] = {}
    used: set[str] = set()
    matched = []
    for rule in rules:
        assert isinstance(rule.split, tuple)
        names = (rule.subject, ALIASES.get(rule.subject, rule.subject))
        if names[0] not in dims and names[1] not in dims:
            continue
        places = [index for index, dim in enumerate(dims) if dim in names]
        matched.append(rule)
        axes = tuple(axis for axis in rule.split if axis in mesh.axis_names)
        free = next((index for index in places if index not in axes_of), None)
        if free is not None and not used.intersection(axes):
            axes_of[free] = axes
            used.update(axes)
    if not matched:
        return None, []
    return PartitionSpec(tuple(axes_of.get(index, ()) for index in range(len(dims)))), matched


def logical_rules(
    split: Sequence[tuple[Sequence[str], PartitionSpec]], mesh: Mesh
) -> tuple[ShardingRule, ...]:
    """Rules of logical axes, in an order in which they give arrays of these dimensions these specs. Raises
    `QuestionError` where there are none."""
    wanted = dict.fromkeys(
        (dim, axes) for dims, spec in split for dim, axes in zip(dims, spec.dims, strict=True) if axes
    )
    for order in islice(permutations(wanted), MOST_ORDERS):
        rules = tuple(ShardingRule(dim, axes) for dim, axes in order)
        given = (logical_spec(dims, rules, mesh)[0] or spec for dims, spec in split)
        if all(own.dims == spec.dims for own, (_, spec) in zip(given, split, strict=True)):
            return rules
    problem = "no rules of logical axes give these specs, which split one axis differently in two matrices"
    raise QuestionError(problem, "write them by name: -o rules.toml")


@lru_cache(maxsize=4096)
def _spec_of_text(text: str, rank: int, dims: tuple[str, ...], mesh: Mesh) -> PartitionSpec:
    word = text.strip().lower()
    if word in ("replicated", "replicate", "none"):
        return PartitionSpec.replicated(rank)
    if (style := word.removesuffix("_rep")) in STYLES:
        return _of_style(style, rank, dims, mesh)
    return _of_rank(read_sharding(text, Context(mesh, rank)).spec, rank, mesh)


def _of_rank(spec: PartitionSpec, rank: int, mesh: Mesh) -> PartitionSpec:
    """The spec with an entry for each dimension: a PartitionSpec may leave out those at its end."""
    if spec.rank > rank:
        problem = f"{spec} splits {plural(spec.rank, 'dimension')}, and the parameter has {rank}"
        raise QuestionError(problem, "write a rule for it above this one")
    whole = PartitionSpec((*spec.dims, *((),) * (rank - spec.rank)), spec.unreduced, (), spec.devices)
    whole.check(mesh, rank)
    if whole.unreduced or whole.devices:
        raise QuestionError(f"{spec} is not a split of a parameter", "name mesh axes alone")
    return whole


def _of_style(style: str, rank: int, dims: tuple[str, ...], mesh: Mesh) -> PartitionSpec:
    """``colwise`` splits outputs, ``rowwise`` inputs, of an embedding words (`torch`'s RowwiseParallel)."""
    axis = named_axis(mesh, TENSOR_AXES)
    if axis is None:
        problem = f"{style} needs a tensor axis, and the mesh {mesh} has none"
        raise QuestionError(problem, f"call one {', '.join(TENSOR_AXES[:-1])} or {TENSOR_AXES[-1]}")
    if rank == 1:
        return PartitionSpec(((axis,) if style == "colwise" else (),))
    of_words = style == "rowwise" and dims[:1] == ("vocab",)
    index = rank - 2 if style == "colwise" or of_words else rank - 1
    return PartitionSpec(tuple((axis,) if number == index else () for number in range(rank)))


def named_axis(mesh: Mesh, names: Sequence[str]) -> str | None:
    """The first of some axes that a mesh has; its only axis where it has one."""
    if len(mesh.axis_names) == 1:
        return mesh.axis_names[0]
    return next((name for name in names if name in mesh.axis_names), None)


def inputs_spec(rules: RuleSet, mesh: Mesh, given: str = "") -> PartitionSpec:
    """The spec of the tokens [batch, sequence]: the one `given`, that of the rules, else the batch split over
    the axes that are called after it. Raises `QuestionError` for text that is not one."""
    text = given or rules.inputs
    if text:
        return _spec_of_text(text, 2, ("batch", "sequence"), mesh)
    if rules.kind == "logical":
        spec, _ = logical_spec(("batch", "sequence"), rules.rules, mesh)
        if spec is not None:
            return spec
    return PartitionSpec((tuple(axis for axis in mesh.axis_names if axis in BATCH_AXES), ()))


class _PatternSearchError(Exception):
    """The search for the pattern whose number was `printed` last has not come to its end, for a `reason`."""

    def __init__(self, printed: bytes | None, reason: str) -> None:
        super().__init__(printed, reason)
        self.number, self.reason = int((printed or b"0").split()[-1]), reason


@lru_cache(maxsize=32)
def first_found(patterns: tuple[str, ...], names: tuple[str, ...]) -> Sequence[int]:
    """By name the number of the first pattern found in it, or -1. Raises `_PatternSearchError`."""
    if all(map(_NEVER_BACK.fullmatch, patterns)):
        searches = [re.compile(pattern).search for pattern in patterns]
        found = ((number for number, search in enumerate(searches) if search(name)) for name in names)
        return [next(numbers, -1) for numbers in found]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-W", "ignore", "-c", _SEARCH],
            input=json.dumps((patterns, names)).encode(),
            stdout=subprocess.PIPE,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise _PatternSearchError(error.stdout, f"takes more than {SECONDS:g} s") from None
    except subprocess.CalledProcessError as error:
        raise _PatternSearchError(error.stdout, "takes too much memory") from None
    except OSError as error:
        raise _PatternSearchError(None, f"cannot start a process: {error.strerror}") from None
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


# Rules × parameters, and repeated layers as one.


@dataclass(frozen=True)
class SplitParameter:
    """A parameter and its sharding; without `is_matched` no rule says it, and every device has all."""

    parameter: ModelParameter
    spec: PartitionSpec
    mesh: Mesh
    is_matched: bool = True

    @cached_property
    def shard_shape(self) -> tuple[int, ...]:
        """The shape of one device's piece, padded where its axes do not divide."""
        return shard_shape(self.parameter.shape, self.spec, self.mesh)

    @cached_property
    def bytes_per_device(self) -> int:
        return array_bytes(self.shard_shape, self.parameter.dtype)

    @property
    def replicas(self) -> int:
        """The number of devices that hold the same data."""
        return self.mesh.size // self.mesh.group_size(self.spec.axes)

    @property
    def uneven(self) -> tuple[Uneven, ...]:
        """The dimensions that their axes do not divide: JAX refuses such an array."""
        return uneven_dims(self.parameter.shape, self.spec, self.mesh)


@dataclass(frozen=True)
class SplitModel:
    """A model whose parameters are split by rules; `unused` are the rules that no parameter matched."""

    model: Model
    rules: RuleSet
    mesh: Mesh
    parameters: tuple[SplitParameter, ...]
    unused: tuple[ShardingRule, ...]

    @property
    def unmatched(self) -> tuple[SplitParameter, ...]:
        """The parameters of which no rule says anything."""
        return tuple(parameter for parameter in self.parameters if not parameter.is_matched)

    @property
    def uneven(self) -> tuple[SplitParameter, ...]:
        """The parameters with a dimension that its axes do not divide."""
        return tuple(parameter for parameter in self.parameters if parameter.uneven)

    @property
    def bytes_per_device(self) -> int:
        return sum(parameter.bytes_per_device for parameter in self.parameters)


def split_model(model: Model, rules: RuleSet, mesh: Mesh) -> SplitModel:
    """The model, split by the rules. Raises `RuleError` for one that does not fit a parameter or the mesh."""
    used: set[ShardingRule] = set()
    parameters = []
    splits = rules.splits(model.parameters, mesh)
    for parameter, (spec, matched) in zip(model.parameters, splits, strict=True):
        used.update(matched)
        whole = PartitionSpec.replicated(len(parameter.shape))
        parameters.append(SplitParameter(parameter, spec or whole, mesh, spec is not None))
    asked = [*rules.changes, *(() if rules.for_any_model else rules.rules)]
    if rules.kind == "logical":
        # Activations, of which T5X, Flax and MaxText have logical axes, have no parameters.
        asked = [each for each in asked if not each.subject.startswith("activation")]
        used.update(each for each in asked if each.subject in ("batch", "sequence", "length"))
    unused = tuple(rule for rule in asked if rule not in used)
    return SplitModel(model, rules, mesh, tuple(parameters), unused)


_NUMBER = re.compile(r"(?<![^./])\d+(?![^./])|(?<=layers_)\d+|(?<=layer_)\d+|(?<=blocks_)\d+|(?<=block_)\d+")
"""The number of a layer: a part of a path, ``layers.12.w1``, or behind a word for it, ``layers_12``."""


@dataclass(frozen=True)
class FoldedParameter:
    """Parameters alike but for numbers in their names: ``model.layers.0–31.mlp.up_proj.weight``."""

    name: str
    first: SplitParameter
    count: int

    @property
    def elements(self) -> int:
        return self.count * self.first.parameter.elements

    @property
    def bytes_per_device(self) -> int:
        return self.count * self.first.bytes_per_device


def folded(parameters: Iterable[SplitParameter]) -> tuple[FoldedParameter, ...]:
    """All parameters, those that are alike as one, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[SplitParameter]] = {}
    for parameter in parameters:
        own, split = parameter.parameter, (parameter.spec, parameter.is_matched)
        key = (_NUMBER.sub("#", own.name), own.shape, own.dtype, own.spec, split)
        groups.setdefault(key, []).append(parameter)
    found: list[FoldedParameter] = []
    for group in groups.values():
        numbers = [_NUMBER.findall(parameter.parameter.name) for parameter in group]
        ranges = [sorted(set(map(int, column))) for column in zip(*numbers, strict=True)]
        if math.prod(map(len, ranges)) == len(group):
            pieces, words = _NUMBER.split(group[0].parameter.name), [*map(number_ranges, ranges), ""]
            name = "".join(piece + word for piece, word in zip(pieces, words, strict=True))
            found.append(FoldedParameter(name, group[0], len(group)))
        else:  # some combination of their numbers is missing
            found += [FoldedParameter(parameter.parameter.name, parameter, 1) for parameter in group]
    return tuple(found)


def number_ranges(numbers: Sequence[int]) -> str:
    """``0–31``; ``0,2–5,9`` of numbers in order; of six runs and more the first two and the last."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [f"{first}–{last}" if last > first else str(first) for first, last in runs]
    return ",".join(words if len(words) < 6 else [*words[:2], "…", words[-1]])
