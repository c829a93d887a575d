"""A question as a JAX program, and where JAX refuses it, its words and a sharding that it would accept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import Parameter, Signature
from itertools import islice, product
from typing import Any

import jax
import jax.numpy as jnp
from jax.errors import JaxRuntimeError
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from shardviz.compiler.messages import Array, DeviceMesh, EinsumPart, Question, Spec
from shardviz.errors import CompilerError

WIDE = frozenset(("s64", "u64", "f64", "c128"))
"""Types that JAX has only with 64-bit types enabled."""

_FAMILIES = {"pred": "bool_", "bf": "bfloat", "s": "int", "u": "uint", "f": "float", "c": "complex"}
_DTYPE = re.compile(rf"({'|'.join(_FAMILIES)})(\d*)(\w*)")


class Program:
    """One question on one JAX mesh, abstract or of devices.

    Under Explicit axes tracing it notes in `typeof` what `jax.typeof` says of each array, as (name, text).
    For a refusal it notes how many parts of the chain JAX has accepted (`reached`) and how the operands of
    the next one are split (`operand_specs`, under Explicit axes).
    """

    def __init__(self, question: Question, mesh: Any) -> None:
        self.question, self.mesh = question, mesh
        self.typeof: list[tuple[str, str]] = []
        self.operand_specs: tuple[Spec | None, ...] = ()
        self.reached = 0

    def trace(self) -> Any:
        """A `jax.stages.Traced`. Raises what JAX raises."""

        def program(*arguments: Any) -> Any:
            return self._chain(arguments)

        first, *rest = self.question.parts
        arrays = (*first.operands, *(operand for part in rest for operand in part.operands[1:]))
        # Under these names the compilers speak of the arguments.
        names = [array.name if array.name.isidentifier() else "_" for array in arrays]
        if len(set(names)) == len(names):
            program.__signature__ = Signature(  # type: ignore[attr-defined]
                [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
            )
        result = self.question.parts[-1].result.spec
        options = {} if result is None else {"out_shardings": self.sharding(result)}
        return jax.jit(program, **options).trace(*map(self._argument, arrays))

    def sharding(self, spec: Spec) -> Any:
        """The spec as a `NamedSharding` on this mesh."""
        return named_sharding(self.mesh, spec)

    def _argument(self, array: Array) -> Any:
        spec = array.spec
        if spec is None and self.question.mesh.is_explicit:
            # A type always says how its array is split, so here an open choice means replicated.
            spec = Spec(((),) * len(array.shape))
        sharding = None if spec is None else self.sharding(spec)
        return jax.ShapeDtypeStruct(array.shape, jax_dtype(array.dtype), sharding=sharding)

    def _chain(self, arguments: Sequence[Any]) -> Any:
        rest = iter(arguments)
        value: Any = None
        previous: Array | None = None
        for part in self.question.parts:
            operands: list[Any] = []
            for array in part.operands:
                if previous is None or operands:
                    operand = next(rest)
                    self._note(array, operand)
                elif array.spec is None or array.spec == previous.spec:
                    operand = value
                else:
                    operand = self._constrained(value, array.spec)
                    self._note(array, operand)
                operands.append(operand)
            value = self._contracted(part, operands)
            previous = part.result
            self._note(previous, value)
            self.reached += 1
        return value

    def _contracted(self, part: EinsumPart, operands: Sequence[Any]) -> Any:
        spec = part.result.spec
        if not self.question.mesh.is_explicit:
            value = jnp.einsum(part.subscripts, *operands)
            last = part is self.question.parts[-1]
            return value if spec is None or last else self._constrained(value, spec)
        self.operand_specs = tuple(
            spec_of(jax.typeof(operand).sharding, self.question, operand.ndim) for operand in operands
        )
        sharding = None if spec is None else self.sharding(spec)
        return jnp.einsum(part.subscripts, *operands, out_sharding=sharding)

    def _constrained(self, value: Any, spec: Spec) -> Any:
        constrain = (
            jax.sharding.reshard if self.question.mesh.is_explicit else jax.lax.with_sharding_constraint
        )
        return constrain(value, self.sharding(spec))

    def _note(self, array: Array, value: Any) -> None:
        if self.question.mesh.is_explicit:
            self.typeof.append((array.name, str(jax.typeof(value))))


def named_sharding(mesh: Any, spec: Spec) -> Any:
    """The spec as a `NamedSharding` on a mesh."""
    entries = (axes[0] if len(axes) == 1 else axes or None for axes in spec.dims)
    unreduced = {"unreduced": set(spec.unreduced)} if spec.unreduced else {}
    return NamedSharding(mesh, P(*entries, **unreduced))


def axis_types(mesh: DeviceMesh) -> tuple[Any, ...]:
    """The type of every mesh axis, as the meshes of JAX take them."""
    return (AxisType.Explicit if mesh.is_explicit else AxisType.Auto,) * len(mesh.axis_names)


def jax_dtype(name: str) -> Any:
    """The JAX type of an HLO element type; `CompilerError` where JAX has none."""
    found = None
    if match := _DTYPE.fullmatch(name):
        family, bits, format_ = match.groups()
        found = getattr(jnp, f"{_FAMILIES[family]}{bits}{'_' if format_ else ''}{format_}", None)
    if found is None:
        raise CompilerError(f"JAX {jax.__version__} has no arrays of {name}", "use bf16, f32 or s8")
    return found


def spec_of(sharding: Any, question: Question, rank: int) -> Spec | None:
    """A sharding that JAX decided on; None when it follows no whole axes of the mesh."""
    if isinstance(sharding, NamedSharding) and tuple(sharding.mesh.axis_names) == question.mesh.axis_names:
        # Before 0.10 a spec has no attribute of that name; since then one with pending sums is not iterated.
        partitions = getattr(sharding.spec, "partitions", sharding.spec)
        entries = ((entry,) if isinstance(entry, str) else entry or () for entry in partitions)
        dims = tuple(map(tuple, entries))
        return Spec(dims + ((),) * (rank - len(dims)), tuple(sorted(sharding.spec.unreduced)))
    return Spec(((),) * rank) if sharding.is_fully_replicated else None


MAX_WORDS = 400
MAX_CANDIDATES = 64

_INTERNAL = re.compile(r" ?(-{10,}|This error occurs at source:|see current operation:).*")
"""What JAX appends about its own insides, and about files of this package."""


def words_of(error: Exception) -> str:
    """The words of JAX or XLA, on one line, after the name of the exception where that says something."""
    text = _INTERNAL.sub("", " ".join(str(error).split())) or repr(error)
    if len(text) > MAX_WORDS:
        text = f"{text[:MAX_WORDS]}…"
    return text if isinstance(error, JaxRuntimeError) else f"{type(error).__name__}: {text}"


def settling_spec(program: Program) -> Spec | None:
    """A spec for the result of the refused part with which JAX accepts it: asked, not guessed.

    None when no einsum was refused, or it was for another reason than a result that is not said.
    """
    refused = program.question.parts[program.reached : program.reached + 1]
    if not program.operand_specs or not refused or refused[0].result.spec is not None:
        return None
    part = refused[0]
    candidates = islice(_candidates(part, program.operand_specs), MAX_CANDIDATES)
    return next((spec for spec in candidates if _accepts(program, spec)), None)


def _candidates(part: EinsumPart, operand_specs: Sequence[Spec | None]) -> Iterator[Spec]:
    """Each dimension split as an operand splits it, or whole; the most natural first."""
    inputs, result = part.subscripts.split("->")
    operands = [(names, spec) for names, spec in zip(inputs.split(","), operand_specs, strict=True) if spec]
    choices = []
    for letter in result:
        found = [spec.dims[names.index(letter)] for names, spec in operands if letter in names]
        choices.append(dict.fromkeys([*found, ()]))
    for dims in product(*choices):
        axes = [axis for dim in dims for axis in dim]
        if len(axes) == len(set(axes)):
            yield Spec(dims)


def _accepts(program: Program, spec: Spec) -> bool:
    """Return whether JAX traces the chain as far as the refused part once that part's result has the spec."""
    *accepted, refused = program.question.parts[: program.reached + 1]
    part = replace(refused, result=replace(refused.result, spec=spec))
    trial = Program(replace(program.question, parts=(*accepted, part)), program.mesh)
    try:
        trial.trace()
    except Exception:
        return False
    return True
