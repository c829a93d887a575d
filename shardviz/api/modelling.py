"""`shardviz.model`: every parameter of a model, split by rules, and what a step of it costs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from shardviz.api.arguments import MachineLike, MeshLike, as_machine, as_mesh
from shardviz.api.shown import Shown
from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.models.answer import ModelAnswer, answered, model_question
from shardviz.models.model import Model, ModelParameter
from shardviz.models.rule_files import function_rules, named_rules, rules_of_pairs, spec_of_jax
from shardviz.models.rule_set import RuleSet, SplitParameter
from shardviz.models.serving import ServingAnswer, serving_answer
from shardviz.models.sources import read_model
from shardviz.planner.problem.training import parse_training
from shardviz.sharding import Mesh, PartitionSpec, canonical_dtype
from shardviz.targets.hardware import placed_for

with LazyImports():
    from shardviz.documents import fields, programs
    from shardviz.render import model_view

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.render.palette import Palette

ModelLike: TypeAlias = "str | PathLike[str] | Model | Any"
"""``"llama-3-8b"``, the path of a file or folder, a pytree whose leaves have a shape and a dtype."""
RulesLike: TypeAlias = (
    "str | PathLike[str] | Mapping[str, Any] | Sequence[tuple[str, Any]] "
    "| Callable[[str, tuple[int, ...]], Any] | None"
)
"""``"fsdp+tensor"``, the path of a file, pairs of patterns and specs or of logical axes and mesh axes, a
function of a name and a shape; None for the parameters' own shardings or annotations."""


