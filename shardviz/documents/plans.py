"""Problems and their plans, rankings, layouts, translations, targets and versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    STRING,
    Beside,
    Document,
    DocumentKind,
    JsonField,
    array_of,
    by_name,
    closed,
    count,
    counts,
    exactly,
    flag,
    null_if_empty,
    nullable,
    number,
    one_of,
    shared,
    text,
    texts,
)
from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.notation import Reading
    from shardviz.planner.plan import Plan
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.planner.pricing.sweep import Sweep
    from shardviz.planner.problem import Problem
    from shardviz.planner.ranking import Candidate
    from shardviz.planner.repeated_work import RepeatedWork
    from shardviz.sharding import Layout, Mesh

SPEC = shared(
    "spec",
    array_of(
        JsonField({"type": "array", "items": STRING.schema}, list),
        "For each dimension the mesh axes that split it, the major one first; empty where it is whole.",
    ).by(lambda spec: [list(axes) for axes in spec.dims]),
)
MESH = shared(
    "mesh",
    closed(
        "A mesh of devices.",
        axis_names=texts("The axes, the major one first."),
        axis_sizes=counts("Devices along each axis."),
        device_order=nullable(counts("Device ids by row-major position; null: the ids count the positions.")),
    ),
)
AXIS_TYPES = one_of("JAX's type of all mesh axes.", "auto", "explicit")


def _array(role: JsonField) -> dict[str, JsonField]:
    """The fields of an array beside which stands its `mesh`."""
    return {
        "name": text("The array's name, such as A, W or Out."),
        "role": role,
        "dims": texts("The name of each dimension; empty where they have none."),
        "shape": counts("Elements along each dimension of the whole array."),
        "dtype": text("The element type, such as bf16."),
        "spec": SPEC("Its sharding.").of("decided_spec"),
        "unreduced": texts("Mesh axes over which its partial sums are not added up yet.").of(
            "decided_spec.unreduced"
        ),
        "devices": counts(
            "The ids of the devices that hold it, where these are not the mesh's in its order: one, or all."
        ).of("decided_spec.devices"),
        "shard_shape": counts("Elements along each dimension of one device's shard.").of(
            lambda array: array.shard_shape(array.mesh)
        ),
        "bytes_per_device": count("Bytes of one device's shard.").of(
            lambda array: array.bytes_per_device(array.mesh)
        ),
        "replicas": count("Devices that hold the same shard.").of(lambda array: array.replicas(array.mesh)),
    }


def _arrays(plan: Plan) -> Iterator[Beside]:
    """Arguments, intermediates of a chain, and the result, each once; `asked_spec` is what was asked."""
    from shardviz.planner.plan import decided_parts

    problem, parts = plan.problem, decided_parts(plan)
    asked = {array.name: array.spec for array in problem.arrays if array.spec is not None}
    listed: set[str] = set()
    for place, (operands, result) in enumerate(parts):
        last = "result" if place == len(parts) - 1 else "intermediate"
        for array, role in [*((each, "operand") for each in operands), (result, last)]:
            if array.name not in listed:
                listed.add(array.name)
                yield Beside(array, role=role, mesh=problem.mesh, asked_spec=asked.get(array.name))


def _notices(problem: Problem) -> list[str]:
    from shardviz.planner.problem.problem import notices

    return list(notices(problem))


def _steps(plan: Plan) -> Iterator[Beside]:
    """The steps, each beside the part of a train step that it belongs to."""
    return (Beside(step, phase=plan.problem.parts[step.part].phase) for step in plan.steps)


_ARRAY = shared(
    "array",
    closed(
        "An array of a problem, and how the plan splits it.",
        **_array(one_of("The role of the array in the problem.", "operand", "intermediate", "result")),
        asked_spec=nullable(
            SPEC("The sharding that is asked for; null: the compiler may choose, and spec is the plan's.")
        ),
    ),
)
_PAIR = {"array": text("The array.").of(lambda pair: pair[0])}
_TRAINING = closed(
    "The choices of a train step, and the names of its gradients; null: a forward pass alone.",
    remat=one_of(
        "The part of the forward pass that is computed again; dots: all but matrix products.",
        *("none", "layer", "dots"),
    ).of("training.remat"),
    optimizer=nullable(text("The optimizer, as after --optimizer; null: none."))
    .of("training.optimizer")
    .by(lambda optimizer: None if optimizer is None else str(optimizer)),
    gradients=array_of(
        closed(
            "An array with its gradient.", **_PAIR, gradient=text("The gradient.").of(lambda pair: pair[1])
        ),
        "The gradients of results, which are given, then those of arguments, which are found.",
    ),
    updates=array_of(
        closed("An array that is updated.", **_PAIR, updated=text("The new one.").of(lambda pair: pair[1])),
        "What the optimizer makes in the place of arguments.",
    ),
)
PHASES = ("forward", "recomputed", "backward", "optimizer")
PROBLEM = shared(
    "problem",
    closed(
        "The problem.",
        einsum=text("The einsum, or a chain of them with semicolons.").of("problem.text"),
        mesh=MESH("The mesh.").of("problem.mesh"),
        axis_types=AXIS_TYPES.of("problem.axis_types"),
        padding=array_of(
            closed(
                "A dimension that its axes do not divide, and that is padded so that they do.",
                dim=text("The dimension."),
                elements=count("Its elements.").of("size"),
                padded_elements=count("Its elements with the padding, as in all arrays here.").of("padded"),
            ),
            "The dimensions that are padded.",
        ).of("problem.padding"),
        notices=texts("What the writer of a program may not have meant, a sentence each.")
        .of("problem")
        .by(_notices),
        arrays=array_of(_ARRAY("An array."), "Arguments, results in between, the result, each once.").of(
            _arrays
        ),
        training=nullable(_TRAINING).of(lambda plan: plan.problem if plan.problem.training else None),
    ),
)


def _repeated_work(plan: Plan) -> RepeatedWork | None:
    from shardviz.planner.repeated_work import repeated_work

    return repeated_work(plan)


PLAN = shared(
    "plan",
    closed(
        "The operations that should happen, by the rules of the textbook.",
        cases=texts("For each einsum of the chain the case of a sharded matmul that it is."),
        steps=array_of(
            closed(
                "An operation that every device performs at the same time.",
                op=one_of(
                    "JAX's name of the operation; einsum, apply, slice and mask are local.",
                    *("einsum", "apply", "slice", "mask", "all_gather", "psum", "pmax", "psum_scatter"),
                    *("all_to_all", "ppermute"),
                ),
                function=null_if_empty(text("The function that is applied; null: an einsum, or a move.")),
                phase=one_of("The part of a train step that it belongs to; forward in others.", *PHASES),
                array=text("The array that it changes or makes."),
                axes=texts("Mesh axes of its groups, the major one first."),
                dim=nullable(
                    count("The dimension that is gathered, scattered or sliced, from 0; null: none is.")
                ),
                from_spec=SPEC("The array's sharding before."),
                from_unreduced=texts("Mesh axes of the pending sum before.").of("from_spec.unreduced"),
                from_devices=counts("The devices that hold it before, where not the mesh's in its order.").of(
                    "from_spec.devices"
                ),
                to_spec=SPEC("The array's sharding after."),
                to_unreduced=texts("Mesh axes of the pending sum after.").of("to_spec.unreduced"),
                shape=counts("Elements of the larger of a device's operand and result."),
                dtype=text("The element type."),
                bytes=count("Bytes of the larger of a device's operand and result."),
                wire_bytes=count("Bytes that one device must send at least."),
                reason=text("The reason for the step, in a sentence with the numbers."),
            ),
            "The steps, in order.",
        ).of(_steps),
        objective=one_of(
            "What to minimise; given: time, with the work divided as the given arrays are, unless that takes "
            "more than twice as long.",
            "given",
            "time",
            "bytes",
        ),
        optimal=flag("No plan of those that were searched is better."),
        at_most=nullable(
            number("How many times the best plan's cost it may have; null: it is optimal, or not known.")
        ),
        teller=one_of("Who found it; shardy: Shardy's answer is cheaper.", "planner", "shardy"),
        repeated_work=nullable(
            closed(
                "Work that devices repeat although the specs divide it.",
                factor=count("Devices that compute the same."),
                axes=texts("The mesh axes along which they lie."),
                parts=counts("The statements, from 0."),
            )
        ).of(_repeated_work),
        result_spec=SPEC("The sharding of the result."),
        result_unreduced=texts("Mesh axes of the result's pending sum.").of("result_spec.unreduced"),
        wire_bytes=count("Bytes that one device must send at least, in all steps together."),
    ),
)


OVERLAPPED = "The longer of compute and communication; in a train step of each pass."
STEP = "The same where only the communication of parameters and their gradients overlaps, as in a search."
_TOTALS = {
    "machine": text("The machine's name.").of("machine.name"),
    "machine_assumed": flag("Nobody named the machine: each mesh axis is taken for a ring of its own.").of(
        "machine.assumed"
    ),
    "steps_of_unknown_time": counts(
        "Steps, from 1, whose time is not known: no total of seconds has them."
    ).of(lambda cost: [place for place, each in enumerate(cost.steps, 1) if each.seconds is None]),
    "assumes": null_if_empty(text("What its times rest on, in a sentence; null: nothing is sent.")),
    "serial_seconds": number("The sum of all steps."),
    "overlapped_seconds": number(OVERLAPPED),
    "step_seconds": number(STEP),
    "compute_seconds": number("Seconds of the local steps."),
    "communication_seconds": number("Seconds of the collectives."),
    "communication_by_axes": array_of(
        closed(
            "Collectives over the same mesh axes.",
            axes=texts("The axes of their groups.").of(lambda pair: pair[0]),
            seconds=number("Their seconds.").of(lambda pair: pair[1]),
        ),
        "The collectives by the mesh axes of their groups.",
    ).of(lambda cost: cost.communication_by_axes.items()),
    "seconds_by_phase": by_name(
        number("Seconds."), "Seconds of all steps by the part of a train step that they belong to."
    ),
    "bound": text("The bound of the longest step of the longer side; unknown where a step's is."),
    "flops": count("Operations: two for each multiply-add of a matmul."),
    "hbm_bytes": count("Bytes read and written."),
    "wire_bytes": count("Bytes that the device must send at least."),
    "flops_per_hbm_byte": nullable(
        number("FLOPs of the local steps over the bytes that they read and write; null: none.")
    ),
    "flops_per_wire_byte": nullable(number("FLOPs over bytes sent; null: nothing is sent.")),
    "peak_flops_per_second": nullable(number("The peak in the arrays' dtype; null: not known.")).of(
        "peak_flops"
    ),
    "serial_utilisation": nullable(number("FLOPs over peak and serial seconds; null: not known.")),
    "overlapped_utilisation": nullable(number("FLOPs over peak and overlapped seconds; null: not known.")),
    "peak_memory_bytes": count("The most bytes that the device holds at once.").of("peak_bytes"),
    "peak_memory_step": count("The step at which it does, from 1.").of(
        lambda cost: cost.steps.index(cost.peak_step) + 1
    ),
    "memory_limit_bytes": nullable(count("Bytes of HBM that a program may use; null: not known.")).of(
        "limit_bytes"
    ),
    "memory_over_bytes": count("Bytes by which the plan, in all layers, does not fit; 0: it fits.").of(
        "over_bytes"
    ),
    "layers": count("How often the steps run, one after the other; the other figures are of one layer."),
    "all_layers": closed(
        "The figures of all layers.",
        serial_seconds=number("The sum of all steps.").of("layers_seconds"),
        overlapped_seconds=number(OVERLAPPED).of(lambda cost: cost.overlapped_seconds * cost.layers),
        step_seconds=number(STEP).of(lambda cost: cost.step_seconds * cost.layers),
        flops=count("Operations.").of(lambda cost: cost.flops * cost.layers),
        wire_bytes=count("Bytes that the device must send at least.").of(
            lambda cost: cost.wire_bytes * cost.layers
        ),
        peak_memory_bytes=count(
            "The most bytes that the device holds at once, with the arguments of all layers."
        ).of("layers_peak_bytes"),
        own_arguments=texts(
            "Arguments of which each layer has its own, such as weights and caches; others pass through."
        ).of("plan.problem.own_arguments"),
    ).of(lambda cost: cost),
    "padding": closed(
        "The part of the cost that is padding, of each step as much as of its elements.",
        flops=count("Operations."),
        wire_bytes=count("Bytes sent at least."),
        seconds=number("Seconds of all steps."),
    ).of("padding_cost"),
    "training_memory": nullable(
        closed(
            "The memory of a train step of all layers, in bytes of a device; null: a forward pass alone.",
            parameters_bytes=count("Parameters.").of("parameters"),
            gradients_bytes=count(
                "Gradients of the parameters: of the last layer as they are made, of others as they stay."
            ).of("gradients"),
            optimizer_bytes=count("The state of the optimizer.").of("optimizer"),
            activations_bytes=count("What the backward pass takes from the forward pass.").of("activations"),
            peak_bytes=count("The most that is held at once.").of("peak"),
        )
    ),
}
"""The totals of a plan's cost."""
COST = shared(
    "cost",
    closed(
        "The cost of a plan on a machine, for one device.",
        **_TOTALS,
        thresholds=array_of(
            closed(
                "The sizes of a dimension at which the steps of the plan are compute bound.",
                dim=text("The dimension."),
                current=count("Its elements now.").of("size"),
                multiple=count("The parts into which the plan cuts it: sizes are multiples."),
                least=nullable(count("The least such size; null: there is none.")),
                largest=nullable(count("The largest such size; null: there is no end.")),
                limit=text("The bound beyond: HBM, or the longest collective's; empty: there is none."),
            ),
            "A threshold for each dimension.",
        ),
        steps=array_of(
            closed(
                "A step of the plan.",
                op=text("The operation.").of("step.op"),
                array=text("The array that it changes or makes.").of("step.array"),
                axes=texts("Mesh axes of its groups.").of("step.axes"),
                seconds=nullable(number("Its time: the longest of the three; null: not known.")),
                compute_seconds=nullable(number("FLOPs over the peak; null: not known, or a collective.")),
                hbm_seconds=nullable(
                    number("Seconds of the HBM's bytes over its bandwidth; null: not known.")
                ),
                wire_seconds=nullable(number("Seconds on the links; null: a local step.")),
                textbook_seconds=nullable(
                    number("Seconds on the links as the book counts them, without (N-1)/N; null: local.")
                ),
                bound=text(
                    '"compute", "HBM", "latency", mesh axes and their links ("Y on x"), or "unknown".'
                ),
                convention=text("The way in which it is counted."),
                flops=count("Operations."),
                hbm_bytes=count("Bytes read and written."),
                wire_bytes=count("Bytes sent at least."),
                memory_bytes=count("Bytes of all arrays that the device holds.").of("live_bytes"),
                resident=array_of(
                    closed(
                        "A shard that the device holds while the step runs.",
                        array=text("The array's name.").of("name"),
                        spec=SPEC("Its sharding."),
                        unreduced=texts("Mesh axes of its pending sum.").of("spec.unreduced"),
                        bytes=count("Its bytes."),
                        argument=flag("The program is given it so; it stays to the end.").of("is_argument"),
                    ),
                    "All shards that the device holds.",
                ),
            ),
            "The steps, in order.",
        ),
    ),
)

