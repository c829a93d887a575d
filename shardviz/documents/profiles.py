"""Profiles as JSON: devices, steps, collectives as they ran, stragglers, and a step as a timeline."""

from __future__ import annotations

from shardviz.documents.fields import BANDWIDTH, DocumentKind, of, records
from shardviz.documents.meshes import MESH
from shardviz.documents.timelines import TIMELINE

_DEVICES = records(
    "What each device did.",
    "A device.",
    device=of(str, "The device's name, with its host where there are several."),
    start_seconds=of(float, "Seconds on the profile's clock at which it begins.", "activity.start"),
    seconds=of(float, "Seconds from the first operation to the end of the last.", "activity.seconds"),
    busy_seconds=of(float, "Seconds in which an operation or a transfer runs.", "activity.busy"),
    idle_seconds=of(float, "Seconds in which nothing runs.", "activity.idle"),
    compute_seconds=of(float, "Seconds of compute.", "activity.compute"),
    communication_seconds=of(float, "Seconds in which data move between devices.", "activity.communication"),
    exposed_seconds=of(
        float, "Seconds of communication beside which nothing is computed.", "activity.exposed"
    ),
    copy_seconds=of(
        float, "Seconds of copies within the device's memory, and to and from the host.", "activity.copies"
    ),
    exposed_copy_seconds=of(
        float, "Those beside which nothing is computed or communicated.", "activity.exposed_copies"
    ),
)
PROFILE = DocumentKind(
    "profile",
    "profile",
    "What ran on real devices, from their profile.",
    program=of(str, "The program that ran longest."),
    hosts=of([str], "The machines on which it was taken."),
    mesh=of(MESH, "The mesh whose axes are named; null: not known."),
    devices=_DEVICES,
    steps_are_marked=of(bool, "The program marked its steps; else each run of it counts as one."),
    steps=records(
        "The steps in order.",
        "A step.",
        number=of(int, "Its number."),
        seconds=of(float, "Seconds from the first device's beginning to the last one's end."),
        devices=_DEVICES,
    ),
    collectives=records(
        "The collectives, those first that leave most time exposed.",
        "A collective's instruction, over all its runs.",
        name=of(str, "The instruction's name."),
        op=of(str, "HLO's opcode."),
        module=of(str, "The program's name."),
        axes=of([str], "The mesh axes along which it goes; empty where they are not known."),
        source=of(str, "The line of the user's program; null: not known.", "collective.source"),
        bytes=of(int, "The larger of a device's operand and result; null: not known.", "collective.bytes"),
        runs=of(int, "Its runs, of all groups of devices."),
        groups=of(int, "The groups of devices that run it at a time."),
        seconds=of(float, "The median, from the last device's arrival to the last one's end."),
        least_seconds=of(float, "The shortest.", "least"),
        most_seconds=of(float, "The longest.", "most"),
        algbw_bytes_per_s=of(BANDWIDTH, "Its bytes over its time; null: not known.", "algbw"),
        busbw_bytes_per_s=of(
            BANDWIDTH, "The bytes that a device must send over its time; null: not known.", "busbw"
        ),
        predicted_seconds=of(
            float, "Seconds that the machine which was named should take; null: not known.", "predicted"
        ),
        waited_seconds=of(
            float,
            "Mean seconds for which a device waits for the last to arrive; null: devices of its "
            "groups are not in the profile.",
            "waited",
        ),
        exposed_seconds=of(float, "Mean seconds in which a device computes nothing meanwhile.", "exposed"),
        last_device=of(str, "The device that was the last one most often; null: none.", "last"),
        last_share=of(float, "Its share of the runs."),
    ),
    stragglers=records(
        "Who was waited for, the worst first.",
        "A device for which others waited at a collective.",
        device=of(str, "The device."),
        collective=of(str, "The collective's name."),
        times=of(int, "Runs in which it was the last."),
        runs=of(int, "All runs of its group and the others."),
        seconds=of(float, "Seconds for which others waited, all of them together."),
    ),
    drawn_step=of(int, "The step of the timeline."),
    timeline=of(TIMELINE, "A step of one device as it was measured."),
    predicted=of(TIMELINE, "What is predicted of the program; null: no machine was named."),
    notes=of([str], "Warnings, a sentence each."),
)
