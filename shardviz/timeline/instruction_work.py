"""The work of an instruction: multiply-adds of its matmuls, and the bytes of HBM that it reads and writes."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.instructions import MAX_NESTED, Instructions
from shardviz.hlo.text.opcodes import MATMULS, MOVES, SLICES, WRAPPERS
from shardviz.hlo.text.shapes import PlacedArray, bytes_in, placed_arrays
from shardviz.hlo.text.values import Path

_CONTRACTING = re.compile(r'lhs_contracting_dim(?:ension)?s\\?"?[=:][\[{]([\d,"\\]*)[\]}]')
_LABELS = re.compile(r"dim_labels=([^\s,]+)->([^\s,]+)")
_WINDOW = re.compile(r"window=\{([^{}]*)\}")
_GROUPS = re.compile(r"(feature|batch)_group_count=(\d{1,9})")
_ESTIMATE = re.compile(r"cost_estimate\W{1,8}(\{[^{}]*\})")
_ATTENTION = re.compile(r'custom_call_target="(?:__cudnn\$fmha|te_fused_attn_)\w*')
_SCORES = re.compile(r"intermediate_tensor_shape[^\[]{1,80}\[([\d\\\", ]{1,90})\]")
_SCORE = re.compile(r"\b(?:input_batch|attn_heads|q_max_seqlen|kv_max_seqlen) = (\d{1,18})")
_CAUSAL = re.compile(r"mask_type(?:\W{1,8}\w*CAUSAL| = [2-5]\b)")
_NAME = re.compile(r"%([^\s,(){}=%]++)")
_MULTIPLYING = (*MATMULS, "custom-call", "fusion", "call")
"""Opcodes that may multiply matrices, by themselves or in what they run."""
_IN_PLACE = (*SLICES, "dynamic-update-slice")
_PRECISION = re.compile(r"operand_precision=\{[^{}]*?(highest|high)\b")
_ALIAS = re.compile(r"\{([\d, ]*)\}: \((\d{1,6}), \{([\d, ]*)\}")
_OUTPUT_ALIAS = re.compile(r"output_to_operand_aliasing=\{((?:[^{}]|\{[^{}]*\})*)\}")
_COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "reduce-scatter", "collective-permute")
_TELLING = re.compile(rf" ({'|'.join((*MATMULS, *WRAPPERS, 'custom-call', *_IN_PLACE, *_COLLECTIVES))})\(")


class Matmuls(NamedTuple):
    """The floating-point operations of matmuls, a multiply-add as two, and the type of what they multiply (of
    several that of the most work). `passes` is how often units that multiply bf16 multiply for an f32 of the
    precision that is asked for: once, three times, six times (`jax.lax.Precision`)."""

    flops: int = 0
    dtype: str = ""
    passes: int = 1


NONE = Matmuls()


class InstructionWork:
    """The work of the instructions of one text."""

    def __init__(self, lines: Instructions) -> None:
        self.lines = lines
        self._text = lines.text
        self._like: dict[Computation, Computation] = {}
        self._first: dict[tuple[str | int | Computation, ...], Computation] = {}
        self._telling: dict[Computation, frozenset[str]] = {}
        self._matmuls: dict[Computation, Matmuls] = {}
        self._traffic: dict[Computation, tuple[dict[int, int], int | None]] = {}

    def first_like(self, home: Computation) -> Computation:
        """The first computation that was asked for and does the same work as one: it differs in no more than
        names, or both have nothing that tells of work. Collectives are known by their names alone."""
        if home not in self._like and not self._opcodes(home):
            self._like[home] = self._first.setdefault((), home)
        elif home not in self._like:
            self._like[home] = home
            pieces = _NAME.split(self._text[home.start : home.stop])
            numbers: dict[str, int] = defaultdict(count().__next__)
            marks: list[int | Computation] = [*map(numbers.__getitem__, pieces[1::2])]
            if self._text.find("calls=", home.start, home.stop) >= 0:
                for index, piece in enumerate(pieces[:-1:2]):
                    if piece.endswith("calls="):
                        callee = self.lines.computations.named(pieces[2 * index + 1], home.start)
                        marks[index] = home if callee is None else self.first_like(callee)
            self._like[home] = self._first.setdefault((*pieces[::2], *marks), home)
        return self._like[home]

    def matmuls(self, line: Instruction, shapes: Sequence[str], depth: int = 0) -> Matmuls:
        """The matmuls of an instruction on operands of these shapes, those in what it calls included."""
        if line.opcode == "dot":
            return self._contraction(line, shapes)
        if line.opcode == "convolution":
            return self._convolution(line, shapes)
        if line.opcode == "custom-call":
            return self._kernel(line, shapes)
        callee = self.lines.callee(line) if line.opcode in WRAPPERS else None
        return self.inside(callee, depth) if callee is not None else NONE

    def inside(self, home: Computation, depth: int = 0) -> Matmuls:
        """The matmuls of one run of a computation."""
        home = self.first_like(home)
        if home in self._matmuls:
            return self._matmuls[home]
        self._matmuls[home] = NONE
        flops: Counter[str] = Counter()
        passes = 1
        for opcode in _MULTIPLYING if depth < MAX_NESTED else ():
            for line in self.lines.with_opcode(home, opcode) if opcode in self._opcodes(home) else ():
                work = self.matmuls(line, self.operand_shapes(line), depth + 1)
                flops[work.dtype] += work.flops
                passes = max(passes, work.passes)
        if flops.total():
            self._matmuls[home] = Matmuls(flops.total(), max(flops, key=flops.__getitem__), passes)
        return self._matmuls[home]

    def _opcodes(self, home: Computation) -> frozenset[str]:
        """The opcodes in a computation that its work depends on."""
        if home not in self._telling:
            self._telling[home] = frozenset(_TELLING.findall(self._text, home.start, home.stop))
        return self._telling[home]

    def estimated_bytes(self, line: Instruction) -> int | None:
        """The bytes that the author of a kernel says it reads and writes (Pallas' ``cost_estimate``)."""
        return self._said(line).get("bytes_accessed")

    def _said(self, line: Instruction) -> dict[str, int]:
        estimate = line.search(_ESTIMATE) if line.opcode == "custom-call" else None
        said = re.findall(r"(flops|bytes_accessed)\W{1,8}?(\d{1,18})", estimate[1]) if estimate else ()
        return {key: int(number) for key, number in said}

    def operand_shapes(self, line: Instruction) -> list[str]:
        """The shapes of an instruction's operands, "" where the computation does not define one."""
        named, home = self.lines.named, line.home
        return ["" if (made := named(home, name)) is None else made.shape for name in line.operands]

    def _contraction(self, line: Instruction, shapes: Sequence[str]) -> Matmuls:
        """A matmul whose text names the dimensions of its first operand that are summed over."""
        operands, result = _first_arrays(shapes), placed_arrays(line.shape)
        summed = line.search(_CONTRACTING)
        if not operands or not result or summed is None:
            return NONE
        dims = [int(dim) for dim in re.findall(r"\d{1,3}", summed[1])]
        sizes = operands[0].sizes
        if any(dim >= len(sizes) for dim in dims):
            return NONE
        length = math.prod(sizes[dim] for dim in dims)
        return Matmuls(2 * math.prod(result[0].sizes) * length, operands[0].dtype, self._passes(line))

    def _convolution(self, line: Instruction, shapes: Sequence[str]) -> Matmuls:
        """As XLA's ``HloCostAnalysis`` counts: only the taps that meet an element of the input."""
        operands, result = _first_arrays(shapes), placed_arrays(line.shape)
        labels = line.search(_LABELS)
        if len(operands) < 2 or not result or labels is None:
            return NONE
        inputs, _, kernel = labels[1].partition("_")
        output = labels[2]
        lhs, rhs, out = operands[0].sizes, operands[1].sizes, result[0].sizes
        if (len(inputs), len(kernel), len(output)) != (len(lhs), len(rhs), len(out)):
            return NONE
        if not {"b", "f"} <= {*inputs} or "f" not in output:
            return NONE
        groups = {key: int(count) for key, count in _GROUPS.findall(self._text, line.inside, line.stop)}
        window = line.search(_WINDOW)
        # ``size=2x2 pad=0_0x1_1 lhs_dilate=2x1``: one value for each spatial dimension.
        pairs = (piece.partition("=") for piece in (window[1] if window else "").split())
        windows = {key: values.split("x") for key, _, values in pairs}
        taps = 1
        for number in range(len(lhs) - 2):
            digit = str(number)
            if digit in inputs and digit in kernel and digit in output:
                taps *= valid_taps(
                    lhs[inputs.index(digit)],
                    rhs[kernel.index(digit)],
                    out[output.index(digit)],
                    {key: values[number] for key, values in windows.items() if number < len(values)},
                )
        batch = lhs[inputs.index("b")] // groups.get("batch", 1)
        features = lhs[inputs.index("f")] // groups.get("feature", 1)
        flops = 2 * batch * features * out[output.index("f")] * taps
        return Matmuls(flops, operands[0].dtype, self._passes(line))

    def _passes(self, line: Instruction) -> int:
        precision = line.search(_PRECISION)
        return {"high": 3, "highest": 6}[precision[1]] if precision else 1

    def _kernel(self, line: Instruction, shapes: Sequence[str]) -> Matmuls:
        """A library's matmul or convolution, or a kernel whose author says its work."""
        if "flops" in (said := self._said(line)):
            arrays = _first_arrays(shapes)
            return Matmuls(said["flops"], arrays[0].dtype if arrays else "")
        if not self.lines.is_matmul(line):
            return NONE
        if attention := line.search(_ATTENTION):
            return self._attention(line, shapes, "ackward" in attention[0])
        return (self._convolution if line.search(_LABELS) else self._contraction)(line, shapes)

    def _attention(self, line: Instruction, shapes: Sequence[str], is_backward: bool) -> Matmuls:
        """A kernel of cuDNN's or Transformer Engine's: two products with every score forward and five
        backward, or half of them where a mask is causal."""
        arrays = _first_arrays(shapes)
        if len(arrays) < 2 or len(arrays[0].sizes) < 4 or len(arrays[1].sizes) < 4:
            return NONE
        query, key = arrays[0].sizes, arrays[1].sizes
        said = _SCORE.findall(line.text, line.inside, line.stop)
        if scores := line.search(_SCORES):
            said = re.findall(r"\d{1,18}", scores[1])
        # Without these the layout is batch, sequence, heads, depth.
        points = math.prod(map(int, said)) if len(said) == 4 else math.prod(query[:-1]) * key[1]
        products = (5 if is_backward else 2) * points * query[-1]
        return Matmuls(products if line.search(_CAUSAL) else 2 * products, arrays[0].dtype)

    def hbm_bytes(self, line: Instruction, shapes: Sequence[str]) -> int:
        """The bytes of HBM, and not of memory on the chip, that an instruction reads and writes, each operand
        once: of one that a fusion slices only the slices, of one that it updates in place the update."""
        if (said := self.estimated_bytes(line)) is not None:
            return said
        if line.opcode in SLICES:
            return 2 * bytes_in(line.shape)
        if line.opcode == "dynamic-update-slice":
            return 2 * sum(bytes_in(shape) for shape in shapes[1:2])
        callee = self.lines.callee(line) if line.opcode == "fusion" else None
        callee = None if callee is None else self.first_like(callee)
        if callee is not None and not self._opcodes(callee).isdisjoint(_COLLECTIVES):
            return self._beside_collective(line, shapes)
        sliced: dict[int, int] = {}
        written: int | None = None
        if callee is not None and not self._opcodes(callee).isdisjoint(_IN_PLACE):
            if callee not in self._traffic:
                self._traffic[callee] = self._slices(callee)
            sliced, written = self._traffic[callee]
        total = bytes_in(line.shape) if written is None else written
        for number, shape in enumerate(shapes):
            whole = bytes_in(shape)
            total += min(whole, sliced.get(number, whole))
        return total

    def _beside_collective(self, line: Instruction, shapes: Sequence[str]) -> int:
        """The bytes of a fusion's own work, without the buffers of the collective that it carries on."""
        aliases = aliased_outputs(line.form.words)
        total = bytes_in(line.shape)
        for number, shape in enumerate(shapes):
            outputs = sum(1 for _, operand, _ in aliases if operand == number)
            total += bytes_in(shape) * (1 if not outputs else -outputs)
        return max(0, total)

    def _slices(self, callee: Computation) -> tuple[dict[int, int], int | None]:
        """By the number of a parameter, the bytes that are read of it where that is not all; and the bytes
        that are written where the result is an operand updated in place."""
        # The parameter that a name is, bitcast or converted at most; the bytes that an update of it writes.
        behind: dict[str, int] = {}
        results: dict[str, int] = {}
        read: Counter[int] = Counter()
        whole: set[int] = set()
        written: int | None = None
        for line in self.lines.of(callee):
            opcode, names = line.opcode, line.operands
            if opcode == "parameter":
                if (number := line.parameter_number) is not None:
                    behind[line.name] = number
                continue
            is_move, first = opcode in MOVES, names[0] if names else ""
            if is_move and first in behind and not line.is_root:
                behind[line.name] = behind[first]
                continue
            for index, name in enumerate(names):
                number = behind.get(name)
                if number is None:
                    continue
                if not index and (opcode in SLICES or opcode == "dynamic-update-slice"):
                    read[number] += _unplaced(line.shape) if opcode in SLICES else 0
                elif index < 2 or opcode not in ("dynamic-slice", "dynamic-update-slice"):
                    whole.add(number)
            if opcode == "dynamic-update-slice" and first in behind and len(names) > 1:
                update = self.lines.named(callee, names[1])
                results[line.name] = _unplaced(update.shape) if update else 0
            elif is_move and first in results:
                results[line.name] = results[first]
            if line.is_root and line.name in results:
                written = results[line.name]
            elif line.is_root and opcode == "tuple" and not results.keys().isdisjoint(names):
                made = ((name, self.lines.named(callee, name)) for name in names)
                written = sum(results.get(name, bytes_in(own.shape) if own else 0) for name, own in made)
        return {number: size for number, size in read.items() if number not in whole}, written


def _first_arrays(shapes: Iterable[str]) -> list[PlacedArray]:
    """The array of each shape, of a tuple the first."""
    return [arrays[0] for arrays in map(placed_arrays, shapes) if arrays]


@lru_cache(maxsize=4096)
def aliased_outputs(attributes: str) -> tuple[tuple[Path, int, Path], ...]:
    """The parts of an instruction's result that are an operand: the path, the operand, the path in it."""
    aliases = _OUTPUT_ALIAS.search(attributes)
    return alias_paths(aliases[1]) if aliases else ()


@lru_cache(maxsize=4096)
def alias_paths(text: str) -> tuple[tuple[Path, int, Path], ...]:
    """``{1}: (0, {}), {2}: (1, {0})``, as XLA writes what shares memory."""
    aliases = _ALIAS.findall(text)
    return tuple((_path(path), int(number), _path(inner)) for path, number, inner in aliases)


def _path(text: str) -> Path:
    return tuple(int(number) for number in re.findall(r"\d{1,6}", text))


def _unplaced(shape: str) -> int:
    """The bytes of a value inside a fusion, whose layout does not say where it lies."""
    return sum(array.bytes for array in placed_arrays(shape))


def valid_taps(size: int, taps: int, outputs: int, window: dict[str, str]) -> int:
    """The pairs of an output and a tap of a window, along one dimension, that meet an element of the input,
    as ``ValidPositionCount`` in XLA's ``hlo_cost_analysis.cc`` counts. `window` has ``stride``, ``pad``,
    ``lhs_dilate`` and ``rhs_dilate``; the others are 1 or 0."""
    stride = int(window.get("stride", 1))
    low = int(window.get("pad", "0_0").split("_")[0])
    spread, gap = int(window.get("lhs_dilate", 1)), int(window.get("rhs_dilate", 1))
    if taps > 2**16 or size < 1:
        return taps * outputs
    last = (size - 1) * spread
    step = spread // math.gcd(stride, spread)
    pairs = 0
    for tap in range(taps):
        # Outputs o with 0 <= o·stride + offset <= last and o·stride + offset divisible by the dilation.
        offset = tap * gap - low
        first = max(0, -(offset // stride)) if offset < 0 else 0
        end = min(outputs - 1, (last - offset) // stride)
        starts = (out for out in range(first, first + step) if (out * stride + offset) % spread == 0)
        first = next(starts, end + 1)
        if first <= end:
            pairs += (end - first) // step + 1
    return pairs
