"""The time of one instruction on a device, and whose estimate it is.

The compiler's own cycles come first: TPU text has ``estimated_cycles`` on most fusions, GPU text a
``reification_cost`` where that was asked for. Elsewhere the roofline: the longer of FLOPs over the peak and
of the bytes of operands and results over HBM's bandwidth. An operand that was fetched before is not in the
compiler's cycles; its copy is an operation of its own on the lane of HBM copies, so that it is counted there.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import plural
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.memory_layout import HBM, HOST, placed_arrays
from shardviz.hlo.text.opcodes import MATMULS, NAMING, WRAPPERS
from shardviz.timeline.instruction_work import InstructionWork, Matmuls
from shardviz.units import human_bytes, rate

if TYPE_CHECKING:
    from shardviz.hardware.chips import DeviceFigures
    from shardviz.hlo.text.instruction import Computation
    from shardviz.timeline.program_timeline import Estimate

UNUSABLE = 2**63 - 1
"""Cycles that libtpu writes on operations of the SparseCores: no figure."""
DOUBTED = 0.98
"""An estimate below this part of the roofline breaks it; peaks are rounded to two or three digits."""

_CYCLES = re.compile(r'"estimated_cycles":"(\d{1,19})"')
_REIFIED = re.compile(r'"exec_time_us":([\d.eE+-]{1,24})[^{}]*"name":"([^"]{0,40})"')
_MEMORY = re.compile(
    r'custom_call_target="(?:AllocateBuffer|ConcatBitcast|AssumeGatherIndicesInBound|Sharding|SPMD\w*)"'
)
_WORKERS = frozenset((*MATMULS, *WRAPPERS, "custom-call"))
"""Opcodes whose work more than their shapes tells."""
_NO_TIME = NAMING | {"bitcast-convert", "token", "infeed-token"}


@dataclass(frozen=True, slots=True)
class Duration:
    """The seconds of one run, None where nobody can tell; `estimate`, `bound`, `detail` are as in `TimedOp`.

    `least` is the time of the roofline, None where it is not known. `doubtful` marks a compiler's figure
    that is shorter.
    """

    seconds: float | None
    estimate: Estimate
    bound: str = ""
    detail: str = ""
    bytes: int = 0
    flops: int = 0
    least: float | None = None
    doubtful: bool = False


class Durations:
    """The durations of the instructions of one text on one device; alike ones are worked out once."""

    def __init__(self, lines: Instructions, device: DeviceFigures) -> None:
        self.work = InstructionWork(lines)
        self._lines = lines
        self._text = lines.text
        self._device = device
        self._known: dict[tuple[object, ...], Duration] = {}
        self._plain: dict[tuple[str, ...], Duration] = {}
        self.flops_by_dtype: Counter[str] = Counter()
        """Of the instructions so far, each once."""

    def takes_time(self, line: Instruction) -> bool:
        """Return whether an instruction is more than a name for memory or a number."""
        if line.opcode in _NO_TIME:
            return False
        if line.opcode == "custom-call":
            return line.search(_MEMORY) is None
        return True

    def of(self, line: Instruction, home: Computation) -> Duration:
        """The duration of an instruction that occupies the device."""
        if line.opcode in _WORKERS or line.says("backend_config="):
            return self._told(line, home)
        # What moves or changes elements, one by one: of the same shapes it takes as long.
        key = line.opcode, line.shape, *self.work.operand_shapes(line, home)
        found = self._plain.get(key)
        if found is None:
            found = self._plain[key] = self._told(line, home)
        return found

    def _told(self, line: Instruction, home: Computation) -> Duration:
        cycles = line.search(_CYCLES)
        compiled = self._compiled(int(cycles[1])) if cycles else self._reified(line)
        matmuls = self.work.matmuls(line, home)
        self.flops_by_dtype[matmuls.dtype] += matmuls.flops
        hbm = self.work.hbm_bytes(line, home)
        key = (compiled, matmuls, hbm, line.opcode)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._duration(compiled, cycles, matmuls, hbm)
        if found.seconds is None or line.opcode != "custom-call" or compiled is not None:
            return found
        # A kernel whose work nobody has written down may take any time.
        is_known = matmuls.flops or self.work.estimated_bytes(line) is not None
        return (
            found if is_known else Duration(None, "unknown", detail="a kernel without an estimate", bytes=hbm)
        )

    def _duration(
        self,
        compiled: float | None,
        cycles: re.Match[str] | None,
        matmuls: Matmuls,
        hbm: int,
    ) -> Duration:
        flops, dtype = matmuls.flops, matmuls.dtype
        peak = self._peak(matmuls) if flops else None
        compute = flops / peak if peak else (0.0 if not flops else None)
        bandwidth = self._device.hbm_bandwidth
        memory = hbm / bandwidth if bandwidth else (0.0 if not hbm else None)
        known = [each for each in (compute, memory) if each is not None]
        least = max(known) if known else None
        bound = "compute" if compute is not None and compute == least and flops else "HBM" if hbm else ""
        if compiled is not None:
            doubtful = least is not None and compiled < DOUBTED * least
            clock = self._device.clock
            said = (
                f"{int(cycles[1]):,} cycles at {clock / 1e9:.4g} GHz"
                if cycles and clock
                else "the compiler's estimate"
            )
            if least:
                said += f", {compiled / least:.2f} × the roofline"
            return Duration(compiled, "compiler", bound, said, hbm, flops, least, doubtful)
        if compute is None or memory is None:
            missing = f"no peak of {dtype} is known" if compute is None else "no bandwidth of HBM is known"
            return Duration(None, "unknown", bound, missing, hbm, flops)
        if bound == "compute":
            said = f"{flops:.4g} FLOPs of {dtype} at {peak:.4g} FLOP/s{self._how(matmuls)}"
        else:
            said = f"{human_bytes(hbm)} at {rate(bandwidth or 0)}" if hbm else "on the chip"
        return Duration(max(compute, memory), "roofline", bound, said, hbm, flops, least)

    def _peak(self, matmuls: Matmuls) -> float | None:
        """The peak; without one for f32, as on TPUs, that of the passes in bf16 of which it is made."""
        peak = self._device.flops_per_second(matmuls.dtype)
        if peak is None and matmuls.dtype == "f32":
            half = self._device.flops_per_second("bf16")
            return half / matmuls.passes if half else None
        return peak

    def _how(self, matmuls: Matmuls) -> str:
        if matmuls.dtype != "f32" or self._device.flops_per_second("f32") is not None:
            return ""
        return f", in bf16, {plural(matmuls.passes, 'pass', 'passes')}"

    def _compiled(self, cycles: int) -> float | None:
        clock = self._device.clock
        return cycles / clock if clock and cycles != UNUSABLE else None

    def _reified(self, line: Instruction) -> float | None:
        """Seconds that XLA's model of the speed of light gives an instruction on a GPU; the others that it
        writes beside it are off by a factor of a hundred at times."""
        if not line.says('"reification_cost"'):
            return None
        costs = {name: float(time) for time, name in _REIFIED.findall(self._text, line.inside, line.stop)}
        micros = costs.get("sol")
        return micros * 1e-6 if micros is not None else None

    def of_copy(self, line: Instruction) -> Duration:
        """The duration of a copy between memories that runs beside the program.

        Its tuple has the destination, the source and flags; a slice's the source, then the destination.
        """
        arrays = [array for array in placed_arrays(line.shape) if array.sizes or array.space == HBM]
        if len(arrays) < 2:
            return Duration(None, "unknown", detail="its shape is not a copy's")
        moved = min(arrays[0].bytes, arrays[1].bytes)
        spaces = {arrays[0].space, arrays[1].space}
        bandwidth = self._device.hbm_bandwidth
        if HOST in spaces:
            return Duration(None, "unknown", "host", "no bandwidth between host and device is known", moved)
        if HBM not in spaces:
            return Duration(0.0, "roofline", "", "on the chip", 0)
        if not bandwidth:
            return Duration(None, "unknown", "HBM", "no bandwidth of HBM is known", moved)
        both = 2 if spaces == {HBM} else 1
        took = both * moved / bandwidth
        return Duration(
            took, "roofline", "HBM", f"{human_bytes(both * moved)} at {rate(bandwidth)}", moved, 0, took
        )
