"""The targets in groups: each with what it needs, whether that is here, and what installs it."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.errors import plural
from shardviz.hardware.chips import GPUS, MAX_DEVICES, TPUS, Gpu, TpuChip
from shardviz.hardware.clusters import MAX_GPUS, GpuNodes, TpuSlices
from shardviz.hardware.machine import Machine, machine_of
from shardviz.targets import TARGETS, ProcessName
from shardviz.targets.installed import EXTRAS, versions_of

DEVICES = 8
"""As many as the mesh has of a question that names none: each TPU or GPU that is listed fits it."""


@dataclass(frozen=True)
class Choice:
    """A target, or one of many: `name` can be given as it stands, `what` says what it is.

    `machine` has the figures of its hardware; None where another choice has them, and for others.
    """

    name: str
    what: str
    machine: Machine | None = None


@dataclass(frozen=True)
class TargetGroup:
    """Targets that need the same packages; `takes` says which other names there are.

    `missing` says what is not here, "" where the group can answer; `command` installs it, "" where nothing
    does on this machine. `versions` are (package, version).
    """

    name: str
    title: str
    choices: tuple[Choice, ...]
    takes: str
    missing: str
    command: str
    versions: tuple[tuple[str, str], ...]


def target_groups() -> tuple[TargetGroup, ...]:
    """Every group. No compiler is loaded for it."""
    slices = TpuSlices(TPUS["v5e"], (2, 2), 2)
    return (
        _jax(),
        _hardware(
            "tpu",
            "TPUs, none needed here",
            (*map(_tpu, TPUS.values()), Choice(slices.name, "2 slices, joined by the data-center network")),
            "Sizes are chips along x, y and z: 1 or an even number along x and y, any along z. Before * "
            f"stands how many slices, up to {MAX_DEVICES:,} devices in all.",
        ),
        _hardware(
            "cuda",
            "NVIDIA GPUs, none needed here",
            tuple(map(_gpu, GPUS.values())),
            f"Sizes are GPUs, or nodes x GPUs of each, up to {MAX_GPUS:,} GPUs in all.",
        ),
    )


def _jax() -> TargetGroup:
    choices = tuple(Choice(target.name, target.description) for target in TARGETS.values())
    return TargetGroup("jax", "JAX alone", choices, "", "", "pip install jax", versions_of("jax", "jaxlib"))


def _hardware(process: ProcessName, title: str, choices: tuple[Choice, ...], takes: str) -> TargetGroup:
    extra = EXTRAS[process]
    missing = "" if extra.installed else "not installed" if extra.installable else f"{extra.exists_for} only"
    command = extra.command if extra.installed or extra.installable else ""
    return TargetGroup(extra.name, title, choices, takes, missing, command, versions_of(*extra.packages))


def _tpu(chip: TpuChip) -> Choice:
    name, *_ = TpuSlices(chip, (1,) * chip.rank).of_size(DEVICES)
    each = f"{plural(chip.devices_per_chip, 'device')} a chip"
    what = f"{chip.device_kind}: {each}, a {chip.rank}-D torus, pods of up to {chip.pod:,} chips"
    return Choice(name, what, machine_of(TpuSlices(chip, (1,) * chip.rank)))


def _gpu(gpu: Gpu) -> Choice:
    one = GpuNodes(gpu, 1, gpu.node)
    what = f"{gpu.device_kind}: up to {gpu.node} in a node; {GpuNodes(gpu, 2, gpu.node).name} is two nodes"
    return Choice(one.name, what, machine_of(one))
