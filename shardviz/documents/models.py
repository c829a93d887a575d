"""Whole models as JSON: parameters with their shardings, the memory of a device, and the plan of a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, Document, DocumentKind, late, of, one_of, record, records
from shardviz.documents.meshes import MESH, SPEC
from shardviz.documents.plans import PHASE
from shardviz.documents.programs import DIFFERENCE, TARGET, target_answer

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.models.answer import ModelAnswer, ModelChange
    from shardviz.reports.target_result import TargetResult

_folded = late("shardviz.models.splitting", "folded")
_PARAMETER = record(
    "Parameters that are alike in all layers.",
    name=of(str, "The name, with the numbers of the layers as ranges: model.layers.0–31.mlp.up_proj.weight."),
    count=of(int, "How many there are."),
    shape=of([int], "Elements along each dimension of one of them.", "first.parameter.shape"),
    dtype=of(str, "The element type.", "first.parameter.dtype"),
    dims=of(
        [str],
        "The logical axis of each dimension; empty where the source does not say them.",
        "first.parameter.dims",
    ),
    spec=of(SPEC, "The sharding of each.", "first.spec"),
    shard_shape=of([int], "Elements along each dimension of one device's shard.", "first.shard_shape"),
    bytes_per_device=of(int, "Bytes of one device's shard of one of them.", "first.bytes_per_device"),
    replicas=of(int, "Devices that hold the same shard.", "first.replicas"),
    is_matched=of(bool, "A rule says how it is split; else every device has all of it.", "first.is_matched"),
    uneven=records(
        "The dimensions that are padded; JAX refuses such an array.",
        "A dimension that its mesh axes do not divide.",
        "first.uneven",
        dim=of(int, "The dimension, from 0.", "place"),
        elements=of(int, "Its elements.", "size"),
        parts=of(int, "Devices that split it."),
        padded_elements=of(int, "Its elements with the padding.", "padded"),
    ),
)
_MEMORY = record(
    "The memory of one device.",
    parameters_bytes=of(int, "All parameters.", "parameters"),
    gradients_bytes=of(int, "The gradients of all parameters; 0 without a backward pass.", "gradients"),
    optimizer_bytes=of(int, "The state of the optimizer.", "optimizer"),
    activations_bytes=of(
        int, "What the layers keep for the backward pass; null: no such step is planned.", "activations"
    ),
    working_bytes=of(
        int,
        "The most that a step holds beside parameters and optimizer; null: no step is planned.",
        "working",
    ),
    keys_and_values_bytes=of(
        int, "Keys and values of all tokens and layers; null: the heads are not known.", "keys_and_values"
    ),
    training_bytes=of(int, "All that a train step holds at once.", "training"),
    serving_bytes=of(int, "Parameters, keys and values.", "serving"),
    limit_bytes=of(int, "Bytes that a program may use on the chip; null: not known.", "limit"),
    training_over_bytes=of(
        int,
        "Bytes by which a train step does not fit; 0: it fits.",
        lambda memory: memory.over(memory.training),
    ),
    serving_over_bytes=of(
        int,
        "Bytes by which parameters, keys and values do not fit; 0: they fit.",
        lambda memory: memory.over(memory.serving),
    ),
)
_PART = record(
    "A part of a step.",
    name=of(one_of("embedding", "layer", "logits", "logits and loss"), "The part.", "part.name"),
    runs=of(int, "How often it runs.", "cost.layers"),
    program=of(str, "The program of its forward pass, as it is planned.", "part.problem.text"),
    specs=of(
        {str: of(SPEC, "A sharding.")},
        "The sharding of every argument of the program.",
        lambda part: {each.name: each.decided_spec for each in part.part.problem.arguments},
    ),
    collectives=records(
        "The collectives of one run, in order.",
        "A collective of one run.",
        lambda part: (Beside(priced.step, priced, phase=phase) for phase, priced in part.collectives()),
        phase=of(PHASE, "The part of a train step."),
        op=of(str, "JAX's name of the operation."),
        array=of(str, "The array that it moves; a gradient's name begins with d."),
        axes=of([str], "Mesh axes of its groups."),
        bytes=of(int, "Bytes of the larger of a device's operand and result."),
        wire_bytes=of(int, "Bytes that one device must send at least."),
        seconds=of(float, "Its time; null: not known."),
    ),
    seconds=of(float, "Seconds of one run, all steps one after the other.", "cost.serial_seconds"),
    communication_seconds=of(float, "Seconds of its collectives.", "cost.communication_seconds"),
)
_STEP = record(
    "A step, planned of one layer, the embedding and the logits; null: nothing says how parameters are used.",
    parts=of([_PART], "The parts, in order."),
    seconds=of(float, "Seconds of all runs of all parts, one after the other."),
    communication_seconds=of(float, "Seconds of all collectives."),
    seconds_by_phase=of({str: of(float, "Seconds.")}, "Seconds by the part of a train step."),
    collectives=of(int, "Collectives that run.", "count"),
    wire_bytes=of(int, "Bytes that a device sends at least."),
    flops=of(int, "Operations of a device."),
)
_CHANGE = record(
    "What moves by the splits that are changed with --change; null: none is.",
    parameters=records(
        "The parameters that are split otherwise.",
        "Parameters that are split otherwise.",
        name=of(str, "The name.", lambda pair: pair[1].name),
        count=of(int, "How many there are.", lambda pair: pair[1].count),
        before=of(SPEC, "The sharding by the rules.", lambda pair: pair[0].first.spec),
        after=of(SPEC, "The sharding by the change.", lambda pair: pair[1].first.spec),
    ),
    collectives=records(
        "The collectives that are added, gone, or of other bytes.",
        "Collectives over the same axes in a phase of a part of a step, of all its runs.",
        part=of(str, "The part."),
        phase=of(PHASE, "The part of a train step."),
        op=of(str, "JAX's name of the operation."),
        axes=of([str], "Mesh axes of their groups."),
        counts=of([int], "How many there are, before and after."),
        bytes=of([int], "Their bytes, before and after."),
    ),
    seconds_before=of(float, "Seconds of a step before; null: none is planned.", "before.step.seconds"),
    seconds_after=of(float, "Seconds of a step after; null: none is planned.", "after.step.seconds"),
    training_bytes_before=of(int, "Bytes of a device in a train step before.", "before.memory.training"),
    training_bytes_after=of(int, "Bytes of a device in a train step after.", "after.memory.training"),
)
MODEL = DocumentKind(
    "model",
    "model",
    "Every parameter of a model, split by rules, and what a step of it costs.",
    name=of(str, "The model's name.", "model.name"),
    source=of(str, "Where its parameters are said.", "model.source"),
    parameter_count=of(int, "Elements of all parameters.", "model.elements"),
    bytes=of(int, "Bytes of one whole copy.", "model.nbytes"),
    mesh=of(MESH, "The mesh."),
    machine=of(str, "The machine that prices the step.", "placed.machine.name"),
    machine_assumed=of(
        bool,
        "Nobody named the machine: each mesh axis is taken for a ring of its own.",
        "placed.machine.assumed",
    ),
    rules=of(str, "The names or the file of the rules.", "split.rules.name"),
    batch=of(int, "Sequences of a step.", "tokens.batch"),
    sequence=of(int, "Tokens of a sequence.", "tokens.sequence"),
    inputs_spec=of(SPEC, "The sharding of the tokens [batch, sequence].", "tokens.spec"),
    remat=of(
        one_of("none", "dots", "layer"),
        "What the backward pass computes again; null: none.",
        "training.remat",
    ),
    optimizer=of(
        str,
        "The optimizer; null: there is none.",
        lambda question: str(question.training.optimizer or "") if question.training else "",
    ),
    parameters=of(
        [_PARAMETER],
        "All parameters, those that are alike as one.",
        lambda question: _folded(question.split.parameters),
    ),
    unused_rules=records(
        "The rules that match nothing.",
        "A rule that no parameter matches.",
        "split.unused",
        rule=of(str, "Its pattern or logical axis.", "subject"),
        place=of(str, "Where it stands; null: not in a file."),
    ),
    device_memory=_MEMORY,
    step=_STEP,
    change=_CHANGE,
    targets=of([of(TARGET, "A target's answer.")], "What compilers make of one layer."),
    differences=of([DIFFERENCE], "The differences between these and the plan of a layer."),
)


def model_document(
    answer: ModelAnswer,
    answers: Iterable[tuple[TargetResult, tuple[Difference, ...]]] = (),
    moved: ModelChange | None = None,
) -> Document:
    """The model with its memory, its step and what compilers make of a layer."""
    told = [*answers]
    return MODEL.document(
        answer.question,
        device_memory=answer.memory,
        step=answer.step,
        change=moved,
        targets=[target_answer(compiled, answer.question.mesh) for compiled, _ in told],
        differences=[each for _, found in told for each in found],
    )
