"""A question as a JAX program, and where JAX refuses it, its words and a sharding that it would accept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from inspect import Parameter, Signature
from itertools import islice, product
from typing import Any

import jax
import jax.numpy as jnp
from jax.errors import JaxRuntimeError
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

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
        self._is_explicit = question.mesh.is_explicit

    def trace(self) -> Any:
        """A `jax.stages.Traced`. Raises what JAX raises."""
        question = self.question
        given = [argument.name for argument in question.arguments]

        def program(*values: Any) -> Any:
            made = self._run(dict(zip(given, values, strict=True)))
            results = tuple(made[result.name] for result in question.results)
            return results if len(results) > 1 else results[0]

        # Under these names the compilers speak of the arguments.
        names = [name if name.isidentifier() else "_" for name in given]
        if len(set(names)) == len(names):
            parameters = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
            program.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        specs = [self._stacked_spec(result) for result in question.results]
        wanted = tuple(None if spec is None else named_sharding(self.mesh, spec) for spec in specs)
        options = {"out_shardings": wanted if len(wanted) > 1 else wanted[0]} if any(specs) else {}
        return jax.jit(program, **options).trace(*map(self._argument, question.arguments))

    def _argument(self, array: ShardedArray) -> Any:
        spec = self._stacked_spec(array)
        shape = (self.question.layers, *array.shape) if array.name in self.question.stacked else array.shape
        if spec is None and self._is_explicit:
            # A type always says how its array is split, so here an open choice means replicated.
            spec = PartitionSpec.replicated(len(shape))
        sharding = None if spec is None else named_sharding(self.mesh, spec)
        return jax.ShapeDtypeStruct(shape, jax_dtype(array.dtype), sharding=sharding)

    def _stacked_spec(self, array: ShardedArray) -> PartitionSpec | None:
        """The spec of an array of the program, of all runs where each has one of its own."""
        spec = array.spec
        return _stacked(spec) if spec is not None and array.name in self.question.stacked else spec

    def _run(self, values: dict[str, Any]) -> dict[str, Any]:
        """The arrays that the program returns, and others, from its arguments, all by name."""
        question = self.question
        if not question.gradients:
            return values | self._forward(values)
        with_gradients = {name: values[name] for name, _ in question.gradients}
        sources = [name for name, _ in question.cotangents]

        def differentiated(own: dict[str, Any]) -> Any:
            made = self._forward(values | own)
            return [made[name] for name in sources], made

        _, pull, made = jax.vjp(differentiated, with_gradients, has_aux=True)
        (gradients,) = pull([values[given] for _, given in question.cotangents])
        for name, gradient in question.gradients:
            value = gradients[name].astype(jax_dtype(gradient.dtype))
            made[gradient.name] = self._as_asked(value, gradient.spec)
        optimizer = [part for part in question.parts if not part.is_forward]
        return self._statements(values | made, optimizer)

    def _forward(self, values: dict[str, Any]) -> dict[str, Any]:
        """The results of the forward statements that are returned or have gradients. Each run works on the
        result of the one before, as its first argument, and on its own slices of the others."""
        question = self.question
        forward = [part for part in question.parts if part.is_forward]
        made = {part.result.name: part.result for part in forward}
        returned = [result.name for result in question.results if result.name in made]
        wanted = list(dict.fromkeys((*returned, *(name for name, _ in question.cotangents))))

        def once(own: dict[str, Any]) -> dict[str, Any]:
            arrays = self._statements(dict(own), forward)
            return {name: arrays[name] for name in wanted}

        if question.remat != "none":
            dots = jax.checkpoint_policies.dots_saveable
            once = jax.checkpoint(once, policy=dots if question.remat == "dots" else None)
        taken = {operand.name for part in forward for operand in part.operands} - made.keys()
        own = {name: values[name] for name in taken}
        if question.layers == 1:
            results: dict[str, Any] = once(own)
            return results
        last = made[question.results[-1].name]
        first = next(
            each
            for each in question.arguments
            if each.name in taken.difference(question.stacked, question.shared)
        )
        if (last.shape, last.dtype) != (first.shape, first.dtype):
            differs = "shape" if last.shape != first.shape else "dtype"
            problem = f"{last.name} cannot be the next layer's {first.name}: it has another {differs}"
            raise CompilerError(problem, "a program that runs several times returns what it takes first")

        shared = {name: own.pop(name) for name in question.shared if name in own}

        def layer(value: Any, own: dict[str, Any]) -> Any:
            arrays = once(own | shared | {first.name: value})
            return self._as_asked(arrays.pop(last.name), last.spec), arrays

        value, stacks = jax.lax.scan(layer, own.pop(first.name), own)
        return {**stacks, last.name: value}

    def _statements(self, values: dict[str, Any], parts: Sequence[StatementPart]) -> dict[str, Any]:
        """All arrays by name, with those that the statements make."""
        given = {array.name: array.spec for array in self.question.arguments}
        specs: dict[str, PartitionSpec | None] = {}
        self.reached = 0
        self.typeof.clear()
        for part in parts:
            operands = []
            for array in part.operands:
                operand = values[array.name]
                if array.name not in specs:
                    specs[array.name] = given.get(array.name)
                    self._note(array, operand)
                elif array.spec is not None and array.spec != specs[array.name]:
                    operand = self._as_asked(operand, array.spec)
                    self._note(array, operand)
                operands.append(operand)
            # Under the name of what it makes, the compilers speak of a statement's operations.
            with jax.named_scope(part.result.name) if len(self.question.parts) > 1 else nullcontext():
                value = self._value(part, operands)
            values[part.result.name] = value
            specs[part.result.name] = part.result.spec
            self._note(part.result, value)
            self.reached += 1
        return values

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
        last = part is self.question.parts[-1] and not self._is_explicit
        return value if is_told or last else self._as_asked(value, spec)

    def _as_asked(self, value: Any, spec: PartitionSpec | None) -> Any:
        """The value, split by a spec where there is one; of several runs, each run's part of it."""
        if spec is None:
            return value
        if len(value.shape) > len(spec.dims):
            spec = _stacked(spec)
        constrain = jax.sharding.reshard if self._is_explicit else jax.lax.with_sharding_constraint
        return constrain(value, named_sharding(self.mesh, spec))

    def _note(self, array: ShardedArray, value: Any) -> None:
        if self._is_explicit:
            self.typeof.append((array.name, str(jax.typeof(value))))


def _stacked(spec: PartitionSpec) -> PartitionSpec:
    """The spec of an array of which each layer has one, stacked in front."""
    return PartitionSpec(((), *spec.dims), spec.unreduced)


def jax_axes(axes: Sequence[str], mesh: Any) -> tuple[str, ...]:
    """Mesh axes, and parts of them, as a mesh of JAX's has them, of which parts are axes."""
    return in_parts(axes, mesh.axis_names)


def named_sharding(mesh: Any, spec: PartitionSpec) -> Any:
    entries = [axes[0] if len(axes) == 1 else axes or None for axes in (jax_axes(d, mesh) for d in spec.dims)]
    unreduced = {"unreduced": {*jax_axes(spec.unreduced, mesh)}} if spec.unreduced else {}
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
    accepted, refused = program.question.parts[: program.reached], program.question.parts[program.reached :]
    if not program.operand_specs or not refused or (part := refused[0]).result.spec is not None:
        return None
    for spec in islice(_candidates(part, program.operand_specs), 64):
        again = replace(part, result=part.result.with_spec(spec))
        asked = replace(program.question, parts=(*accepted, again), results=(again.result,), gradients=())
        with suppress(Exception):
            Program(asked, program.mesh).trace()
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
