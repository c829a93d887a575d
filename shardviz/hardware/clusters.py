"""Slices of TPUs and nodes of GPUs, by the names that `--target` and `--machine` take.

Names are ``v5e:2x4``, ``2*v5e:4x4``, ``h100:2x8``; they are checked here, before a compiler sees them: that
for TPUs would take an axis of 0, divide by it, and die.

Read as well, as people say them: Google Cloud's accelerator types, ``v5p-128`` and ``v5litepod-8``, and
counts of chips, ``8xh100``, ``8xv5p``, ``h100x8``, ``v5e8``. The number of a type counts the TensorCores of
v2, v3, v4, v5p and tpu7x, two a chip, and the chips of v5e and v6e (Cloud TPU's documentation of each
version; its `xpk` names slices so); the slice is the most compact of so many chips.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal

from shardviz.errors import plural, quote
from shardviz.hardware.chip_torus import ChipTorus
from shardviz.hardware.chips import (
    DCN_LATENCY,
    GPUS,
    ICI_HOP,
    INFINIBAND_HOP,
    MAX_DEVICES,
    NVLINK_HOP,
    TPU_ALIASES,
    TPUS,
    Gpu,
    TpuChip,
)
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.switched_nodes import SwitchedNodes

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

SUGGESTED = 2
MAX_GPUS = 2**14


@dataclass(frozen=True)
class TpuSlices:
    """`slices` equal slices of one generation, joined by the data-center network; `torus` are the sizes of
    each, in chips."""

    chip: TpuChip
    torus: tuple[int, ...]
    slices: int = 1
    process: ClassVar[Literal["tpu", "cuda"]] = "tpu"

    @property
    def name(self) -> str:
        """As it stands after `--target`."""
        many = f"{self.slices}*" if self.slices > 1 else ""
        return f"{many}{self.chip.name}:{times(self.torus)}"

    @property
    def description(self) -> str:
        one = f"{plural(math.prod(self.torus), 'chip')} of {self.chip.device_kind}"
        return f"XLA for {self.slices} slices of {one}" if self.slices > 1 else f"XLA for {one}"

    @property
    def devices(self) -> int:
        return self.slices * math.prod(self.torus) * self.chip.devices_per_chip

    @property
    def family(self) -> ChipTorus:
        """The slices with the published figures of their links."""
        chip = self.chip
        return ChipTorus.of(
            chip.name,
            self.torus,
            chip.wrap(self.torus),
            (LinkSpec(ICI_HOP, chip.link),) * len(self.torus),
            chip.devices_per_chip,
            self.slices,
            LinkSpec(ICI_HOP, chip.between_cores) if chip.between_cores else None,
            LinkSpec(DCN_LATENCY, chip.network / chip.devices_per_chip),
        )

    @property
    def made_of(self) -> str:
        """Why that many devices; "" where each chip is one."""
        cores = self.chip.devices_per_chip
        chips = plural(self.slices * math.prod(self.torus), "chip")
        return "" if cores == 1 else f" ({chips} of {cores} devices)"

    def of_size(self, devices: int) -> list[str]:
        """Names of the same chip with that many devices: the most compact, the whole pod at most; none where
        nobody can be asked about so many."""
        if devices > MAX_DEVICES:
            return []
        names = []
        for slices in dict.fromkeys((self.slices, 1)):
            chips, rest = divmod(devices, slices * self.chip.devices_per_chip)
            if chips and not rest:
                names += [TpuSlices(self.chip, torus, slices).name for torus in tori(self.chip, chips)]
        return names[:SUGGESTED]


@dataclass(frozen=True)
class GpuNodes:
    """`nodes` equal nodes of `gpus` each."""

    chip: Gpu
    nodes: int
    gpus: int
    process: ClassVar[Literal["tpu", "cuda"]] = "cuda"
    made_of: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """As it stands after `--target`."""
        many = f"{self.nodes}x" if self.nodes > 1 else ""
        return f"{self.chip.name}:{many}{self.gpus}"

    @property
    def description(self) -> str:
        where = f"{self.nodes} nodes of " if self.nodes > 1 else ""
        return f"XLA for {where}{self.gpus} {self.chip.name.upper()}"

    @property
    def devices(self) -> int:
        return self.nodes * self.gpus

    @property
    def family(self) -> SwitchedNodes:
        """The nodes with the published figures of their links."""
        return SwitchedNodes.of(
            self.chip.name,
            self.gpus,
            self.nodes,
            LinkSpec(NVLINK_HOP, self.chip.link),
            LinkSpec(INFINIBAND_HOP, self.chip.network),
        )

    def of_size(self, devices: int) -> list[str]:
        """The name with that many devices, in whole nodes; none where nobody can be asked about so many."""
        if devices > MAX_GPUS:
            return []
        if devices <= self.chip.node:
            return [GpuNodes(self.chip, 1, devices).name]
        nodes, rest = divmod(devices, self.chip.node)
        return [] if rest else [GpuNodes(self.chip, nodes, self.chip.node).name]


Cluster = TpuSlices | GpuNodes


def clusters_of_size(devices: int) -> list[Cluster]:
    """Hardware with so many devices, TPUs first and the newest of them: of every chip the most compact slices
    of one pod, or whole nodes."""
    of_one: list[Cluster] = [TpuSlices(chip, (1,) * chip.rank) for chip in reversed(TPUS.values())]
    of_one += [GpuNodes(gpu, 1, 1) for gpu in reversed(GPUS.values())]
    names = (name for one in of_one for name in one.of_size(devices))
    return [cluster for name in names if (cluster := parse_cluster(name)) is not None]


def tori(chip: TpuChip, chips: int) -> list[tuple[int, ...]]:
    """Sizes of a slice of so many chips, the most compact first; none where no pod is that large."""
    if chips > chip.pod:
        return []
    divisors = [size for size in range(1, chips + 1) if chips % size == 0]
    compact = set()
    for sizes in product(divisors, repeat=chip.rank - 1):
        rest, missing = divmod(chips, math.prod(sizes))
        # In rising order, but flat slices in z: 2x4, 2x2x4, 4x4x1.
        torus = tuple(sorted((*sizes, rest), key=lambda size: (size == 1 and chip.rank == 3, size)))
        fills_hosts = not missing and chip.split_host(torus) is None
        if fills_hosts and chip.fits_a_pod(torus) and chip.has_routes(torus):
            compact.add(torus)
    return sorted(compact, key=lambda torus: (max(torus), torus))


def times(sizes: Iterable[int]) -> str:
    """``4x4x8``."""
    return "x".join(map(str, sizes))


def another_size(
    name: str, devices: int, cluster: Cluster | None, mesh: Mesh, option: str, *, resizes: bool = True
) -> tuple[str, str]:
    """The error for hardware of so many devices and a mesh of another size, and the hint: other hardware,
    given by `option`, or with `resizes` another mesh."""
    fitting = [] if cluster is None else cluster.of_size(mesh.size)
    hints = [f"{option} {' or '.join(fitting)}"] if fitting else []
    if resizes:
        hints.append(f"--mesh {_mesh_of_size(mesh, devices)}")
    made_of = "" if cluster is None else cluster.made_of
    return (
        f"{name} has {plural(devices, 'device')}{made_of}, but the mesh {mesh} has {mesh.size:,}",
        f"use {', or '.join(hints) or f'a machine of {mesh.size:,}'}",
    )


def _mesh_of_size(mesh: Mesh, size: int) -> str:
    """The axes of a mesh, resized as little as possible so that they have `size` devices together."""
    sizes = dict(mesh.shape)
    for axis in sizes:
        others = mesh.size // sizes[axis]
        if size % others == 0:
            sizes[axis] = size // others
            break
    else:
        rest = size
        for axis in list(sizes)[:-1]:
            sizes[axis] = next(part for part in range(min(rest, sizes[axis]), 0, -1) if rest % part == 0)
            rest //= sizes[axis]
        sizes[list(sizes)[-1]] = rest
    return ",".join(f"{axis}={size}" for axis, size in sizes.items())


_PARTS = re.compile(r"(?:(?P<count>[^:*]*)\*)?(?P<chip>[^:*]*)(?P<colon>:)?(?P<sizes>.*)", re.DOTALL)
MAX_DIGITS = 9
"""Longer numbers are not computed with."""

_NUMBER = re.compile(r"[0-9]++", re.ASCII)
_CHIP = f"(?P<chip>{'|'.join(sorted((*TPUS, *TPU_ALIASES, *GPUS), key=len, reverse=True))})"
_COUNTED = re.compile(
    rf"(?P<before>[0-9]++) *[x×]? *(?:tpu|nvidia)?[ _-]?{_CHIP}s?"
    rf"|(?:tpu|nvidia)?[ _-]?{_CHIP.replace('chip', 'kind')}(?P<by> *[-x×_ ] *|(?<=[a-z]))(?P<after>[0-9]++)",
    re.ASCII,
)
"""A chip and how many, either first; between a name that ends in a digit and a number stands something."""
_NAMED = re.compile(rf"(?<![a-wyz0-9]){_CHIP}(?![a-z])(?:[^0-9]?(?P<sizes>[0-9]{{1,3}}(?:x[0-9]{{1,3}})+))?")
"""A chip anywhere in a name, and sizes behind it."""

_LIKELY = re.compile(
    r"(?:tpu[-_ ]?)?v?[0-9]{1,2}[a-z]{0,7}|tpu\w{0,6}|(?:gb|[abhlv])[0-9]{2,3}s?|gpus?|cuda|nvidia", re.ASCII
)
"""Names that look like a chip's."""
_A_GPU = f"GPU and how many: h100:8 (also {', '.join(name for name in GPUS if name != 'h100')})"
_A_TPU = f"generation and its chips: v5e:2x4 (also {', '.join(name for name in TPUS if name != 'v5e')})"
_MAKERS = {
    **dict.fromkeys(("gpu", "gpus", "cuda", "nvidia"), _A_GPU),
    **dict.fromkeys(("tpu", "tpus"), _A_TPU),
}
"""What to name instead of words for all chips of a maker."""


