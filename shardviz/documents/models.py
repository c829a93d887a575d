"""Whole models as JSON: parameters with their shardings, the memory of a device, and the plan of a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    Beside,
    Document,
    DocumentKind,
    array_of,
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
from shardviz.documents.plans import MESH, PHASES, SPEC
from shardviz.documents.programs import DIFFERENCE, TARGET, target_answer

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.models.answer import ModelAnswer, ModelChange
    from shardviz.models.question import ModelQuestion
    from shardviz.models.splitting import FoldedParameter
    from shardviz.models.step import PlannedPart
    from shardviz.reports.target_result import TargetResult

_PARAMETER = closed(
    "Parameters that are alike in all layers.",
    name=text("The name, with the numbers of the layers as ranges: model.layers.0–31.mlp.up_proj.weight."),
    count=count("How many there are."),
    shape=counts("Elements along each dimension of one of them.").of("first.parameter.shape"),
    dtype=text("The element type.").of("first.parameter.dtype"),
    dims=texts("The logical axis of each dimension; empty where the source does not say them.").of(
        "first.parameter.dims"
    ),
    spec=SPEC("The sharding of each.").of("first.spec"),
    shard_shape=counts("Elements along each dimension of one device's shard.").of("first.shard_shape"),
    bytes_per_device=count("Bytes of one device's shard of one of them.").of("first.bytes_per_device"),
    replicas=count("Devices that hold the same shard.").of("first.replicas"),
    is_matched=flag("A rule says how it is split; else every device has all of it.").of("first.is_matched"),
    uneven=array_of(
        closed(
            "A dimension that its mesh axes do not divide.",
            dim=count("The dimension, from 0.").of("place"),
            elements=count("Its elements.").of("size"),
            parts=count("Devices that split it."),
            padded_elements=count("Its elements with the padding.").of("padded"),
        ),
        "The dimensions that are padded; JAX refuses such an array.",
    ).of("first.uneven"),
)

_MEMORY = closed(
    "The memory of one device.",
    parameters_bytes=count("All parameters.").of("parameters"),
    gradients_bytes=count("The gradients of all parameters; 0 without a backward pass.").of("gradients"),
    optimizer_bytes=count("The state of the optimizer.").of("optimizer"),
    activations_bytes=nullable(
        count("What the layers keep for the backward pass; null: no such step is planned.")
    ).of("activations"),
    working_bytes=nullable(
        count("The most that a step holds beside parameters and optimizer; null: no step is planned.")
    ).of("working"),
    keys_and_values_bytes=nullable(
        count("Keys and values of all tokens and layers; null: the heads are not known.")
    ).of("keys_and_values"),
    training_bytes=count("All that a train step holds at once.").of("training"),
    serving_bytes=count("Parameters, keys and values.").of("serving"),
    limit_bytes=nullable(count("Bytes that a program may use on the chip; null: not known.")).of("limit"),
    training_over_bytes=count("Bytes by which a train step does not fit; 0: it fits.").of(
        lambda memory: memory.over(memory.training)
    ),
    serving_over_bytes=count("Bytes by which parameters, keys and values do not fit; 0: they fit.").of(
        lambda memory: memory.over(memory.serving)
    ),
)

_PART = closed(
    "A part of a step.",
    name=one_of("The part.", "embedding", "layer", "logits", "logits and loss").of("part.name"),
    runs=count("How often it runs.").of("cost.layers"),
    program=text("The program of its forward pass, as it is planned.").of("part.problem.text"),
    specs=by_name(SPEC("A sharding."), "The sharding of every argument of the program.").of(
        lambda part: {each.name: each.decided_spec for each in part.part.problem.arguments}
    ),
    collectives=array_of(
        closed(
            "A collective of one run.",
            phase=one_of("The part of a train step.", *PHASES),
            op=text("JAX's name of the operation.").of("step.op"),
            array=text("The array that it moves; a gradient's name begins with d.").of("step.array"),
            axes=texts("Mesh axes of its groups.").of("step.axes"),
            bytes=count("Bytes of the larger of a device's operand and result.").of("step.bytes"),
            wire_bytes=count("Bytes that one device must send at least."),
            seconds=nullable(number("Its time; null: not known.")),
        ),
        "The collectives of one run, in order.",
    ).of(lambda part: _collectives(part)),
    seconds=number("Seconds of one run, all steps one after the other.").of("cost.serial_seconds"),
    communication_seconds=number("Seconds of its collectives.").of("cost.communication_seconds"),
)

_STEP = closed(
    "A step, planned of one layer, the embedding and the logits; null: nothing says how parameters are used.",
    parts=array_of(_PART, "The parts, in order."),
    seconds=number("Seconds of all runs of all parts, one after the other."),
    communication_seconds=number("Seconds of all collectives."),
    seconds_by_phase=by_name(number("Seconds."), "Seconds by the part of a train step."),
    collectives=count("Collectives that run.").of("count"),
    wire_bytes=count("Bytes that a device sends at least."),
    flops=count("Operations of a device."),
)

_CHANGE = closed(
    "What moves by the splits that are changed with --change; null: none is.",
    parameters=array_of(
        closed(
            "Parameters that are split otherwise.",
            name=text("The name.").of(lambda pair: pair[1].name),
            count=count("How many there are.").of(lambda pair: pair[1].count),
            before=SPEC("The sharding by the rules.").of(lambda pair: pair[0].first.spec),
            after=SPEC("The sharding by the change.").of(lambda pair: pair[1].first.spec),
        ),
        "The parameters that are split otherwise.",
    ),
    collectives=array_of(
        closed(
            "Collectives over the same axes in a phase of a part of a step, of all its runs.",
            part=text("The part."),
            phase=one_of("The part of a train step.", *PHASES),
            op=text("JAX's name of the operation."),
            axes=texts("Mesh axes of their groups."),
            counts=counts("How many there are, before and after."),
            bytes=counts("Their bytes, before and after."),
        ),
        "The collectives that are added, gone, or of other bytes.",
    ),
    seconds_before=nullable(number("Seconds of a step before; null: none is planned.")).of(
        lambda change: change.before.step and change.before.step.seconds
    ),
    seconds_after=nullable(number("Seconds of a step after; null: none is planned.")).of(
        lambda change: change.after.step and change.after.step.seconds
    ),
    training_bytes_before=count("Bytes of a device in a train step before.").of("before.memory.training"),
    training_bytes_after=count("Bytes of a device in a train step after.").of("after.memory.training"),
)

MODEL = DocumentKind(
    "model",
    "model",
    "Every parameter of a model, split by rules, and what a step of it costs.",
    name=text("The model's name.").of("model.name"),
    source=text("Where its parameters are said.").of("model.source"),
    parameter_count=count("Elements of all parameters.").of("model.elements"),
    bytes=count("Bytes of one whole copy.").of("model.nbytes"),
    mesh=MESH("The mesh."),
    machine=text("The machine that prices the step.").of("placed.machine.name"),
    machine_assumed=flag("Nobody named the machine: each mesh axis is taken for a ring of its own.").of(
        "placed.machine.assumed"
    ),
    rules=text("The names or the file of the rules.").of("split.rules.name"),
    batch=count("Sequences of a step.").of("tokens.batch"),
    sequence=count("Tokens of a sequence.").of("tokens.sequence"),
    inputs_spec=SPEC("The sharding of the tokens [batch, sequence].").of("tokens.spec"),
    remat=nullable(one_of("What the backward pass computes again; null: none.", "none", "dots", "layer")).of(
        lambda question: question.training and question.training.remat
    ),
    optimizer=null_if_empty(text("The optimizer; null: there is none.")).of(
        lambda question: str(question.training.optimizer or "") if question.training else ""
    ),
    parameters=array_of(_PARAMETER, "All parameters, those that are alike as one.").of(
        lambda question: _folded(question)
    ),
    unused_rules=array_of(
        closed(
            "A rule that no parameter matches.",
            rule=text("Its pattern or logical axis.").of("subject"),
            place=null_if_empty(text("Where it stands; null: not in a file.")),
        ),
        "The rules that match nothing.",
    ).of("split.unused"),
    device_memory=_MEMORY,
    step=nullable(_STEP),
    change=nullable(_CHANGE),
    targets=array_of(TARGET("A target's answer."), "What compilers make of one layer."),
    differences=array_of(DIFFERENCE, "The differences between these and the plan of a layer."),
)


def _collectives(part: PlannedPart) -> Iterator[Beside]:
    return (Beside(priced, phase=phase) for phase, priced in part.collectives())


def _folded(question: ModelQuestion) -> tuple[FoldedParameter, ...]:
    from shardviz.models.splitting import folded

    return folded(question.split.parameters)


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
