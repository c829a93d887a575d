"""The places with a name to go to: a device, a step of the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, plural, quote

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

NUMBER = re.compile(r"(?:device\s+)?(\d{1,12})")


@dataclass(frozen=True)
class DeviceJump:
    """To the device at a row-major position of the mesh."""

    position: int


@dataclass(frozen=True)
class StepJump:
    """To a step of the plan, by its number from 1."""

    number: int


Jump = DeviceJump | StepJump


def device_at(text: str, mesh: Mesh) -> DeviceJump | None:
    """The device of a number, ``5``, or of coordinates, ``X=1,Y=2`` or ``X1 Y2``; an axis that is not named
    counts as 0. None where the text is neither. Raises `QuestionError` for a device or a coordinate that the
    mesh does not have."""
    if (number := NUMBER.fullmatch(text.strip())) is not None:
        device = int(number[1])
        if device >= mesh.size:
            devices = f"the mesh has {plural(mesh.size, 'device')}, 0 to {mesh.size - 1}"
            raise QuestionError(f"device {quote(str(device))} does not exist", devices)
        return DeviceJump(device if mesh.device_order is None else mesh.device_order.index(device))
    longest_first = sorted(mesh.axis_names, key=len, reverse=True)
    pair = rf"({'|'.join(longest_first)})\s*=?\s*(\d{{1,12}})"
    if not longest_first or not re.fullmatch(rf"(?:{pair}[\s,]*)+", text.strip()):
        return None
    coordinates = {axis: int(at) for axis, at in re.findall(pair, text)}
    for axis, at in coordinates.items():
        if at >= mesh.axis_size(axis):
            problem = f"{axis}={at} is not on the mesh"
            raise QuestionError(problem, f"{axis} has the coordinates 0 to {mesh.axis_size(axis) - 1}")
    return DeviceJump(sum(at * mesh.stride(axis) for axis, at in coordinates.items()))