TOTALS = shared(
    "totals",
    closed(
        "The totals of a plan's cost on a machine, for one device.",
        **_TOTALS,
    ),
)

RANKING = DocumentKind(
    "ranking",
    "explain --specs",
    "Every sharding of an einsum worth considering.",
    einsum=text("The einsum, or a chain of them with semicolons; empty where there is no candidate."),
    mesh=nullable(MESH("The mesh; null where there is no candidate.")),
    candidates=array_of(
        closed(
            "One way to split the arrays.",
            arrays=array_of(_ARRAY("An array."), "Operands, intermediates, the result.").of(
                lambda candidate: _arrays(candidate.plan)
            ),
            plan=PLAN("The plan for it."),
            cost=TOTALS("The seconds and the memory of the plan."),
            wire_bytes=count("Bytes that one device must send at least.").of("plan.wire_bytes"),
            memory_bytes_per_device=count("Bytes of all operands and results on one device.").of(
                "memory_per_device"
            ),
            multiply_adds_per_device=count("Multiply-adds that one device computes.").of("work_per_device"),
            best=flag("No other candidate is faster without holding more."),
        ),
        "All candidates: those that fit, the fastest first; then the others.",
    ),
)


def ranking_document(candidates: Sequence[Candidate]) -> Document:
    """Every candidate of a ranking, in order."""
    first = candidates[0].plan.problem if candidates else None
    einsum, mesh = (first.text, first.mesh) if first else ("", None)
    return RANKING.document(einsum=einsum, mesh=mesh, candidates=candidates)