@dataclass(frozen=True, repr=False)
class ModelReport(Shown, ModelAnswer):
    """The answer of `shardviz model`: the sharded model with mesh, tokens and machine (`question`), bytes per
    device (`memory`), and the plan of a step (`step`)."""

    @property
    def parameters(self) -> tuple[SplitParameter, ...]:
        """Every parameter with its spec."""
        return self.question.split.parameters

    @property
    def bytes_per_device(self) -> int:
        """Bytes per device for all parameters."""
        return self.memory.parameters

    def lines(self, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
        return model_view.model_lines(self, width, palette, verbose)

    def document(self) -> dict[str, Any]:
        return programs.model_document(self)


def model(
    source: ModelLike,
    *,
    rules: RulesLike = None,
    mesh: MeshLike,
    machine: MachineLike = None,
    dtype: str = "",
    batch: int | None = None,
    sequence: int | None = None,
    inputs: str = "",
    load: str | float = "",
    backward: bool = True,
    remat: Literal["none", "layer", "dots"] = "layer",
    optimizer: str = "adam",
) -> ModelReport:
    """Shard every parameter of a model by rules; return the memory per device and the collectives of a step.

    - `source`: a name such as ``"llama-3-8b"``, a file or folder, or a pytree of arrays or shapes.
    - `rules`: names of sets (``"fsdp+tensor"``), the path of a file, pairs of a regular expression and a spec
      or of a logical axis and mesh axes, or a function of a name and a shape; default: the parameters' own
      shardings or annotations.
    - `batch`, `sequence`, `inputs`: a step has `batch` sequences of `sequence` tokens, sharded by `inputs`
      (``"data _"``).
    - `load`: how many times as often as the mean the fullest expert is chosen, perhaps with a capacity factor
      behind, ``"1.5,1.25"``.
    - `backward`: False is the forward pass alone.

    Raises `QuestionError` for a model, rules or a mesh that cannot be read or do not fit one another."""
    devices = as_mesh(mesh)
    question = model_question(
        as_model(source),
        as_rules(rules, devices),
        placed_for(as_machine(machine), (), devices),
        devices,
        training=parse_training(backward, remat, optimizer, devices) if backward else None,
        dtype=dtype,
        batch=batch,
        sequence=sequence,
        inputs=inputs,
        load=load,
    )
    return ModelReport(**vars(answered(question)))


@dataclass(frozen=True, repr=False)
class ServingReport(Shown, ServingAnswer):
    """The answer of `shardviz model --serve`: a `decode` step, others by `batches`, and the `prefill`."""

    def lines(self, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
        return model_view.serving_lines(self, width, palette, verbose)

    def document(self) -> dict[str, Any]:
        return fields.KINDS["serving"].document(self)


def serving(
    source: ModelLike,
    *,
    rules: RulesLike = None,
    mesh: MeshLike,
    machine: MachineLike = None,
    dtype: str = "",
    cache: str = "",
    activations: str = "",
    batch: int | None = None,
    sequence: int | None = None,
    inputs: str = "",
    load: str | float = "",
) -> ServingReport:
    """Return the time of a token and of a prompt of inference with a model, and what fits.

    `batch` sequences are decoded at once, each with `sequence` tokens in the KV cache, which are those of a
    prompt too. `dtype` is that of the weights, `cache` that of keys and values; others are as for `model`,
    and so are the errors."""
    devices = as_mesh(mesh)
    answer = serving_answer(
        as_model(source),
        as_rules(rules, devices),
        placed_for(as_machine(machine), (), devices),
        devices,
        dtype=dtype,
        cache=cache,
        activations=activations,
        batch=batch,
        sequence=sequence,
        inputs=inputs,
        load=load,
    )
    return ServingReport(answer.question, answer.cache_dtype, answer.decode)


def as_model(source: ModelLike) -> Model:
    """The model. Raises `QuestionError` for what is not one."""
    if isinstance(source, Model):
        return source
    return read_model(fspath(source)) if isinstance(source, str | PathLike) else pytree_model(source)


def as_rules(rules: RulesLike, mesh: Mesh) -> RuleSet:
    """The rules. Raises `QuestionError` for what are not any."""
    if rules is None:
        return RuleSet("as annotated", "annotations")
    if isinstance(rules, RuleSet):
        return rules
    if isinstance(rules, str | PathLike):
        return named_rules(fspath(rules), mesh)
    if callable(rules):
        return function_rules(rules, getattr(rules, "__name__", "function"))
    pairs = rules.items() if isinstance(rules, Mapping) else rules
    try:
        plain = (NoneType, str, list, tuple)  # a spec of JAX was once a tuple's subclass
        entries = [
            (str(subject), value if type(value) in plain else spec_of_jax(value, "rules"), 0)
            for subject, value in pairs
        ]
    except (TypeError, ValueError):
        problem = f"{quote(repr(rules), 60)} are not rules"
        raise QuestionError(problem, "give [('q_proj', P('tensor', None)), …] or a name") from None
    return rules_of_pairs(entries, "rules")


def pytree_model(tree: Any, name: str = "model") -> Model:
    """The model of a tree of parameters, whose names are their paths, joined by ``/``. Leaves without a shape
    and a dtype, such as functions, are left out. Raises `QuestionError` for a tree without parameters, and
    for a dtype that is not known."""
    named = ((path, leaf, leaf.value if _is_box(leaf) else leaf) for path, leaf in _leaves(tree))
    parameters = tuple(_parameter("/".join(path), *pair) for path, *pair in named if _is_array(pair[1]))
    if not parameters:
        problem = f"{quote(repr(tree), 60)} has no leaves with a shape and a dtype"
        raise QuestionError(problem, "give a name such as llama-3-8b, a file, or a tree from jax.eval_shape")
    return Model(name, f"a {type(tree).__name__}", parameters)


def _leaves(tree: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths and leaves: by JAX where it is loaded, which knows libraries' classes, else of plain trees."""
    jax = sys.modules.get("jax")
    if jax is not None:
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_box)[0]:
            yield tuple(map(_key, path)), leaf
        return
    if isinstance(tree, Mapping):
        children = [(str(key), child) for key, child in tree.items()]
    elif isinstance(tree, list | tuple):
        children = [(str(index), child) for index, child in enumerate(tree)]
    else:
        yield (), tree
        return
    for key, child in children:
        yield from (((key, *path), leaf) for path, leaf in _leaves(child))


def _key(entry: Any) -> str:
    """The word of an entry of JAX's paths: a key of a dictionary, a place in a list, an attribute."""
    key = next((getattr(entry, word) for word in ("key", "idx", "name") if hasattr(entry, word)), entry)
    return str(key)


def _is_box(node: Any) -> bool:
    return hasattr(node, "value") and (
        hasattr(node, "names") or callable(getattr(node, "get_metadata", None))
    )


def _is_array(value: Any) -> bool:
    shape = getattr(value, "shape", None)
    # Random keys, ``key<fry>``, are not parameters.
    return isinstance(shape, tuple) and hasattr(value, "dtype") and not str(value.dtype).startswith("key<")


def _parameter(name: str, leaf: Any, array: Any) -> ModelParameter:
    shape, dtype = tuple(map(int, array.shape)), canonical_dtype(str(array.dtype))
    entries = _annotations(leaf)
    if entries is None or len(entries) != len(shape):
        spec = getattr(getattr(array, "sharding", None), "spec", None)
        entries = () if spec is None else tuple(getattr(spec, "partitions", spec))
        return ModelParameter(name, shape, dtype, (), _spec(entries, len(shape)))
    is_by_dims = all(entry is None or isinstance(entry, str) for entry in entries)
    names = tuple(entry if isinstance(entry, str) else "" for entry in entries)
    return ModelParameter(name, shape, dtype, names, None if is_by_dims else _spec(entries, len(shape)))


def _annotations(leaf: Any) -> tuple[Any, ...] | None:
    """The names of a leaf's dimensions that its box has; None where there are none."""
    if not _is_box(leaf):
        return None
    if hasattr(leaf, "names"):
        return tuple(leaf.names)
    metadata = leaf.get_metadata()
    sharding = next(
        (metadata[key] for key in ("out_sharding", "sharding_names", "sharding") if metadata.get(key)), None
    )
    return None if sharding is None else tuple(getattr(sharding, "partitions", sharding))


def _spec(entries: tuple[Any, ...], rank: int) -> PartitionSpec | None:
    if not entries:
        return None
    dims = tuple(
        () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry) for entry in entries
    )
    return PartitionSpec((*dims, *((),) * (rank - len(dims))))
