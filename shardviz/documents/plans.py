"""Problems and their plans with what they cost; rankings, and costs over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, Document, DocumentKind, late, of, one_of, record, records
from shardviz.documents.meshes import MESH, SPEC, array_fields

if TYPE_CHECKING:
    from shardviz.planner.plan import Plan
    from shardviz.planner.ranking import Candidate

AXIS_TYPES = of(one_of("auto", "explicit"), "JAX's type of all mesh axes.")


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


_notices = late("shardviz.planner.problem", "notices")
_ARRAY = record(
    "An array of a problem, and how the plan splits it.",
    **array_fields(of(one_of("operand", "intermediate", "result"), "The role of the array in the problem.")),
    asked_spec=of(
        SPEC, "The sharding that is asked for; null: the compiler may choose, and spec is the plan's."
    ),
).shared("array")
_PAIR = {"array": of(str, "The array.", 0)}
_TRAINING = record(
    "The choices of a train step, and the names of its gradients; null: a forward pass alone.",
    lambda plan: plan.problem if plan.problem.training else None,
    remat=of(
        one_of("none", "layer", "dots"),
        "The part of the forward pass that is computed again; dots: all but matrix products.",
        "training.remat",
    ),
    optimizer=of(
        str,
        "The optimizer, as after --optimizer; null: none.",
        lambda problem: str(problem.training.optimizer or ""),
    ),
    gradients=records(
        "The gradients of results, which are given, then those of arguments, which are found.",
        "An array with its gradient.",
        **_PAIR,
        gradient=of(str, "The gradient.", 1),
    ),
    updates=records(
        "What the optimizer makes in the place of arguments.",
        "An array that is updated.",
        **_PAIR,
        updated=of(str, "The new one.", 1),
    ),
)
PHASES = ("forward", "recomputed", "backward", "optimizer")
PHASE = one_of(*PHASES)
PROBLEM = record(
    "The problem.",
    einsum=of(str, "The einsum, or a chain of them with semicolons.", "problem.text"),
    mesh=of(MESH, "The mesh.", "problem.mesh"),
    axis_types=AXIS_TYPES.at("problem.axis_types"),
    padding=records(
        "The dimensions that are padded.",
        "A dimension that its axes do not divide, and that is padded so that they do.",
        "problem.padding",
        dim=of(str, "The dimension."),
        elements=of(int, "Its elements.", "size"),
        padded_elements=of(int, "Its elements with the padding, as in all arrays here.", "padded"),
    ),
    notices=of(
        [str],
        "What the writer of a program may not have meant, a sentence each.",
        lambda plan: _notices(plan.problem),
    ),
    arrays=of([of(_ARRAY, "An array.")], "Arguments, results in between, the result, each once.", _arrays),
    training=_TRAINING,
).shared("problem")


_STEP_OPS = one_of(
    *("einsum", "apply", "slice", "mask"),
    *("all_gather", "psum", "pmax", "psum_scatter", "all_to_all", "ppermute"),
)
PLAN = record(
    "The operations that should happen, by the rules of the textbook.",
    cases=of([str], "For each einsum of the chain the case of a sharded matmul that it is."),
    steps=records(
        "The steps, in order.",
        "An operation that every device performs at the same time.",
        lambda plan: [Beside(step, phase=plan.problem.parts[step.part].phase) for step in plan.steps],
        op=of(_STEP_OPS, "JAX's name of the operation; einsum, apply, slice and mask are local."),
        function=of(str, "The function that is applied; null: an einsum, or a move."),
        phase=of(PHASE, "The part of a train step that it belongs to; forward in others."),
        array=of(str, "The array that it changes or makes."),
        axes=of([str], "Mesh axes of its groups, the major one first."),
        dim=of(int, "The dimension that is gathered, scattered or sliced, from 0; null: none is."),
        from_spec=of(SPEC, "The array's sharding before."),
        from_unreduced=of([str], "Mesh axes of the pending sum before.", "from_spec.unreduced"),
        from_devices=of(
            [int], "The devices that hold it before, where not the mesh's in its order.", "from_spec.devices"
        ),
        to_spec=of(SPEC, "The array's sharding after."),
        to_unreduced=of([str], "Mesh axes of the pending sum after.", "to_spec.unreduced"),
        shape=of([int], "Elements of the larger of a device's operand and result."),
        dtype=of(str, "The element type."),
        bytes=of(int, "Bytes of the larger of a device's operand and result."),
        wire_bytes=of(int, "Bytes that one device must send at least."),
        reason=of(str, "The reason for the step, in a sentence with the numbers."),
    ),
    objective=of(
        one_of("given", "time", "bytes"),
        "What to minimise; given: time, with the work divided as the given arrays are, unless that takes "
        "more than twice as long.",
    ),
    optimal=of(bool, "No plan of those that were searched is better."),
    at_most=of(float, "How many times the best plan's cost it may have; null: it is optimal, or not known."),
    teller=of(one_of("planner", "shardy"), "Who found it; shardy: Shardy's answer is cheaper."),
    repeated_work=record(
        "Work that devices repeat although the specs divide it; null: none.",
        late("shardviz.planner.plan", "repeated_work"),
        factor=of(int, "Devices that compute the same."),
        axes=of([str], "The mesh axes along which they lie."),
        parts=of([int], "The statements, from 0."),
    ),
    result_spec=of(SPEC, "The sharding of the result."),
    result_unreduced=of([str], "Mesh axes of the result's pending sum.", "result_spec.unreduced"),
    wire_bytes=of(int, "Bytes that one device must send at least, in all steps together."),
).shared("plan")


OVERLAPPED = "The longer of compute and communication; in a train step of each pass."
STEP = "The same where only the communication of parameters and their gradients overlaps, as in a search."
_TOTALS = {
    "machine": of(str, "The machine's name.", "machine.name"),
    "machine_assumed": of(
        bool, "Nobody named the machine: each mesh axis is taken for a ring of its own.", "machine.assumed"
    ),
    "steps_of_unknown_time": of(
        [int],
        "Steps, from 1, whose time is not known: no total of seconds has them.",
        lambda cost: [place for place, each in enumerate(cost.steps, 1) if each.seconds is None],
    ),
    "assumes": of(str, "What its times rest on, in a sentence; null: nothing is sent."),
    "serial_seconds": of(float, "The sum of all steps."),
    "overlapped_seconds": of(float, OVERLAPPED),
    "step_seconds": of(float, STEP),
    "compute_seconds": of(float, "Seconds of the local steps."),
    "communication_seconds": of(float, "Seconds of the collectives."),
    "communication_by_axes": records(
        "The collectives by the mesh axes of their groups.",
        "Collectives over the same mesh axes.",
        lambda cost: cost.communication_by_axes.items(),
        axes=of([str], "The axes of their groups.", 0),
        seconds=of(float, "Their seconds.", 1),
    ),
    "seconds_by_phase": of(
        {str: of(float, "Seconds.")}, "Seconds of all steps by the part of a train step that they belong to."
    ),
    "bound": of(str, "The bound of the longest step of the longer side; unknown where a step's is."),
    "flops": of(int, "Operations: two for each multiply-add of a matmul."),
    "hbm_bytes": of(int, "Bytes read and written."),
    "wire_bytes": of(int, "Bytes that the device must send at least."),
    "flops_per_hbm_byte": of(
        float, "FLOPs of the local steps over the bytes that they read and write; null: none."
    ),
    "flops_per_wire_byte": of(float, "FLOPs over bytes sent; null: nothing is sent."),
    "peak_flops_per_second": of(float, "The peak in the arrays' dtype; null: not known.", "peak_flops"),
    "serial_utilisation": of(float, "FLOPs over peak and serial seconds; null: not known."),
    "overlapped_utilisation": of(float, "FLOPs over peak and overlapped seconds; null: not known."),
    "peak_memory_bytes": of(int, "The most bytes that the device holds at once.", "peak_bytes"),
    "peak_memory_step": of(
        int, "The step at which it does, from 1.", lambda cost: cost.steps.index(cost.peak_step) + 1
    ),
    "memory_limit_bytes": of(int, "Bytes of HBM that a program may use; null: not known.", "limit_bytes"),
    "memory_over_bytes": of(
        int, "Bytes by which the plan, in all layers, does not fit; 0: it fits.", "over_bytes"
    ),
    "layers": of(int, "How often the steps run, one after the other; the other figures are of one layer."),
    "all_layers": record(
        "The figures of all layers.",
        lambda cost: cost,
        serial_seconds=of(float, "The sum of all steps.", "layers_seconds"),
        overlapped_seconds=of(float, OVERLAPPED, lambda cost: cost.overlapped_seconds * cost.layers),
        step_seconds=of(float, STEP, lambda cost: cost.step_seconds * cost.layers),
        flops=of(int, "Operations.", lambda cost: cost.flops * cost.layers),
        wire_bytes=of(
            int, "Bytes that the device must send at least.", lambda cost: cost.wire_bytes * cost.layers
        ),
        peak_memory_bytes=of(
            int,
            "The most bytes that the device holds at once, with the arguments of all layers.",
            "layers_peak_bytes",
        ),
        own_arguments=of(
            [str],
            "Arguments of which each layer has its own, such as weights and caches; others pass through.",
            "plan.problem.own_arguments",
        ),
    ),
    "padding": record(
        "The part of the cost that is padding, of each step as much as of its elements.",
        "padding_cost",
        flops=of(int, "Operations."),
        wire_bytes=of(int, "Bytes sent at least."),
        seconds=of(float, "Seconds of all steps."),
    ),
    "training_memory": record(
        "The memory of a train step of all layers, in bytes of a device; null: a forward pass alone.",
        parameters_bytes=of(int, "Parameters.", "parameters"),
        gradients_bytes=of(
            int,
            "Gradients of the parameters: of the last layer as they are made, of others as they stay.",
            "gradients",
        ),
        optimizer_bytes=of(int, "The state of the optimizer.", "optimizer"),
        activations_bytes=of(int, "What the backward pass takes from the forward pass.", "activations"),
        peak_bytes=of(int, "The most that is held at once.", "peak"),
    ),
}
COST = record(
    "The cost of a plan on a machine, for one device.",
    **_TOTALS,
    thresholds=records(
        "A threshold for each dimension.",
        "The sizes of a dimension at which the steps of the plan are compute bound.",
        dim=of(str, "The dimension."),
        current=of(int, "Its elements now.", "size"),
        multiple=of(int, "The parts into which the plan cuts it: sizes are multiples."),
        least=of(int, "The least such size; null: there is none."),
        largest=of(int, "The largest such size; null: there is no end."),
        limit=of(str, "The bound beyond: HBM, or the longest collective's; empty: there is none."),
    ),
    steps=records(
        "The steps, in order.",
        "A step of the plan.",
        op=of(str, "The operation.", "step.op"),
        array=of(str, "The array that it changes or makes.", "step.array"),
        axes=of([str], "Mesh axes of its groups.", "step.axes"),
        seconds=of(float, "Its time: the longest of the three; null: not known."),
        compute_seconds=of(float, "FLOPs over the peak; null: not known, or a collective."),
        hbm_seconds=of(float, "Seconds of the HBM's bytes over its bandwidth; null: not known."),
        wire_seconds=of(float, "Seconds on the links; null: a local step."),
        textbook_seconds=of(
            float, "Seconds on the links as the book counts them, without (N-1)/N; null: local."
        ),
        bound=of(str, '"compute", "HBM", "latency", mesh axes and their links ("Y on x"), or "unknown".'),
        convention=of(str, "The way in which it is counted."),
        flops=of(int, "Operations."),
        hbm_bytes=of(int, "Bytes read and written."),
        wire_bytes=of(int, "Bytes sent at least."),
        memory_bytes=of(int, "Bytes of all arrays that the device holds.", "live_bytes"),
        resident=records(
            "All shards that the device holds.",
            "A shard that the device holds while the step runs.",
            array=of(str, "The array's name.", "name"),
            spec=of(SPEC, "Its sharding."),
            unreduced=of([str], "Mesh axes of its pending sum.", "spec.unreduced"),
            bytes=of(int, "Its bytes."),
            argument=of(bool, "The program is given it so; it stays to the end.", "is_argument"),
        ),
    ),
).shared("cost")
TOTALS = record("The totals of a plan's cost on a machine, for one device.", **_TOTALS).shared("totals")
RANKING = DocumentKind(
    "ranking",
    "explain --specs",
    "Every sharding of an einsum worth considering.",
    einsum=of(str, "The einsum, or a chain of them with semicolons; empty where there is no candidate."),
    mesh=of(MESH, "The mesh; null where there is no candidate."),
    candidates=records(
        "All candidates: those that fit, the fastest first; then the others.",
        "One way to split the arrays.",
        arrays=of(
            [of(_ARRAY, "An array.")],
            "Operands, intermediates, the result.",
            lambda candidate: _arrays(candidate.plan),
        ),
        plan=of(PLAN, "The plan for it."),
        cost=of(TOTALS, "The seconds and the memory of the plan."),
        wire_bytes=of(int, "Bytes that one device must send at least.", "plan.wire_bytes"),
        memory_bytes_per_device=of(
            int, "Bytes of all operands and results on one device.", "memory_per_device"
        ),
        multiply_adds_per_device=of(int, "Multiply-adds that one device computes.", "work_per_device"),
        best=of(bool, "No other candidate is faster without holding more."),
    ),
)


def ranking_document(candidates: Sequence[Candidate]) -> Document:
    """Every candidate of a ranking, in order."""
    first = candidates[0].plan.problem if candidates else None
    einsum, mesh = (first.text, first.mesh) if first else ("", None)
    return RANKING.document(einsum=einsum, mesh=mesh, candidates=candidates)


_COMPARED = record(
    "One of the two.",
    problem=of(PROBLEM, "The problem.", "plan"),
    plan=of(PLAN, "Its plan."),
    cost=of(TOTALS, "The seconds and the memory of the plan.", lambda cost: cost),
)
VERSUS = DocumentKind(
    "versus", "explain --versus", "Two shardings of the same arrays.", first=_COMPARED, second=_COMPARED
)


_plan = late("shardviz.planner.planner", "plan")
SWEEP = DocumentKind(
    "sweep",
    "explain --vary",
    "Compute and communication of an einsum over a range of sizes.",
    problem=of(PROBLEM, "The problem at its own size.", lambda sweep: _plan(sweep.problem)),
    name=of(str, "The dimension or mesh axis whose size varies."),
    is_axis=of(bool, "It is a mesh axis."),
    machine=of(str, "The machine's name.", lambda sweep: sweep.costs[0].machine.name),
    machine_assumed=of(
        bool,
        "Nobody named the machine: each mesh axis is taken for a ring of its own.",
        lambda sweep: sweep.costs[0].machine.assumed,
    ),
    points=records(
        "The sizes looked at, the smallest first.",
        "The plan at one size.",
        lambda sweep: zip(sweep.sizes, sweep.costs, strict=True),
        value=of(int, "The size: elements of the dimension, or devices along the axis.", 0),
        cost=of(TOTALS, "The seconds and the memory of the plan.", 1),
    ),
    crossings=records(
        "The crossings, the smallest size first.",
        "A size at which the longer of compute and communication changes.",
        value=of(int, "The least size from which on the other takes longer.", "size"),
        longer=of(
            one_of("compute", "communication"),
            "The one that takes longer from there on.",
            lambda crossing: "compute" if crossing.compute_grows else "communication",
        ),
        exact=of(bool, "It is the least of all sizes; else the least of those looked at.", "same_plan"),
    ),
    plans_change=of([int], "Sizes at which the plan has other steps than at the size before."),
)
