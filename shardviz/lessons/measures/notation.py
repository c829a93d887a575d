"""Shardings as they are written: an answer in any notation is the same where it means the same."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.kinds import Kind
from shardviz.lessons.measures.subject import array_named
from shardviz.lessons.table import closest

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.lessons.measures.answer import Answer
    from shardviz.notation import Context
    from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

KEYS = {"book": "book", "pspec": "jax", "einshard": "einshard", "shardlib": "shardlib", "string": "shardviz"}
"""The notations as lessons call them, with the keys of `shardviz.notation.NOTATIONS`."""


def spelled(scene: ResolvedProblem, array: str, notation: str) -> Answer:
    """The sharding of an array in a notation."""
    return _spec_answer(array_named(scene, array), scene.problem.mesh, notation)


def result_spec(scene: ResolvedProblem, notation: str = "string") -> Answer:
    """The sharding of the plan's result."""
    result = scene.problem.result.with_spec(scene.plan.result_spec)
    return _spec_answer(result, scene.problem.mesh, notation)


def _spec_answer(array: ShardedArray, mesh: Mesh, notation: str) -> Answer:
    if notation not in KEYS:
        raise QuestionError(f"there is no notation {quote(notation, 30)}", closest(notation, tuple(KEYS)))
    kind = Kind(partial(_read, array, mesh), partial(_write, array, mesh, KEYS[notation]))
    return kind.answer(array.decided_spec)


def _read(array: ShardedArray, mesh: Mesh, text: str) -> PartitionSpec:
    from shardviz.notation import read_sharding

    return read_sharding(text, _context(array, mesh)).spec


def _write(array: ShardedArray, mesh: Mesh, key: str, spec: PartitionSpec) -> str:
    from shardviz.notation import Reading, find_notation

    name = array.name if key == "book" else None
    reading = Reading(spec, dims=array.dims, shape=array.shape, dtype=array.dtype, name=name)
    return find_notation(key).write(reading, _context(array, mesh))


def _context(array: ShardedArray, mesh: Mesh) -> Context:
    from shardviz.notation import Context

    return Context(mesh, array.rank, dict(zip(array.dims, array.shape, strict=True)))
