"""Profiles as JSON: devices, steps, collectives as they ran, stragglers, and a step as a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    STRING,
    Beside,
    Document,
    DocumentKind,
    JsonField,
    array_of,
    bandwidth,
    closed,
    count,
    flag,
    null_if_empty,
    nullable,
    number,
    text,
    texts,
)
from shardviz.documents.plans import MESH
from shardviz.documents.timelines import TIMELINE

if TYPE_CHECKING:
    from shardviz.profiles.profile import DeviceActivity, Profile

_ACTIVITY: dict[str, JsonField] = {
    "device": text("The device's name, with its host where there are several."),
    "start_seconds": number("Seconds on the profile's clock at which it begins.").of("start"),
    "seconds": number("Seconds from the first operation to the end of the last."),
    "busy_seconds": number("Seconds in which an operation or a transfer runs.").of("busy"),
    "idle_seconds": number("Seconds in which nothing runs.").of("idle"),
    "compute_seconds": number("Seconds of compute.").of("compute"),
    "communication_seconds": number("Seconds in which data move between devices.").of("communication"),
    "exposed_seconds": number("Seconds of communication beside which nothing is computed.").of("exposed"),
    "copy_seconds": number("Seconds of copies within the device's memory, and to and from the host.").of(
        "copies"
    ),
    "exposed_copy_seconds": number("Those beside which nothing is computed or communicated.").of(
        "exposed_copies"
    ),
}
_DEVICES = array_of(closed("A device.", **_ACTIVITY), "What each device did.")
PROFILE = DocumentKind(
    "profile",
    "profile",
    "What ran on real devices, from their profile.",
    program=text("The program that ran longest."),
    hosts=array_of(STRING, "The machines on which it was taken."),
    mesh=nullable(MESH("The mesh whose axes are named; null: not known.")),
    devices=_DEVICES.of(lambda profile: _activities(profile.devices)),
    steps_are_marked=flag("The program marked its steps; else each run of it counts as one."),
    steps=array_of(
        closed(
            "A step.",
            number=count("Its number."),
            seconds=number("Seconds from the first device's beginning to the last one's end."),
            devices=_DEVICES.of(lambda step: _activities(step.devices)),
        ),
        "The steps in order.",
    ),
    collectives=array_of(
        closed(
            "A collective's instruction, over all its runs.",
            name=text("The instruction's name."),
            op=text("HLO's opcode."),
            module=text("The program's name."),
            axes=texts("The mesh axes along which it goes; empty where they are not known."),
            source=null_if_empty(text("The line of the user's program; null: not known.")),
            bytes=nullable(count("The larger of a device's operand and result; null: not known.")),
            runs=count("Its runs, of all groups of devices."),
            groups=count("The groups of devices that run it at a time."),
            seconds=number("The median, from the last device's arrival to the last one's end."),
            least_seconds=number("The shortest.").of("least"),
            most_seconds=number("The longest.").of("most"),
            algbw_bytes_per_s=nullable(bandwidth("Its bytes over its time; null: not known.")).of("algbw"),
            busbw_bytes_per_s=nullable(
                bandwidth("The bytes that a device must send over its time; null: not known.")
            ).of("busbw"),
            predicted_seconds=nullable(
                number("Seconds that the machine which was named should take; null: not known.")
            ).of("predicted"),
            waited_seconds=nullable(
                number(
                    "Mean seconds for which a device waits for the last to arrive; null: devices of its "
                    "groups are not in the profile."
                )
            ).of("waited"),
            exposed_seconds=number("Mean seconds in which a device computes nothing meanwhile.").of(
                "exposed"
            ),
            last_device=null_if_empty(text("The device that was the last one most often; null: none.")).of(
                "last"
            ),
            last_share=number("Its share of the runs."),
        ),
        "The collectives, those first that leave most time exposed.",
    ).of(lambda profile: _collectives(profile)),
    stragglers=array_of(
        closed(
            "A device for which others waited at a collective.",
            device=text("The device."),
            collective=text("The collective's name."),
            times=count("Runs in which it was the last."),
            runs=count("All runs of its group and the others."),
            seconds=number("Seconds for which others waited, all of them together."),
        ),
        "Who was waited for, the worst first.",
    ),
    drawn_step=count("The step of the timeline."),
    timeline=TIMELINE("A step of one device as it was measured."),
    predicted=nullable(TIMELINE("What is predicted of the program; null: no machine was named.")),
    notes=texts("Warnings, a sentence each."),
)


def _activities(devices: tuple[DeviceActivity, ...]) -> list[Beside]:
    return [Beside(each.activity, device=each.device) for each in devices]


def _collectives(profile: Profile) -> list[Beside]:
    found = []
    for each in profile.collectives:
        record = each.collective
        source, size = ("", None) if record is None else (record.source, record.bytes)
        found.append(Beside(each, source=source, bytes=size))
    return found


def profile_document(profile: Profile) -> Document:
    """All of a profile; times are seconds, sizes bytes."""
    return PROFILE.document(profile)
