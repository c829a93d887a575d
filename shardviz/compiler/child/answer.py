"""One request, one reply: the compiler's answer and its time, or why JAX refuses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import TYPE_CHECKING

import jax
import jaxlib

from shardviz.compiler.child import shardy, xla
from shardviz.compiler.child.program import WIDE, Program, jax_dtype, named_sharding, settling_spec, words_of
from shardviz.compiler.messages import About, AskLayout, LayoutOutput, ModuleTexts, Output, Question, Versions
from shardviz.errors import CompilerError, TargetError
from shardviz.reports.target_result import TargetResult, without_answer
from shardviz.targets.installed import EXTRAS

if TYPE_CHECKING:
    from shardviz.targets import ProcessName

# The text should name no files of this package, and an executable from a cache would leave no dump.
jax.config.update("jax_traceback_in_locations_limit", 0)
jax.config.update("jax_enable_compilation_cache", False)


def versions(name: ProcessName) -> Versions:
    """(name, version) of what computes the answers."""
    found = [("jax", jax.__version__), ("jaxlib", jaxlib.__version__), ("python", python_version())]
    for package in EXTRAS[name].packages if name in EXTRAS else ():
        with suppress(PackageNotFoundError):
            found.append((package, version(package)))
    return tuple(found)


def about(name: ProcessName) -> About:
    """Versions, and the devices that JAX finds."""
    kinds = Counter(device.device_kind for device in jax.devices())
    return About(versions(name), jax.default_backend(), tuple(kinds.items()))


def answer(question: Question, report: Callable[[str], None]) -> Output:
    """Ask the target. A refusal of JAX or XLA is an answer too, with status "error"."""
    start = time.perf_counter()
    # JAX would silently narrow 64-bit types; whether it does must depend on the question alone.
    wide = any(array.dtype in WIDE for array in question.arguments)
    program = None
    with jax.enable_x64(wide):
        try:
            if question.target == "shardy":
                program = Program(question, shardy.abstract_mesh(question.mesh))
                output = shardy.ask(program, report)
            else:
                mesh, places = xla.target_mesh(question, report)
                program = Program(question, mesh)
                output = replace(xla.ask(program, report), devices=places)
        except (TargetError, CompilerError) as error:
            output = Output(without_answer(question.target, error))
        except Exception as error:
            output = Output(TargetResult(question.target, "error", error=words_of(error)))
            if program is not None:
                output = replace(output, refused_part=program.reached, settled_by=settling_spec(program))
    typeof = () if program is None else tuple(program.typeof)
    elapsed = time.perf_counter() - start
    return replace(output, result=replace(output.result, typeof=typeof, elapsed_s=elapsed))


def module_texts(protos: Iterable[bytes]) -> ModuleTexts:
    """Serialized modules as text."""
    try:
        from jaxlib._hlo import HloModule
    except ImportError:  # before jaxlib 0.10
        from jaxlib._jax import HloModule
    found = []
    for proto in protos:
        try:
            found.append(HloModule.from_serialized_hlo_module_proto(proto).to_string())
        except Exception:
            found.append("")
    return ModuleTexts(tuple(found))


def layout(request: AskLayout) -> LayoutOutput:
    """The layout of an array on simulated devices, by JAX. Its refusal is an answer too."""
    try:
        return _layout(request)
    except Exception as error:
        return LayoutOutput(error=words_of(error))


def _layout(request: AskLayout) -> LayoutOutput:
    array = request.array
    assert array.spec is not None
    mesh = xla.simulated_mesh(request.mesh)
    sharding = named_sharding(mesh, array.spec)
    indices = sharding.devices_indices_map(array.shape)
    devices = []
    for device in mesh.devices.flat:
        bounds = (part.indices(size)[:2] for part, size in zip(indices[device], array.shape, strict=True))
        devices.append((device.id, tuple(bounds)))
    bits = jax.dtypes.itemsize_bits(jax_dtype(array.dtype))
    return LayoutOutput(tuple(sharding.shard_shape(array.shape)), bits, tuple(devices))
