"""Programs that were saved in binary → their text, or the module to compile.

    HloModuleProto      a compiled program, as profiles have it too
    HloProto            XLA's dumps (`*.hlo.pb`): its first field is the HloModuleProto
    MLIR bytecode       StableHLO, Shardy
    jax.export          a flatbuffer around the bytecode of a portable StableHLO module

See xla/service/hlo.proto and jax/_src/export/serialization.fbs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import jax.export
from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from shardviz.compiler.lowering import lowered_module
from shardviz.errors import QuestionError
from shardviz.profiles.wire_format import find
from shardviz.profiles.xplane import module_devices, with_devices
from shardviz.reports.lowered_module import LoweredModule
from shardviz.targets import pip

LENGTH_FIRST = b"\n"
"""The tag of a first field that has a length, 0x0a, with which XLA's protos begin."""
SAVE = "save an HLO proto, StableHLO as text or bytecode, or what jax.export serializes"


def module_texts(_report: Callable[[str], None], protos: Iterable[bytes]) -> tuple[str, ...]:
    """The text of modules, each XLA's serialized `HloModuleProto`; "" for one that XLA does not read."""
    return tuple(_hlo_text(proto) for proto in protos)


def text(_report: Callable[[str], None], data: bytes, where: str) -> tuple[str]:
    """The text of a program in any of these formats. Raises `QuestionError` for anything else."""
    if not data.startswith(LENGTH_FIRST):
        return (_module(data, where, SAVE).operation.get_asm(enable_debug_info=True),)
    inner = b""
    with suppress(ValueError):  # where it is damaged, or has no such field
        inner = data[slice(*(find(data, 0, len(data), 1) or (0, 0)))]
    for proto in (inner, data) if inner.startswith(LENGTH_FIRST) else (data,):
        if hlo := _hlo_text(proto):
            return (with_devices(hlo, module_devices(proto)),)
    raise QuestionError(f"{where} is not a program that XLA reads", SAVE)


def lowered(_report: Callable[[str], None], data: bytes, where: str) -> LoweredModule:
    """A StableHLO module, as text or in binary, to compile for any target. Raises `QuestionError`."""
    hint = "shardviz hlo FILE lists the collectives of a compiled program"
    return lowered_module(_module(data, where, hint))


def _hlo_text(proto: bytes) -> str:
    try:
        from jaxlib._hlo import HloModule
    except ImportError:  # before jaxlib 0.10
        from jaxlib._jax import HloModule
    try:
        return str(HloModule.from_serialized_hlo_module_proto(proto).to_string())
    except Exception:
        return ""


def _module(data: bytes, where: str, hint: str) -> ir.Module:
    code: bytes | str = data
    with make_ir_context():
        try:
            if not data.startswith(b"ML\xefR") and 0 in data:
                code = str(jax.export.deserialize(bytearray(data)).mlir_module())
            elif not data.startswith(b"ML\xefR"):
                code = data.decode(errors="replace")
            module = ir.Module.parse(code)
        except ImportError:
            needs = "JAX needs the package flatbuffers to read what jax.export serialized"
            raise QuestionError(needs, pip("install", "flatbuffers")) from None
        except Exception:
            raise QuestionError(f"{where} is not a program that JAX reads", hint) from None
        if "sym_name" not in module.operation.attributes:  # JAX names the program by it
            module.operation.attributes["sym_name"] = ir.StringAttr.get("module")
    return module
