"""A question as a JAX program, and where JAX refuses it, its words and a sharding that it would accept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from inspect import Parameter, Signature
from itertools import islice, product
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
from jax.errors import JaxRuntimeError
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.compiler.messages import Question, StatementPart, TargetMesh
from shardviz.errors import CompilerError, QuestionError, ShardvizError
from shardviz.sharding import PartitionSpec, ShardedArray
from shardviz.sharding.array import jax_name
from shardviz.sharding.axis_parts import in_parts, joined_parts
from shardviz.targets import older_than


class Program:
    """One question on one JAX mesh, abstract or of devices.

    Under Explicit axes tracing notes in `typeof` what `jax.typeof` says of each array, as (name, text), and
    in `operand_specs` how the next statement's operands are split; `reached` counts those JAX accepted."""

    def __init__(self, question: Question, mesh: Any) -> None:
        self.question, self.mesh = question, mesh
        self.typeof: list[tuple[str, str]] = []
        self.operand_specs: tuple[PartitionSpec | None, ...] = ()
        self.reached = 0
        self._specs: dict[str, PartitionSpec | None] = {}
        self._is_explicit = question.mesh.is_explicit

    def trace(self) -> Any:
        """A `jax.stages.Traced`. Raises what JAX raises."""
        question, written = self.question, {"jax": jax, "jnp": jnp, "module": self}
        exec(question.program, written)
        program: Any = written["program"]
        # Under these names the compilers speak of the arguments.
        names = [each.name if each.name.isidentifier() else "_" for each in question.arguments]
        if len(set(names)) == len(names):
            parameters = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
            program.__signature__ = Signature(parameters)
        specs = [result.spec for result in question.results]
        wanted = tuple(None if spec is None else named_sharding(self.mesh, spec) for spec in specs)
        options = {"out_shardings": wanted if len(wanted) > 1 else wanted[0]} if any(specs) else {}
        return jax.jit(program, **options).trace(*map(self._argument, question.arguments))

    def _argument(self, array: ShardedArray) -> Any:
        spec = array.spec
        if spec is None and self._is_explicit:
            # A type always says how its array is split, so here an open choice means replicated.
            spec = PartitionSpec.replicated(len(array.shape))
        sharding = None if spec is None else named_sharding(self.mesh, spec)
        return jax.ShapeDtypeStruct(array.shape, jax_dtype(array.dtype), sharding=sharding)

    # What the question's program calls.

    def refuse(self, problem: str) -> NoReturn:
        raise CompilerError(problem, "a program that runs several times returns what it takes first")

    def statement(self, index: int, *values: Any) -> Any:
        """The result of one of the question's statements, of its operands."""
        if not index:
            self._specs.clear()
            self.typeof.clear()
        part, operands, specs = self.question.parts[index], list[Any](), self._specs
        for array, value in zip(part.operands, values, strict=True):
            if array.name not in specs:
                specs[array.name] = array.spec
                self._note(array, value)
            elif array.spec is not None and array.spec != specs[array.name]:
                value = self.split(value, array.spec.dims, array.spec.unreduced)
                self._note(array, value)
            operands.append(value)
        # Under the name of what it makes, the compilers speak of a statement's operations.
        with jax.named_scope(part.result.name) if len(self.question.parts) > 1 else nullcontext():
            made = self._value(part, operands)
        specs[part.result.name] = part.result.spec
        self._note(part.result, made)
        self.reached = index + 1
        return made

    def _value(self, part: StatementPart, operands: Sequence[Any]) -> Any:
        """The result of a statement, split as the question says."""
        spec, mesh = part.result.spec, self.question.mesh
        if self._is_explicit:
            split = ((jax.typeof(operand).sharding, operand.ndim) for operand in operands)
            self.operand_specs = tuple(spec_of(sharding, mesh, rank) for sharding, rank in split)
        is_told = "wanted" in part.code
        wanted = named_sharding(self.mesh, spec) if is_told and spec is not None else None
        # Shardy before jax 0.10 leaves functions alone, or dies of them: JAX is not to leave any.
        is_flat = mesh.target == "shardy" and older_than(jax.__version__, "0.10")
        with jax.disable_jit() if is_flat else nullcontext():
            value = eval(part.code, {"jax": jax, "jnp": jnp, "operands": operands, "wanted": wanted})
        last = part.is_last and not self._is_explicit
        return value if is_told or last or spec is None else self.split(value, spec.dims, spec.unreduced)

    def split(self, value: Any, dims: tuple[tuple[str, ...], ...], unreduced: tuple[str, ...]) -> Any:
        """The value, split by a spec; that of all runs together by the spec of one."""
        spec = PartitionSpec(((),) * (len(value.shape) - len(dims)) + dims, unreduced)
        constrain = jax.sharding.reshard if self._is_explicit else jax.lax.with_sharding_constraint
        return constrain(value, named_sharding(self.mesh, spec))

    def _note(self, array: ShardedArray, value: Any) -> None:
        if self._is_explicit:
            self.typeof.append((array.name, str(jax.typeof(value))))


