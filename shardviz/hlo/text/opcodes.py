"""The table of HLO's opcodes: what each does with the values that it takes, for all who follow them.

XLA's list of opcodes is ``xla/hlo/ir/hlo_opcode.h``; ``-start`` and ``-done`` are parts of one operation."""

from __future__ import annotations

import re
from functools import lru_cache

from shardviz.hlo.collective import OPS

COLLECTIVES = frozenset(OPS) - {"slice"}
"""Operations between devices, without ``-start`` and ``-done``."""
COMMUNICATING = frozenset(f"{op}{suffix}" for op in COLLECTIVES for suffix in ("", "-start"))
"""Opcodes that are, or begin, one of them."""
SUMS = frozenset(("all-reduce", "all-reduce-start", "reduce-scatter", "reduce-scatter-start"))
MESSAGES = frozenset(("send", "recv"))
"""Opcodes that begin something although their names do not say so."""

ALIASES = frozenset(
    ("bitcast", "opt-barrier", "optimization-barrier", "add-dependency", "domain", "async-update")
)
"""Other names of the first operand: its memory is the result's."""
NAMING = ALIASES | {
    *("parameter", "constant", "tuple", "get-tuple-element", "after-all"),
    *("partition-id", "replica-id", "get-dimension-size"),
}
"""Opcodes that only name memory or numbers: nothing is computed, nothing takes time."""
MOVES = frozenset(
    {
        *("bitcast", "copy", "copy-start", "copy-done", "convert", "reshape", "transpose"),
        *("optimization-barrier", "opt-barrier"),
    }
)
"""The result is the one operand, in another place, form or type."""
PLACES = frozenset(
    {
        *("copy", "convert", "bitcast", "bitcast-convert", "transpose", "reshape", "select", "pad"),
        *("slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "optimization-barrier"),
        *("tuple", "get-tuple-element", "fusion", "call", "async"),
        *("all-gather", "all-reduce", "reduce-scatter", "all-to-all"),
        *("collective-permute", "collective-broadcast"),
    }
)
"""Elements are put elsewhere, but nothing is computed with those of different places.

An all-reduce is one of them: what it adds are the parts of one array."""
ELEMENTS = {"dynamic-slice": slice(1), "dynamic-update-slice": slice(2), "select": slice(1, None)}
"""The operands that elements come from; the others tell which."""
ADDING = frozenset(("add", "subtract"))
ARITHMETIC = ADDING | {
    *("multiply", "divide", "negate", "abs", "sign", "power", "sqrt", "rsqrt", "cbrt", "maximum", "minimum"),
    *("clamp", "exponential", "log", "tanh"),
}
"""Each element of the result is computed of those at its place."""
SLICES = frozenset(("slice", "dynamic-slice", "gather"))
"""Only the result is read of the first operand."""
MATMULS = ("dot", "convolution")

ASYNC_STARTS = ("async-start", "call-start")
"""Opcodes that run one computation beside the program: on TPUs the second does so on the SparseCores."""
WRAPPERS = ("fusion", "call", *ASYNC_STARTS)
"""Opcodes that run one computation, once, with their operands as its parameters."""
RUNNING = ("fusion", "call", "async")
"""The same, as whole operations."""
FOLDED = ("fusion", *ASYNC_STARTS)
"""Those of them that are one piece of work: what they run does not stand in the program."""
CONTROL = ("while", "call", "conditional")
"""Opcodes whose computations run as if they stood in the program."""
BRANCHES = ("true_computation", "false_computation", "branch_computations")
BODIES = ("body", "to_apply", *BRANCHES)
"""The attributes by which these name them, but for a loop's condition."""
CALLING = ("calls", "to_apply", "body", "condition", *BODIES[2:], "called_computations")
"""Every attribute that names computations."""

_PART = re.compile(r"-(?:start|done|update)$")


def base_op(opcode: str) -> str:
    """The operation that an opcode is, or begins: ``all-gather`` for ``all-gather-start``."""
    return opcode.removesuffix("-start")


@lru_cache(maxsize=4096)
def whole_op(opcode: str) -> str:
    """The operation that an opcode is a part of: ``all-gather`` for ``all-gather-done``, too."""
    return _PART.sub("", opcode)


@lru_cache(maxsize=4096)
def begins(opcode: str) -> bool:
    """Return whether another instruction ends what this one begins."""
    return opcode.endswith("-start") or opcode in MESSAGES


@lru_cache(maxsize=4096)
def ends(opcode: str) -> bool:
    """Return whether it ends or passes on what another one has begun."""
    return opcode.endswith(("-done", "-update"))