_COMPARED = closed(
    "One of the two.",
    problem=PROBLEM("The problem.").of("plan"),
    plan=PLAN("Its plan."),
    cost=TOTALS("The seconds and the memory of the plan.").of(lambda cost: cost),
)
VERSUS = DocumentKind(
    "versus",
    "explain --versus",
    "Two shardings of the same arrays.",
    first=_COMPARED,
    second=_COMPARED,
)


def versus_document(first: PlanCost, second: PlanCost) -> Document:
    """Both plans with their costs."""
    return VERSUS.document(first=first, second=second)


SWEEP = DocumentKind(
    "sweep",
    "explain --vary",
    "Compute and communication of an einsum over a range of sizes.",
    problem=PROBLEM("The problem at its own size.").of(lambda sweep: sweep.plan),
    name=text("The dimension or mesh axis whose size varies."),
    is_axis=flag("It is a mesh axis."),
    machine=text("The machine's name.").of(lambda sweep: sweep.costs[0].machine.name),
    machine_assumed=flag("Nobody named the machine: each mesh axis is taken for a ring of its own.").of(
        lambda sweep: sweep.costs[0].machine.assumed
    ),
    points=array_of(
        closed(
            "The plan at one size.",
            value=count("The size: elements of the dimension, or devices along the axis.").of(
                lambda point: point[0]
            ),
            cost=TOTALS("The seconds and the memory of the plan.").of(lambda point: point[1]),
        ),
        "The sizes looked at, the smallest first.",
    ).of(lambda sweep: zip(sweep.sizes, sweep.costs, strict=True)),
    crossings=array_of(
        closed(
            "A size at which the longer of compute and communication changes.",
            value=count("The least size from which on the other takes longer.").of("size"),
            longer=one_of("The one that takes longer from there on.", "compute", "communication").of(
                lambda crossing: "compute" if crossing.compute_grows else "communication"
            ),
            exact=flag("It is the least of all sizes; else the least of those looked at.").of("same_plan"),
        ),
        "The crossings, the smallest size first.",
    ),
    plans_change=counts("Sizes at which the plan has other steps than at the size before."),
)


