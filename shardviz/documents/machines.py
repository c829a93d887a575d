"""Targets and machines as JSON: their figures, and the place of a mesh on a machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    STRING,
    Beside,
    Document,
    DocumentKind,
    JsonField,
    array_of,
    bandwidth,
    by_name,
    closed,
    count,
    counts,
    flag,
    null_if_empty,
    nullable,
    number,
    one_of,
    text,
    texts,
)
from shardviz.documents.measurements import REGIMES
from shardviz.documents.plans import MESH

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine, PlacedMesh
    from shardviz.sharding import Mesh


def _link(description: str) -> JsonField:
    return closed(
        description,
        bandwidth_bytes_per_s=bandwidth("Bytes a second, one way; inf where that takes no time.").of(
            "bandwidth"
        ),
        latency_seconds=number("Seconds of one hop.").of("latency"),
    )


DEVICE = closed(
    "One JAX device; a figure that nobody publishes is null.",
    peak_flops_per_s=by_name(number("FLOP/s."), "FLOP/s of matrix products, by dtype.").of("peak"),
    hbm_bytes=nullable(count("Bytes of HBM; null: not known.")),
    usable_hbm_bytes=nullable(count("Bytes of HBM that a program may use; null: not known.")).of(
        "usable_bytes"
    ),
    hbm_bandwidth_bytes_per_s=nullable(
        bandwidth("Bytes a second of HBM; inf where that takes no time; null: not known.")
    ).of("hbm_bandwidth"),
    on_chip_bytes=nullable(count("Bytes beside the matrix units; null: not known.")),
    clock_hertz=nullable(number("The clock in hertz; null: not known.")).of("clock"),
)

MACHINE = DocumentKind(
    "machine",
    "machine",
    "A machine: the figures of its devices and links, and where a mesh lies on it.",
    name=text("The name of the hardware, or that of its file."),
    chip=text("The chip."),
    source=text("The origin of the figures."),
    devices=count("JAX devices in all."),
    devices_per_chip=count("JAX devices of one chip.").of("family.devices_per_chip"),
    slices=count("TPU slices, joined by the network.").of("family.slices"),
    device=DEVICE,
    torus=array_of(
        closed(
            "An axis of each slice's torus.",
            axis=text("x, y or z."),
            chips=count("Chips along it."),
            is_ring=flag("Its last chip is linked to its first."),
            link=_link("A link between neighbours."),
        ),
        "The axes of the torus; none for GPUs.",
    ).of(lambda machine: _axes(machine)),
    node=nullable(
        closed(
            "A node of GPUs.",
            devices=count("GPUs of a node."),
            link=_link("A GPU's link to the switch."),
        )
    ).of(lambda machine: _node(machine)),
    cores=nullable(_link("Between two devices of a chip; null: a chip is one.")).of(
        lambda machine: machine.family.links.get("chip")
    ),
    network=nullable(_link("A device's part of the network between slices or nodes; null: there is none.")),
    measured=array_of(
        closed(
            "A collective whose times were measured, which stand for the formulas.",
            op=text("JAX's name."),
            mesh=text("The mesh on which it was measured."),
            axes=texts("The mesh axes of its groups."),
            dtype=null_if_empty(text("The dtype; null: not given.")),
            noise=nullable(number("The usual spread of the runs over their median; null: not known.")),
            regimes=REGIMES,
        ),
        "What was measured; it holds for all groups with the same links.",
    ),
    mesh=nullable(MESH("The mesh; null: none was given.")),
    mesh_axes=nullable(
        array_of(
            closed(
                "A mesh axis.",
                axis=text("The mesh axis."),
                along=array_of(
                    closed(
                        "A physical dimension.",
                        kind=one_of("The links.", "ring", "line", "switch", "network", "chip"),
                        name=text("What it is called: x, NVLink, DCN."),
                        devices=count("Members of a group along it.").of("size"),
                        hops=count("Links between neighbours of the group."),
                        load=count("Messages that share the busiest of these links when all groups send.").of(
                            "messages"
                        ),
                        link=_link("A link, or a group's part of one that several share.").of("spec"),
                    ),
                    "The physical dimensions that it lies along, the major first.",
                ),
            ),
            "Where each axis of the mesh lies.",
        )
    ),
    device_ids=nullable(counts("Device ids by row-major mesh position; null: no mesh was given.")),
)


TARGETS = DocumentKind(
    "targets",
    "targets",
    "The targets, and how to install them.",
    groups=array_of(
        closed(
            "Targets that need the same packages.",
            group=text("The group's name, and that of the extra of this package.").of("name"),
            title=text("A description of these targets."),
            available=flag("They can answer here.").of(lambda group: not group.missing),
            missing=null_if_empty(text("The packages that are missing; null: none.")),
            install=null_if_empty(
                text("The command that installs them; null: there is none for this machine.")
            ).of("command"),
            versions=by_name(STRING, "Versions of the packages that are here, by package."),
            targets=array_of(
                closed(
                    "A target, or one of many.",
                    target=text("A name that --target takes.").of("name"),
                    description=text("The compiler or hardware of that name.").of("what"),
                    device=nullable(DEVICE).of(lambda choice: choice.machine and choice.machine.device),
                ),
                "Targets of the group.",
            ).of("choices"),
            takes=null_if_empty(text("Other names that the group takes; null: no others.")),
        ),
        "All groups.",
    ),
)


def _axes(machine: Machine) -> Iterator[Beside]:
    for axis in machine.family.torus:
        yield Beside(axis=axis.name, chips=axis.size, is_ring=axis.kind == "ring", link=axis.link)


def _node(machine: Machine) -> Beside | None:
    nodes = (one for one in machine.family.dimensions if one.kind == "switch")
    return next((Beside(devices=node.size, link=node.link) for node in nodes), None)


def machine_document(machine: Machine, mesh: Mesh | None, placed: PlacedMesh | None) -> Document:
    """The machine, and where the mesh lies that is `placed` on it."""
    axes = ids = None
    if placed is not None:
        axes = [Beside(axis=axis, along=placed.group_levels((axis,))) for axis, _ in placed.levels]
        ids = None if placed.placement is None else placed.placement.ids
    return MACHINE.document(machine, mesh=mesh, mesh_axes=axes, device_ids=ids)