def _parsed(name: str) -> re.Match[str]:
    match = _PARTS.fullmatch(name)
    assert match is not None
    return match


class Fault(Exception):
    """An error in a name: the offending piece stands from `start` to `stop` in it."""

    def __init__(self, problem: str, start: int, stop: int, hint: str) -> None:
        super().__init__(problem)
        self.problem, self.start, self.stop, self.hint = problem, start, max(stop, start + 1), hint


def cluster_named(name: str) -> Cluster | None:
    """The cluster of a name in any case; None for any other text."""
    try:
        return parse_cluster(name.strip().lower())
    except Fault:
        return None


def parse_cluster(name: str) -> Cluster | None:
    """Read a name in lower case; None for a word that names no chip. Raises `Fault`."""
    match = _parsed(name)
    chip = match["chip"].strip()
    if TPU_ALIASES.get(chip, chip) in TPUS:
        return _tpu(TPUS[TPU_ALIASES.get(chip, chip)], match)
    if chip in GPUS:
        return _gpu(GPUS[chip], match)
    counted = None if match["colon"] else _COUNTED.fullmatch(chip)
    if counted is not None:
        return _counted(counted, match)
    named = None if match["colon"] else _NAMED.search(name)
    if named is None and (
        match["colon"] or match["count"] is not None or (len(chip) <= 40 and _LIKELY.fullmatch(chip))
    ):
        if not chip:
            raise Fault("a chip is missing", *match.span("chip"), _everything())
        if maker := _MAKERS.get(chip):
            raise Fault(f"{chip} is not a chip,", *match.span("chip"), f"name the {maker}")
        raise Fault(f"unknown chip {quote(match['chip'], 30)}", *match.span("chip"), _chips_like(chip))
    if named is not None:
        known = TPU_ALIASES.get(named["chip"], named["chip"])
        example = _example(TPUS[known]) if known in TPUS else f"{known}:8"
        meant = f"{known}:{named['sizes']}" if named["sizes"] else example
        raise Fault(f"unknown target {quote(name, 30)}", *match.span(), f"did you mean {meant}?")
    return None


