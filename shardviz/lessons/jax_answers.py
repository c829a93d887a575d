"""A measure's answer as JAX's own layout or program says it, without a word of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shardviz.hlo import Collective
    from shardviz.sharding import Mesh

Bounds = tuple[tuple[int, int], ...]
"""(start, stop) of each dimension."""


class Held(Protocol):
    """What every device holds of an array: `shardviz.compiler`'s `LayoutOutput` has it.

    `bits` are those of one element; `devices` has for each mesh position the device's id and its slices.
    `error` says why JAX refuses the array; empty where it does not.
    """

    @property
    def shard_shape(self) -> tuple[int, ...]: ...
    @property
    def bits(self) -> int: ...
    @property
    def devices(self) -> Sequence[tuple[int, Bounds]]: ...
    @property
    def error(self) -> str: ...


def said(ask: str, mesh: Mesh, held: Sequence[Held]) -> str | None:
    """The answer to a measure about arrays or devices, from JAX's layout of each array that it is about.

    None for a measure that such layouts do not answer.
    """
    name, *arguments = ask.split()
    answer = _ANSWERS.get(name)
    return None if answer is None or not held else answer(mesh, held, arguments)


def sent(ask: str, collectives: Sequence[Collective]) -> str | None:
    """The answer to a measure about what is sent, from a partitioner's collectives.

    None for a measure that they do not answer.
    """
    name, *arguments = ask.split()
    if name == "sent":
        return f"{sum(each.wire_bytes * (each.count or 1) for each in collectives)} B"
    if name == "count":
        return str(sum(each.op == _OPS[arguments[0]] for each in collectives))
    return None


def _devices(_mesh: Mesh, held: Sequence[Held], _arguments: list[str]) -> str:
    return str(len(held[0].devices))


def _device(mesh: Mesh, held: Sequence[Held], arguments: list[str]) -> str:
    wanted = {
        name.strip(): int(place)
        for name, _, place in (part.partition("=") for part in " ".join(arguments).split(","))
    }
    for position, (device, _) in enumerate(held[0].devices):
        coords = dict(zip(mesh.axis_names, mesh.coords(position), strict=True))
        if wanted.items() <= coords.items():
            return str(device)
    raise AssertionError(f"no device at {wanted}")


def _coordinates(mesh: Mesh, held: Sequence[Held], arguments: list[str]) -> str:
    position = [device for device, _ in held[0].devices].index(int(arguments[0]))
    coords = zip(mesh.axis_names, mesh.coords(position), strict=True)
    return ", ".join(f"{name}={place}" for name, place in coords)


def _shard_shape(_mesh: Mesh, held: Sequence[Held], _arguments: list[str]) -> str:
    return "x".join(map(str, held[0].shard_shape))


def _slices(_mesh: Mesh, held: Sequence[Held], arguments: list[str]) -> str:
    return ", ".join(f"{start}:{stop}" for start, stop in dict(held[0].devices)[int(arguments[1])])


def _holders(_mesh: Mesh, held: Sequence[Held], arguments: list[str]) -> str:
    mine = dict(held[0].devices)[int(arguments[1])]
    return ", ".join(str(device) for device, bounds in sorted(held[0].devices) if bounds == mine)


def _replicas(_mesh: Mesh, held: Sequence[Held], _arguments: list[str]) -> str:
    devices = held[0].devices
    return str(len(devices) // len({bounds for _, bounds in devices}))


def _bytes(_mesh: Mesh, held: Sequence[Held], _arguments: list[str]) -> str:
    stops = ([stop for _, stop in bounds] for _, bounds in held[0].devices)
    whole = map(max, zip(*stops, strict=True))
    return f"{_octets(prod(whole) * held[0].bits)} B"


def _shard_bytes(_mesh: Mesh, held: Sequence[Held], _arguments: list[str]) -> str:
    return f"{sum(_octets(prod(each.shard_shape) * each.bits) for each in held)} B"


def _octets(bits: int) -> int:
    return -(-bits // 8)


_ANSWERS: dict[str, Callable[[Mesh, Sequence[Held], list[str]], str]] = {
    "devices": _devices,
    "device": _device,
    "coordinates": _coordinates,
    "shard_shape": _shard_shape,
    "slices": _slices,
    "holders": _holders,
    "replicas": _replicas,
    "bytes": _bytes,
    "shard_bytes": _shard_bytes,
}
_OPS = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
"""Operations of plans as programs call them."""
OF_ONE_ARRAY = ("shard_shape", "slices", "holders", "replicas", "bytes", "shard_bytes")
"""Those whose first argument is an array's name; `shard_bytes` without one is of all operands."""
MEASURES = frozenset(_ANSWERS)
"""The measures that JAX's layouts answer."""
