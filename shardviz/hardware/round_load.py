"""What one round of a schedule loads, and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RoundLoad:
    """Round `number` of a group, in the phase named `phase`.

    `messages` counts pairs of devices, `bytes` what the whole group sends, `device_bytes` the most that one
    device sends, `hops` the links that all messages cross (a switch is one hop). `busiest_link` leads from a
    device to a device (or to or from the switch, whose number is that of devices) and carries
    `busiest_bytes`; None where nothing is sent.

    `seconds` last until the last message is there; `waiting` messages had to wait for a link. Where the
    queues would take too long to follow, `exact` is False, `seconds` a lower bound, and `waiting` None.
    """

    number: int
    phase: str
    messages: int
    bytes: int
    device_bytes: int
    busiest_link: tuple[int, int] | None
    busiest_bytes: int
    hops: int
    seconds: float
    waiting: int | None

    @property
    def exact(self) -> bool:
        return self.waiting is not None