def _counted(counted: re.Match[str], match: re.Match[str]) -> Cluster:
    """``v5p-128``, ``8xv5p``: slices by how many cores or chips each has; ``8xh100``: nodes."""
    alias = counted["chip"] or counted["kind"]
    known = TPU_ALIASES.get(alias, alias)
    group = "before" if counted["before"] else "after"
    count = _number(counted[group], match.start("chip") + counted.start(group), _everything())
    if known in GPUS:
        return _gpus(GPUS[known], count, match)
    chip = TPUS[known]
    if group == "before":
        return _slices(chip, count, 1, match)
    if chip.cores == 1 or counted["by"].strip() == "-":
        return _slices(chip, count, chip.cores, match)
    whole = _slices(chip, count, 1, match)
    hint = f"did you mean {whole.name} for {plural(count, 'chip')}, or {known}-{count}, which counts cores?"
    raise Fault(f"{quote(match['chip'], 30)} may count chips or cores", *match.span("chip"), hint)


def _tpu(chip: TpuChip, match: re.Match[str]) -> TpuSlices:
    slices, span = 1, match.span("count")
    example = _example(chip)
    if match["count"] is not None:
        slices = _number(match["count"], span[0], f"write 2*{example} for two slices")
        if slices < 1:
            raise Fault("no slices", *span, f"use 1 or more: {example} or 2*{example}")
    hint = f"say how many chips along each axis: {example}"
    if not match["colon"] and slices > 1 and (whole := tori(chip, slices)):
        one = TpuSlices(chip, whole[0]).name
        hint = f"write {one} for {slices} chips, {slices}*{example} for {slices} slices"
    torus = _sizes(match, chip.name, hint)
    start, stop = match.span("sizes")
    if len(torus) != chip.rank:
        problem = f"{chip.name} is a torus of {chip.rank} axes, not {len(torus)},"
        raise Fault(problem, start, stop, _rank(chip, torus))
    if (axis := chip.split_host(torus)) is not None:
        # Both x and y may be odd.
        odd = [axis < 2 and size % 2 and size > 1 for axis, size in enumerate(torus)]
        lower, upper = (
            times(size + step * bool(is_odd) for size, is_odd in zip(torus, odd, strict=True))
            for step in (-1, 1)
        )
        problem = f"{torus[axis]} chips along {'xyz'[axis]} do not fill whole hosts of 2x2 chips,"
        hint = f"sizes along x and y are 1 or even: {chip.name}:{lower} or {chip.name}:{upper}"
        raise Fault(problem, start, stop, hint)
    cluster = TpuSlices(chip, torus, slices)
    alone = TpuSlices(chip, torus).name
    if not chip.fits_a_pod(torus):
        largest = f"{chip.longest_axis}x{chip.longest_axis}" if chip.rank == 2 else f"{chip.pod:,} chips"
        joined = TpuSlices(chip, (4,) * chip.rank, 2).name
        pods = f"pods of {chip.name} have up to {largest}"
        hint = f"{pods}; {joined} joins two slices by the data-center network"
        raise Fault(f"{alone} is larger than a pod", start, stop, hint)
    if not chip.has_routes(torus):
        others = [TpuSlices(chip, other).name for other in tori(chip, math.prod(torus))]
        hint = f"use {' or '.join(others[:2] or [f'{chip.name}:4x4', f'{chip.name}:8x8'])}"
        raise Fault(f"the TPU compiler has no routes for {alone}", start, stop, hint)
    if cluster.devices > MAX_DEVICES:
        problem = f"{cluster.devices:,} devices are more than the {MAX_DEVICES:,} that can be asked about"
        most = MAX_DEVICES // (cluster.devices // slices)
        raise Fault(problem, *span, f"use up to {most:,} slices of {alone}")
    return cluster


