"""The parameters of a pytree: leaves with a shape and a dtype, as `jax.eval_shape` makes them.

The annotations of Flax are read from the boxes around leaves: Linen's `nn.Partitioned` and
`nn.LogicallyPartitioned`, NNX's variables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from shardviz.errors import QuestionError, quote
from shardviz.models.model import Model
from shardviz.models.parameter import ModelParameter
from shardviz.sharding import PartitionSpec, canonical_dtype

_KEY = "key<"
"""The dtypes of random keys begin so; they are not parameters."""


def pytree_model(tree: Any, name: str = "model") -> Model:
    """The model of a tree of parameters, whose names are their paths, joined by ``/``.

    Leaves without a shape and a dtype, such as functions, are left out. Raises `QuestionError` for a tree
    without parameters, and for a dtype that is not known.
    """
    parameters = tuple(_parameter("/".join(path), leaf) for path, leaf in _leaves(tree) if _is_array(leaf))
    if not parameters:
        raise QuestionError(
            f"{quote(repr(tree), 60)} has no leaves with a shape and a dtype",
            "give a name such as llama-3-8b, a file, or a tree from jax.eval_shape",
        )
    return Model(name, f"a {type(tree).__name__}", parameters)


def _leaves(tree: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths and leaves: by JAX where it is loaded, which knows the classes of libraries, else of
    dictionaries, lists and tuples."""
    jax = sys.modules.get("jax")
    if jax is not None:
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_box)[0]:
            yield tuple(map(_key, path)), leaf
        return
    if isinstance(tree, Mapping):
        children = [(str(key), child) for key, child in tree.items()]
    elif isinstance(tree, list | tuple):
        children = [(str(place), child) for place, child in enumerate(tree)]
    else:
        yield (), tree
        return
    for key, child in children:
        yield from (((key, *path), leaf) for path, leaf in _leaves(child))


def _key(entry: Any) -> str:
    """The word of an entry of JAX's paths: a key of a dictionary, a place in a list, an attribute."""
    found = next((getattr(entry, word) for word in ("key", "idx", "name") if hasattr(entry, word)), entry)
    return str(found)


def _is_box(node: Any) -> bool:
    """The node is a leaf in a box that has annotations."""
    return hasattr(node, "value") and (
        hasattr(node, "names") or callable(getattr(node, "get_metadata", None))
    )


def _is_array(leaf: Any) -> bool:
    inner = _inner(leaf)
    shape = getattr(inner, "shape", None)
    return isinstance(shape, tuple) and hasattr(inner, "dtype") and not str(inner.dtype).startswith(_KEY)


def _inner(leaf: Any) -> Any:
    return leaf.value if _is_box(leaf) else leaf


def _parameter(name: str, leaf: Any) -> ModelParameter:
    inner = _inner(leaf)
    shape = tuple(map(int, inner.shape))
    entries = _annotations(leaf)
    if entries is None or len(entries) != len(shape):
        spec = getattr(getattr(inner, "sharding", None), "spec", None)
        entries = () if spec is None else tuple(getattr(spec, "partitions", spec))
        return ModelParameter(name, shape, canonical_dtype(str(inner.dtype)), (), _spec(entries, len(shape)))
    is_by_dims = all(entry is None or isinstance(entry, str) for entry in entries)
    return ModelParameter(
        name,
        shape,
        canonical_dtype(str(inner.dtype)),
        tuple(entry if isinstance(entry, str) else "" for entry in entries),
        None if is_by_dims else _spec(entries, len(shape)),
    )


def _annotations(leaf: Any) -> tuple[Any, ...] | None:
    """The names of a leaf's dimensions that its box has; None where there are none."""
    if not _is_box(leaf):
        return None
    if hasattr(leaf, "names"):
        return tuple(leaf.names)
    metadata = leaf.get_metadata()
    found = next(
        (metadata[key] for key in ("out_sharding", "sharding_names", "sharding") if metadata.get(key)), None
    )
    return None if found is None else tuple(getattr(found, "partitions", found))


def _spec(entries: tuple[Any, ...], rank: int) -> PartitionSpec | None:
    """The spec of a sharding's entries; None where there are none."""
    if not entries:
        return None
    dims = tuple(
        () if each is None else (each,) if isinstance(each, str) else tuple(each) for each in entries
    )
    return PartitionSpec((*dims, *((),) * (rank - len(dims))))
