"""A program of this process, compiled: its text and its meshes, without importing JAX here.

Whoever has a jitted function has loaded JAX. Its objects are told apart by what they can do.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardviz.api.meshes import JaxMesh
from shardviz.errors import QuestionError, quote

_HINT = "give a function, a jitted one, what its lower(…) returns, or what compile() returns"


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

    A plain function is jitted as it stands. Raises `QuestionError` for what is no program, for arguments to
    one that has its own, and where the compiler keeps no text. What JAX raises comes through.
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
        raise QuestionError(f"{quote(repr(program))} is not a program", _HINT)
    jax = sys.modules.get("jax")
    if jax is None:
        raise QuestionError(f"{quote(repr(program))} is not jitted, and jax is not loaded", _HINT)
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