def _slices(chip: TpuChip, count: int, cores: int, match: re.Match[str]) -> TpuSlices:
    """The most compact slice of so many cores, `cores` to a chip, or chips where that is 1."""
    noun = "core" if cores == 2 else "chip"
    compact = [] if count % cores else tori(chip, count // cores)
    if not compact:
        counts = "cores, 2 a chip" if cores == 2 else "chips"
        problem = f"no slice of {chip.name} has {plural(count, noun)}"
        hint = f"the number counts {counts}; write the sizes of the slice: {_example(chip)}"
        raise Fault(problem, *match.span("chip"), hint)
    slices, one = match["count"] or "", TpuSlices(chip, compact[0]).name
    return _tpu(chip, _parsed(f"{slices}*{one}" if match["count"] is not None else one))


def _example(chip: TpuChip) -> str:
    return f"{chip.name}:{'2x2x1' if chip.rank == 3 else '2x4'}"


def _gpus(gpu: Gpu, count: int, match: re.Match[str]) -> GpuNodes:
    """``8xh100``: nodes by how many GPUs they have in all."""
    span = match.span("chip")
    if match["count"] is not None:
        raise Fault("slices are for TPUs,", *match.span("count"), f"write {gpu.name}:2x{gpu.node}")
    if count > MAX_GPUS:
        raise _too_many_gpus(gpu, count, span)
    names = GpuNodes(gpu, 1, 1).of_size(count) if count else []
    if not names:
        for_one, for_two = f"{gpu.name}:{gpu.node} for one", f"{gpu.name}:2x{gpu.node} for two"
        hint = f"a node holds {gpu.node}: write {for_one}, {for_two}"
        raise Fault(f"{count:,} {gpu.name.upper()} are not whole nodes", *span, hint)
    return _gpu(gpu, _parsed(names[0]))


def _rank(chip: TpuChip, torus: tuple[int, ...]) -> str:
    """The sizes that were probably meant, where the number of axes is another."""
    if len(torus) == 1 and (compact := tori(chip, torus[0])):
        return f"write {TpuSlices(chip, compact[0]).name} for {plural(torus[0], 'chip')}"
    meant = tuple(size for size in torus if size != 1) if len(torus) > chip.rank else torus
    if len(meant) <= chip.rank:
        return f"write {chip.name}:{times((*meant, *(1,) * (chip.rank - len(meant))))}"
    return f"write {_example(chip)}, or another chip with {len(torus)} axes"


def _gpu(gpu: Gpu, match: re.Match[str]) -> GpuNodes:
    if match["count"] is not None:
        if not match["colon"] and _NUMBER.fullmatch(match["count"].strip()):
            return _gpus(gpu, _number(match["count"], match.start("count"), ""), _parsed(gpu.name))
        hint = f"write {gpu.name}:2x{gpu.node} for two nodes of {gpu.node}"
        raise Fault("slices are for TPUs,", *match.span("count"), hint)
    example = f"{gpu.name}:{gpu.node} for one node, {gpu.name}:2x{gpu.node} for two"
    sizes = _sizes(match, gpu.name, f"say how many GPUs: {example}")
    start, stop = match.span("sizes")
    if len(sizes) > 2:
        problem = f"{gpu.name} takes nodes x GPUs, not {len(sizes)} sizes,"
        raise Fault(problem, start, stop, f"write {example}")
    nodes, gpus = sizes if len(sizes) == 2 else (1, *sizes)
    if gpus > gpu.node:
        whole, rest = divmod(nodes * gpus, gpu.node)
        meant = f"{gpu.name}:{whole}x{gpu.node}" if not rest else example
        raise Fault(f"a node holds {gpu.node} GPUs, not {gpus:,}", start, stop, f"write {meant}")
    if nodes * gpus > MAX_GPUS:
        raise _too_many_gpus(gpu, nodes * gpus, (start, stop))
    return GpuNodes(gpu, nodes, gpus)


def _too_many_gpus(gpu: Gpu, count: int, span: tuple[int, int]) -> Fault:
    problem = f"{count:,} GPUs are more than the {MAX_GPUS:,} that can be asked about"
    return Fault(problem, *span, f"use at most {gpu.name}:{MAX_GPUS // gpu.node}x{gpu.node}")


def _sizes(match: re.Match[str], chip: str, hint: str) -> tuple[int, ...]:
    if not match["sizes"].strip():
        raise Fault(f"{chip} has no size", *match.span("chip"), hint)
    sizes, start = [], match.start("sizes")
    for piece in re.split("[x×]", match["sizes"]):
        size = _number(piece, start, hint)
        if size < 1:
            raise Fault(f"{chip} has no axis of {size}", start, start + len(piece), "sizes are 1 or more")
        sizes.append(size)
        start += len(piece) + 1
    return tuple(sizes)


def _number(text: str, start: int, hint: str) -> int:
    number = text.strip()
    if not _NUMBER.fullmatch(number):
        problem = f"{quote(text, 30)} is not a number" if number else "a number is missing"
        raise Fault(problem, start, start + len(text), hint)
    if len(number.lstrip("0")) > MAX_DIGITS:
        raise Fault(f"{quote(text, 30)} is too large", start, start + len(text), hint)
    return int(number)


def _chips_like(chip: str) -> str:
    from difflib import get_close_matches

    known = (*TPUS, *TPU_ALIASES, *GPUS)
    close = get_close_matches(chip, known, n=1, cutoff=0.6) if len(chip) <= 40 else []
    return f"did you mean {TPU_ALIASES.get(close[0], close[0])}? {_everything()}" if close else _everything()


def _everything() -> str:
    return f"the chips are {', '.join(TPUS)}, {', '.join(GPUS)}"
