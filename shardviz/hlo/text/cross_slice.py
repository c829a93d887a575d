"""Collectives between TPU slices: a `send` and a `recv` to the data-center network that belong together.

The text of a program on several slices is that of one slice. What crosses to the others is a pair with
``_xla_megascale_transfer_type="ALL_REDUCE"`` (or another) and one ``_xla_host_transfer_rendezvous``. Its
``_xla_megascale_target`` says who meets whom: ``"{1,2}x{0:15}"`` is devices 0 to 15 of slice 1, each with
that of the same number of slice 2; ``{{100003,200003},...}`` and ``{{100003->200003},...}`` list them, slice
s having the ids from s * 100000 on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shardviz.errors import NotationError
from shardviz.hlo.replica_groups import Lists, check_listable
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.opcodes import MESSAGES

OPS_BETWEEN = {
    "ALL_REDUCE": "all-reduce",
    "ALL_GATHER": "all-gather",
    "REDUCE_SCATTER": "reduce-scatter",
    "ALL_TO_ALL": "all-to-all",
    "ONE_TO_ONE": "collective-permute",
}
_IDS_OF_A_SLICE = 100_000
_TYPE = re.compile(r'_xla_megascale_transfer_type="([A-Z_]{1,40})"')
RENDEZVOUS = re.compile(r'_xla_host_transfer_rendezvous="([^"\\\n]{1,400})"')
"""The common mark of the send and the recv of one transfer between slices."""
_TARGET = re.compile(r'_xla_megascale_target=("[^"]*+"|\{(?:\{[\d,>\- ]*+\},? ?)*+\})')
_PRODUCT = re.compile(r'"\{([\d, ]++)\}x\{([\d,: ]++)\}"')
_LIST = re.compile(r"\{([\d,>\- ]++)\}")
_NUMBER = re.compile(r"\d{1,15}")
_RANGE = re.compile(r" *(\d{1,9})(?::(\d{1,9}))? *")


class CrossSliceTransfer(NamedTuple):
    """A collective between slices: the send that carries it, and the recv that it is a pair with."""

    op: str
    target: str
    send: Instruction
    recv: Instruction


def cross_slice_transfers(
    collectives: Mapping[Computation, Iterable[Instruction]],
) -> tuple[dict[int, CrossSliceTransfer], set[int]]:
    """The transfers of a text by the position of their send, and the positions of their recvs."""
    transfers: dict[int, CrossSliceTransfer] = {}
    recvs = set()
    for lines in collectives.values():
        waiting: dict[str, Instruction] = {}
        for line in lines:
            kind = line.search(_TYPE) if line.opcode in MESSAGES else None
            if kind is None or kind[1] not in OPS_BETWEEN:
                continue
            # The name of the meeting comes late; until then the two have one token.
            meeting = line.search(RENDEZVOUS)
            key = meeting[1] if meeting else line.operand_text.rstrip(")").rpartition(" ")[2]
            other = waiting.pop(key, None)
            if other is None or other.opcode == line.opcode:
                waiting[key] = line
                continue
            send, recv = (line, other) if line.opcode == "send" else (other, line)
            target = line.search(_TARGET)
            transfers[send.start] = CrossSliceTransfer(
                OPS_BETWEEN[kind[1]], target[1] if target else "", send, recv
            )
            recvs.add(recv.start)
    return transfers, recvs


def slices_named(transfers: Iterable[CrossSliceTransfer]) -> int:
    """The number of slices that the transfers of a text name; 1 where nothing crosses."""
    most = 1
    for target in {transfer.target for transfer in transfers}:
        product = _PRODUCT.fullmatch(target)
        numbers = map(int, _NUMBER.findall(product[1] if product else target))
        most = max(most, *(number if product else number // _IDS_OF_A_SLICE for number in numbers), 1)
    return min(most, _IDS_OF_A_SLICE)


def device_numbers(target: str, devices_per_slice: int) -> Lists:
    """The groups or pairs of a transfer, as device numbers that count slice by slice. Raises `NotationError`
    for a target that cannot be read or names a device that a slice does not have."""
    product = _PRODUCT.fullmatch(target)
    if product is None:
        ids = [tuple(map(int, _NUMBER.findall(group))) for group in _LIST.findall(target)]
        pairs = [tuple(divmod(packed, _IDS_OF_A_SLICE) for packed in group) for group in ids]
    else:
        slices = tuple(map(int, _NUMBER.findall(product[1])))
        pairs = [tuple((number, device) for number in slices) for device in _devices(product[2])]
    if not pairs or any(
        number < 1 or device >= devices_per_slice for group in pairs for number, device in group
    ):
        raise NotationError("the devices of these slices are not readable", target, 0, len(target))
    return tuple(
        tuple((number - 1) * devices_per_slice + device for number, device in group) for group in pairs
    )


def _devices(text: str) -> list[int]:
    """``0:3,8`` is 0, 1, 2, 3, 8."""
    devices: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is not None:
            first, last = int(match[1]), int(match[2] or match[1])
            check_listable(len(devices) + last - first, text)
            devices.extend(range(first, last + 1))
    return devices