def named_sharding(mesh: Any, spec: PartitionSpec) -> Any:
    *dims, pending = (in_parts(axes, mesh.axis_names) for axes in (*spec.dims, spec.unreduced))
    entries = [axes[0] if len(axes) == 1 else axes or None for axes in dims]
    unreduced = {"unreduced": {*pending}} if pending else {}
    return NamedSharding(mesh, P(*entries, **unreduced))


def axis_types(mesh: TargetMesh) -> tuple[Any, ...]:
    """The type of every mesh axis, as the meshes of JAX take them."""
    return (AxisType.Explicit if mesh.is_explicit else AxisType.Auto,) * len(mesh.jax_axes)


def jax_dtype(name: str) -> Any:
    """The JAX type of an HLO element type; `CompilerError` where JAX has none."""
    dtype = getattr(jnp, jax_name(name), None)
    if dtype is None:
        raise CompilerError(f"JAX {jax.__version__} has no arrays of {name}", "use bf16, f32 or s8")
    return dtype


def spec_of(sharding: Any, mesh: TargetMesh, rank: int) -> PartitionSpec | None:
    """A sharding that JAX decided on; None when it follows no axes of the mesh."""
    if isinstance(sharding, NamedSharding) and tuple(sharding.mesh.axis_names) == mesh.jax_names:
        # Before 0.10 a spec has no attribute of that name; since then one with pending sums is not iterated.
        partitions = getattr(sharding.spec, "partitions", sharding.spec)
        entries = [(entry,) if isinstance(entry, str) else entry or () for entry in partitions]
        sizes = mesh.mesh.shape
        dims = tuple(joined_parts(axes, sizes) for axes in (*entries, *((),) * (rank - len(entries))))
        return PartitionSpec(dims, joined_parts(sorted(sharding.spec.unreduced), sizes))
    return PartitionSpec.replicated(rank) if sharding.is_fully_replicated else None


_INTERNAL = re.compile(r" ?(-{10,}|This error occurs at source:|see current operation:).*")
"""What JAX appends about its own insides, and about files of this package."""


def words_of(error: Exception, most: int = 400) -> str:
    """The words of JAX or XLA, `most` characters, on one line, after the exception's name if that tells."""
    text = _INTERNAL.sub("", " ".join(str(error).split())) or repr(error)
    if len(text) > most:
        text = f"{text[:most]}…"
    return text if isinstance(error, JaxRuntimeError) else f"{type(error).__name__}: {text}"


def refusal_by(error: Exception) -> ShardvizError:
    """An error of ours in the words of JAX or XLA; one of ours as it is."""
    return error if isinstance(error, ShardvizError) else CompilerError(words_of(error))


def settled_by(program: Program) -> tuple[str, PartitionSpec] | None:
    """The name of the refused statement's result, and a spec for it with which JAX accepts the statement:
    asked, not guessed. None where another than a result that is not said is the reason."""
    parts, index = program.question.parts, program.reached
    if not program.operand_specs or index == len(parts) or (part := parts[index]).result.spec is not None:
        return None
    for spec in islice(_candidates(part, program.operand_specs), 64):
        again = replace(part, result=part.result.with_spec(spec))
        trial = Program(replace(program.question, parts=(*parts[:index], again)), program.mesh)
        with suppress(Exception):  # at the latest where the next statement is missing
            trial.trace()
        if trial.reached > index:
            return part.result.name, spec
    return None


def _candidates(part: StatementPart, specs: Sequence[PartitionSpec | None]) -> Iterator[PartitionSpec]:
    """Each dimension split as an operand splits it, or whole; the most natural first."""
    operands = [(array.dims, spec.dims) for array, spec in zip(part.operands, specs, strict=True) if spec]
    choices = []
    for dim in part.result.dims:
        splits = [split[dims.index(dim)] for dims, split in operands if dim in dims]
        choices.append(dict.fromkeys([*splits, ()]))
    for dims in product(*choices):
        with suppress(QuestionError):  # an axis twice
            yield PartitionSpec(dims)