def sweep_document(sweep: Sweep) -> Document:
    """The costs at every size, and the crossings."""
    from shardviz.planner import plan

    return SWEEP.document(sweep, plan=plan(sweep.problem))


LAYOUT = DocumentKind(
    "layout",
    "layout",
    "The slice of an array that every device holds.",
    mesh=MESH("The mesh."),
    array=closed("The array.", **_array(exactly("array", "The array stands alone."))).of(
        lambda layout: Beside(layout.array, mesh=layout.mesh)
    ),
    devices=array_of(
        closed(
            "A device, and the slice that it holds.",
            id=count("The device's id."),
            coords=counts("Its place along each mesh axis."),
            slices=array_of(
                JsonField({**counts("Start and stop.").schema, "minItems": 2, "maxItems": 2}, list),
                "For each dimension the elements that it holds: from start to before stop.",
            ),
            shard=count("The number of its shard: equal numbers are equal data."),
        ),
        "Every device, in the mesh's order.",
    ),
)


def layout_document(layout: Layout) -> Document:
    """`array` and, for every device, its coordinates, its slices and the number of its shard."""
    return LAYOUT.document(layout, devices=layout)


TRANSLATE = DocumentKind(
    "translate",
    "translate",
    "A sharding in every notation.",
    text=text("The text that was read."),
    notation=text("The notation that it was read in."),
    mesh=nullable(MESH("The mesh; null where the text was read without one.")),
    arrays=array_of(
        closed(
            "An array of the text.",
            name=nullable(text("The array's name; null where it has none.")),
            translations=by_name(STRING, "Its text in each notation, by the notation's name.").of(
                lambda array: {key: said for key, said in array.written if isinstance(said, str)}
            ),
            untranslatable=by_name(STRING, "The reason why it has no text in a notation, by name.").of(
                lambda array: {key: said.message for key, said in array.written if not isinstance(said, str)}
            ),
        ),
        "The arrays, in the order of the text.",
    ),
)


def translate_document(
    text: str,
    notation: str,
    readings: Sequence[Reading],
    written: Sequence[Mapping[str, str | ShardvizError]],
    mesh: Mesh | None,
) -> Document:
    """The text as it was read, and by notation each array's text, or why there is none."""
    arrays = [
        Beside(name=each.name, written=one.items()) for each, one in zip(readings, written, strict=True)
    ]
    return TRANSLATE.document(text=text, notation=notation, mesh=mesh, arrays=arrays)


INFO = DocumentKind(
    "info",
    "info",
    "Versions of all that an answer can depend on.",
    versions=by_name(STRING, "Versions of all that an answer can depend on, by name."),
    warning=null_if_empty(text("The reason why these versions do not fit together; null where they do.")),
)
