"""`shardviz.inspect`: the collectives in a program of the user's own process."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardviz.api.arguments import JaxMesh, MachineLike, MeshLike, as_machine, as_mesh
from shardviz.api.shown import Shown
from shardviz.documents.programs import hlo_document
from shardviz.errors import QuestionError, quote
from shardviz.hlo import read
from shardviz.hlo import read_hlo as read_compiled
from shardviz.sharding.array import BITS

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.api.timing import TimelineReport
    from shardviz.hlo import Collective, HloModule, ShardyModule
    from shardviz.render.palette import Palette
    from shardviz.sharding import Mesh


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """The answer of `shardviz hlo`: a module and its collectives.

    `given` is the mesh that the user, or the user's program, named; None where there is none. `notes` are
    sentences on how `text` was read.
    """

    module: HloModule | ShardyModule
    given: Mesh | None
    text: str
    notes: tuple[str, ...] = ()

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """In program order, each with how often it runs."""
        return self.module.collectives

    @property
    def mesh(self) -> Mesh | None:
        """The mesh whose axes the collectives name: given, or inferred; None where nobody knows one."""
        return self.module.mesh

    def timeline(self, machine: MachineLike = None) -> TimelineReport:
        """When each instruction of a compiled program runs on a machine, and its live memory.

        `machine` is text such as ``"v5e:2x4"``, or a TOML file; None is a v5e of which every mesh axis is a
        ring. Raises `QuestionError` for a program that is not compiled, and for a machine that does not exist
        or cannot hold the mesh.
        """
        from shardviz.api.timing import TimelineReport
        from shardviz.compiler.target_times import TargetTimes
        from shardviz.hardware.machine import assumed_machine
        from shardviz.hlo import HloModule
        from shardviz.timeline.of_program import program_timeline

        if not isinstance(self.module, HloModule):
            raise QuestionError(
                "times are of a compiled program, and this is not compiled yet",
                "give HLO: lowered.compile().as_text()",
            )
        found = as_machine(machine) or assumed_machine()
        model = program_timeline(self.text, found, mesh=self.module.mesh, infer=self.module.mesh is None)
        return TimelineReport(TargetTimes(replace(model, notes=(*model.notes, *self.notes))))

    def lines(self, width: int, palette: Palette) -> list[Text]:
        from shardviz.render.lines import sentence
        from shardviz.render.programs.hlo_view import hlo_view

        lines = hlo_view(self.module, self.given, width, palette)
        for note in (*self.notes, *self.module.unread):
            lines += sentence(note, width, lead="note: ")
        return lines

    def document(self) -> dict[str, Any]:
        return hlo_document(self.module, self.given)


def read_hlo(text: str, mesh: MeshLike | None = None) -> Report:
    """The collectives in a text of HLO, StableHLO or Shardy, such as `compiled.as_text()`.

    `mesh` is text, a shardviz Mesh or a jax Mesh; without one, axes are inferred from the devices that take
    part in each collective. Damaged text gives what can be read, and `module.unread` tells the rest.

    Raises `NotationError` for a text that is none of these, `QuestionError` for a mesh that is not the
    module's.
    """
    if not isinstance(text, str):
        raise QuestionError(
            f"a {type(text).__name__} is not text",
            "give compiled.as_text() or a file's read_text(); shardviz.inspect(…) takes programs",
        )
    given = None if mesh is None else as_mesh(mesh)
    return Report(read(text, given, infer=True), given, text)


_FLOAT = re.compile(r"\b(bf16|f\d\w*)\[")


def inspect(program: Any, /, *args: Any, **kwargs: Any) -> Report:
    """The collectives that XLA put into a program, with the mesh's own axis names and device ids.

    `program` is a jitted function with its arguments (arrays or `jax.ShapeDtypeStruct`s with shardings; it
    is compiled, not run), a plain function, which is jitted as it stands, or what `lower` or `compile`
    returned. The mesh is that of the arguments' and results' shardings; without one, axes are inferred from
    the devices that take part in each collective.

    Raises `QuestionError` for what is not a program; what JAX raises comes through.
    """
    compiled = compiled_program(program, args, kwargs)
    modules: list[HloModule] = []
    notes = []
    for mesh in compiled.meshes:
        try:
            module = read_compiled(compiled.text, mesh.mesh(), slices=mesh.slices)
        except QuestionError as error:
            notes.append(f"axes are not named after the mesh {_written(mesh)}: {error.message}")
        else:
            modules.append(replace(module, collectives=_with_ids(module.collectives, mesh.ids)))
    named = max(modules, key=lambda module: sum(bool(each.axes) for each in module.collectives), default=None)
    if named is not None and len(compiled.meshes) > 1:
        meshes = " and ".join(map(_written, compiled.meshes))
        notes.append(f"this program has several meshes: {meshes}; axes are named after {named.mesh}")
    module = read_compiled(compiled.text, infer=True) if named is None else named
    if compiled.is_for_cpu:
        notes += _widened(compiled.text, module.collectives)
    return Report(module, None if named is None else named.mesh, compiled.text, tuple(notes))


def _widened(text: str, collectives: Sequence[Collective]) -> list[str]:
    """Where XLA for CPU may have computed the floats of the arguments and results, which the first line of
    its text lists, in a wider type, and moved them so."""
    moved = {each.dtype for each in collectives if each.wire_bytes and _FLOAT.match(f"{each.dtype}[")}
    widest = max(moved, key=BITS.__getitem__, default="")
    given = dict.fromkeys(_FLOAT.findall(text.partition("\n")[0]))
    narrower = [dtype for dtype in given if widest and BITS[dtype] < BITS[widest]]
    return [
        f"XLA for CPU computes {dtype} as {widest}: what carries {widest} here may carry {dtype} on a TPU or "
        f"GPU, 1/{BITS[widest] // BITS[dtype]} of the bytes"
        for dtype in narrower
    ]


def _written(mesh: JaxMesh) -> str:
    return ",".join(f"{name}={size}" for name, size in zip(mesh.axis_names, mesh.axis_sizes, strict=True))


def _with_ids(collectives: Sequence[Collective], ids: Sequence[int] | None) -> tuple[Collective, ...]:
    """Groups in the ids of the devices, which were numbered from 0 in the order of these."""
    number = sorted(ids or ())
    if number == [*range(len(number))]:
        return tuple(collectives)
    return tuple(
        each
        if each.groups is None
        else replace(each, groups=tuple(tuple(number[i] for i in group) for group in each.groups))
        for each in collectives
    )


_PROGRAM_HINT = "give a function, a jitted one, what its lower(…) returns, or what compile() returns"


@dataclass(frozen=True)
class CompiledProgram:
    """HLO text, and the meshes of the shardings of the arguments, then of the results, each once.

    `is_for_cpu` tells that XLA for CPU has compiled it, for simulated devices or real ones.
    """

    text: str
    meshes: tuple[JaxMesh, ...]
    is_for_cpu: bool


def compiled_program(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CompiledProgram:
    """Compile what is not compiled yet; nothing runs, and no argument is donated.

    A plain function is jitted as it stands. Raises `QuestionError` for what is not a program, for arguments
    to one that has its own, and where the compiler keeps no text. What JAX raises comes through.
    """
    compiled = _unwrapped(_compiled(_unwrapped(program), args, kwargs))
    text = compiled.as_text()
    if not text:
        raise QuestionError("this compiler shows no text of its programs", "ask on a CPU, a TPU or a GPU")
    shardings = [
        *compiled.in_tree.flatten_up_to(compiled.input_shardings),
        *compiled.out_tree.flatten_up_to(compiled.output_shardings),
    ]
    devices = (device for sharding in shardings for device in getattr(sharding, "device_set", ()))
    return CompiledProgram(text, _meshes(shardings), any(device.platform == "cpu" for device in devices))


def _compiled(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if isinstance(program, str | bytes):
        raise QuestionError(
            f"{quote(str(program))} is text, not a program", "shardviz.read_hlo(…) reads a compiler's text"
        )
    is_compiled = hasattr(program, "as_text") and hasattr(program, "input_shardings")
    is_lowered = hasattr(program, "as_text") and hasattr(program, "compile")
    is_traced = hasattr(program, "lower") and hasattr(program, "jaxpr")
    if is_compiled or is_lowered or is_traced:
        if args or kwargs:
            raise QuestionError(
                f"a {type(program).__name__} program has its arguments already",
                "leave out the arguments, or give the jitted function itself",
            )
        if is_compiled:
            return program
        return program.compile() if is_lowered else program.lower().compile()
    if hasattr(program, "lower"):
        return program.lower(*args, **kwargs).compile()
    if not callable(program):
        raise QuestionError(f"{quote(repr(program))} is not a program", _PROGRAM_HINT)
    jax = sys.modules.get("jax")
    if jax is None:
        raise QuestionError(f"{quote(repr(program))} is not jitted, and jax is not loaded", _PROGRAM_HINT)
    try:
        return jax.jit(program).lower(*args, **kwargs).compile()
    except Exception as error:
        error.add_note("shardviz jitted this function as it stands; jit it yourself for static arguments.")
        raise


def _unwrapped(program: Any) -> Any:
    """JAX's own object, where a library such as Equinox or Flax has put one of its own around it."""
    if not hasattr(program, "input_shardings") and hasattr(program, "compiled"):
        return program.compiled
    return program


def _meshes(shardings: Sequence[Any]) -> tuple[JaxMesh, ...]:
    found: dict[tuple[object, ...], JaxMesh] = {}
    for sharding in shardings:
        mesh = JaxMesh.of(getattr(sharding, "mesh", None))
        if mesh is None or not mesh.axis_names:
            continue
        axes = mesh.axis_names, mesh.axis_sizes
        # An abstract mesh tells nothing that a mesh of devices does not.
        if axes not in found or found[axes].ids is None:
            found[axes] = mesh
    return tuple(found.values())
