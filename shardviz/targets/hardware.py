"""The hardware of targets: the machine that prices an answer, descriptions for JAX and the compilers, and all
targets in groups, each with what it needs and what installs that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from shardviz.errors import QuestionError, plural
from shardviz.hardware.chips import (
    COMPILED,
    GPUS,
    HOST,
    MAX_DEVICES,
    MAX_GPUS,
    TPUS,
    Gpu,
    TpuChip,
    nodes_name,
    slices_name,
)
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.machine import Machine, PlacedMesh, assumed_machine, place_mesh
from shardviz.sharding import Mesh
from shardviz.targets import EXTRAS, TARGETS, ProcessName, Target, pip, versions_of


def machine_for(named: str | Machine | None, targets: Iterable[Target], mesh: Mesh) -> Machine:
    """The machine of `--machine`; where nothing is `named`, the first TPU or GPU target of the mesh's size;
    without one, v5e chips of which every mesh axis is a ring (`Machine.assumed`).

    Raises `QuestionError` for a machine that does not exist or has a bad file."""
    if isinstance(named, Machine):
        return named
    if named is not None and named.strip():
        # With TOML, which nothing else here needs.
        from shardviz.hardware.machine_file import named_machine

        return named_machine(named, mesh.size)
    for target in targets:
        if target.machine is not None and target.machine.devices == mesh.size:
            return target.machine
    return assumed_machine()


def placed_for(named: str | Machine | None, targets: Iterable[Target], mesh: Mesh) -> PlacedMesh:
    """The mesh on the machine that prices it; a target on which JAX places no such mesh says so in its
    answer, and is not the machine. Raises `QuestionError` as `machine_for` does, and for a named machine of
    another size, or on which JAX does not place the mesh."""
    machine = machine_for(named, targets, mesh)
    try:
        return place_mesh(machine, mesh)
    except QuestionError:
        if named:
            raise
        return place_mesh(assumed_machine(), mesh)


@dataclass(frozen=True)
class TopologyRequest:
    """The hardware of a "tpu" or "cuda" target, as `jax.experimental.topologies` wants it described:
    "v5e:2x4", or for GPUs "1x2x8" (partitions, nodes, GPUs in a node), and the plugin's other keywords."""

    platform: str
    topology: str
    options: tuple[tuple[str, Any], ...] = ()


def topology_request(machine: Machine) -> TopologyRequest:
    """The description of hardware for the compiler of its chips."""
    family = machine.family
    if family.process == "cuda":
        gpus, nodes = (one.size for one in family.dimensions)
        return TopologyRequest("cuda", f"1x{nodes}x{gpus}", (("gpu", machine.chip),))
    options: list[tuple[str, Any]] = []
    if family.slices > 1:
        options.append(("num_slices", family.slices))
    if any(size % host for size, host in zip(family.torus_sizes, HOST, strict=False)):
        # Releases of libtpu before 0.0.52 take a part of a host only as hosts of one chip.
        options.append(("chips_per_host_bounds", (1, 1, 1)))
    if machine.chip == "v4":
        options.append(("chip_config_name", "megacore"))
    return TopologyRequest("tpu", slices_name(machine.chip, family.torus_sizes), tuple(options))


RESERVED = 2**10
"""Of a core's shared memory, what CUDA keeps for each block."""


def target_config(name: str) -> str:
    """A GPU of `GPUS` as XLA wants one described that is not here: a `GpuTargetConfigProto`."""
    gpu = GPUS[name]
    bandwidth, clock = round(gpu.device.hbm_bandwidth or 0), (gpu.device.clock or 0) / 1e9
    template = (files("shardviz.targets") / "gpu_target.txtpb").read_text("utf-8")
    return "\n" + template.format(gpu=gpu, optin=gpu.shared - RESERVED, bandwidth=bandwidth, clock=clock)


DEVICES = 8
"""As many as the mesh has of a question that names none: each TPU or GPU that is listed fits it."""


@dataclass(frozen=True)
class Choice:
    """A target, or one of many: `name` can be given as it stands, `what` says what it is.

    `machine` has the figures of its hardware; None where another choice has them, and for others."""

    name: str
    what: str
    machine: Machine | None = None


@dataclass(frozen=True)
class TargetGroup:
    """Targets that need the same packages, with their versions; `takes` says which other names there are,
    `missing` what is not here ("" where the group can answer), `command` what installs it, "" if nothing."""

    name: str
    title: str
    choices: tuple[Choice, ...]
    takes: str
    missing: str
    command: str
    versions: tuple[tuple[str, str], ...]


def target_groups() -> tuple[TargetGroup, ...]:
    """Every group. No compiler is loaded for it."""
    two_slices = Choice(slices_name("v5e", (2, 2), 2), "2 slices, joined by the data-center network")
    jax = tuple(Choice(target.name, target.description) for target in TARGETS.values())
    return (
        TargetGroup("jax", "JAX alone", jax, "", "", pip("install", "jax"), versions_of("jax", "jaxlib")),
        _group(
            "tpu",
            "TPUs, none needed here",
            (*map(_tpu, TPUS.values()), two_slices),
            "Sizes are chips along x, y and z: 1 or an even number along x and y, any along z. The number "
            f"before * is that of slices; up to {MAX_DEVICES:,} devices in all.",
        ),
        _group(
            "cuda",
            "NVIDIA GPUs, none needed here",
            tuple(_gpu(gpu) for gpu in GPUS.values() if gpu.name in COMPILED),
            f"Sizes are GPUs, or nodes x GPUs of each, up to {MAX_GPUS:,} GPUs in all.",
        ),
    )


def _group(process: ProcessName, title: str, choices: tuple[Choice, ...], takes: str) -> TargetGroup:
    extra = EXTRAS[process]
    missing = "" if extra.installed else "not installed" if extra.installable else f"{extra.exists_for} only"
    command = extra.command if extra.installed or extra.installable else ""
    return TargetGroup(extra.name, title, choices, takes, missing, command, versions_of(*extra.packages))


def _tpu(chip: TpuChip) -> Choice:
    name, *_ = chip.names_of_size(DEVICES)
    per_chip = f"{plural(chip.devices_per_chip, 'device')} a chip"
    what = f"{chip.device_kind}: {per_chip}, a {chip.rank}-D torus, pods of up to {chip.pod:,} chips"
    return Choice(name, what, parse_cluster(slices_name(chip.name, (1,) * chip.rank)))


def _gpu(gpu: Gpu) -> Choice:
    name, two = nodes_name(gpu.name, 1, min(gpu.node, DEVICES)), nodes_name(gpu.name, 2, gpu.node)
    what = f"{gpu.device_kind}: up to {gpu.node} in a node; {two} is two nodes"
    return Choice(name, what, parse_cluster(name))
