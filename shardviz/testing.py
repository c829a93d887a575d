"""For the tests of a code base on JAX: a change that adds a collective, or holds more than a chip has, fails
one.

::

    def test_the_layer_gathers_nothing():
        shardviz.testing.assert_collectives(layer, weights, x, all_reduce=1, others=0)

    def test_the_model_fits():
        shardviz.testing.assert_fits("llama-3-8b", "fsdp", "data=16", "v5e:4x4", batch=16)
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal

from shardviz.api.inspecting import Report, inspect
from shardviz.errors import QuestionError
from shardviz.hlo.totals import tallies, unmet

if TYPE_CHECKING:
    from shardviz.api.arguments import MachineLike, MeshLike
    from shardviz.api.modelling import ModelLike, RulesLike

Expected = int | EllipsisType | None
"""Runs of an operation; ``...`` is any number of them, None leaves the operation to `others`."""


def assert_collectives(
    program: Any,
    /,
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    all_gather: Expected = None,
    all_reduce: Expected = None,
    reduce_scatter: Expected = None,
    all_to_all: Expected = None,
    ragged_all_to_all: Expected = None,
    collective_permute: Expected = None,
    collective_broadcast: Expected = None,
    others: int | None = None,
) -> None:
    """Check which collectives the compiler put into a program, and how often each runs.

    `program` and its arguments are those of `shardviz.inspect`, its keyword arguments go into `kwargs`; it
    is compiled for the devices of its arguments, and does not run. A `Report` of `shardviz.read_hlo` will
    do as well.

    Every number counts runs: a collective in a loop of four counts four times, a combined one of several
    arrays once, a start and its done once, and of a conditional all branches count. A collective matmul
    counts as the permutes that it is made of. The operations are HLO's, as this compiler has left them: the
    CPU's has an all-reduce and a slice where a GPU's has a reduce-scatter. Operations that are not named are
    not checked, unless `others` says how often all of them run together; with ``others=0``, name those of
    any number with ``...``.

    Raises `AssertionError` with what was expected, what was found, and where that stands in the source;
    also where a loop of unknown length, or text that cannot be read, leaves a number open. Raises
    `QuestionError` for a check of nothing, and what `shardviz.inspect` raises.
    """
    __tracebackhide__ = True

    expected = {
        "all-gather": all_gather,
        "all-reduce": all_reduce,
        "reduce-scatter": reduce_scatter,
        "all-to-all": all_to_all,
        "ragged-all-to-all": ragged_all_to_all,
        "collective-permute": collective_permute,
        "collective-broadcast": collective_broadcast,
    }
    named = {op: _number(op, given) for op, given in expected.items() if given is not None}
    rest = None if others is None else _number("others", others)
    if rest is None and all(number is None for number in named.values()):
        raise QuestionError(
            "no operation is named, so there is nothing to check",
            "give all_gather=0, all_reduce=2, …, or others=0 for none at all",
        )
    report = program if isinstance(program, Report) else inspect(program, *args, **(kwargs or {}))
    found = tallies(report.collectives, named, rest)
    if unmet(found) or report.module.unread:
        from shardviz.render.programs.hlo_view import expectation_text

        raise AssertionError(expectation_text(report.module, report.mesh, found))


def _number(op: str, given: Expected) -> int | None:
    """The number, None for any. Raises `QuestionError` for what is not a number of runs."""
    if given is ...:
        return None
    try:
        number = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if number < 0:
        raise QuestionError(
            f"{op.replace('-', '_')}={given!r} is not a number of runs",
            "give 0, 1, 2, …, or ... for any number",
        )
    return number


def assert_fits(
    model: ModelLike,
    rules: RulesLike,
    mesh: MeshLike,
    chip: MachineLike,
    *,
    dtype: str = "",
    batch: int | None = None,
    sequence: int | None = None,
    inputs: str = "",
    backward: bool = True,
    remat: Literal["none", "layer", "dots"] = "layer",
    optimizer: str = "adam",
) -> None:
    """Check that a model fits the memory of a chip: a whole train step, or without `backward` its parameters
    with the keys and values of all tokens.

    The model, the rules and the other arguments are those of `shardviz.model`. `chip` is a machine of the
    mesh's size (``"v5e:4x4"``) or the name of a chip (``"v5e"``). Of a model of which only names and shapes
    are known a train step counts without its activations.

    Raises `AssertionError` with the memory as a table where it does not fit. Raises `QuestionError` as
    `shardviz.model` does, and for a chip whose memory is not known.
    """
    __tracebackhide__ = True

    from shardviz.api.modelling import model as report_of

    report = report_of(
        model,
        rules=rules,
        mesh=mesh,
        machine=_machine(chip),
        dtype=dtype,
        batch=batch,
        sequence=sequence,
        inputs=inputs,
        backward=backward,
        remat=remat,
        optimizer=optimizer,
    )
    memory = report.memory
    if memory.limit is None:
        raise QuestionError(f"the memory of {chip} is not known", "name a chip, such as v5e")
    if memory.over(memory.training if backward else memory.serving):
        from shardviz.render.models.memory_bars import memory_text

        raise AssertionError(memory_text(report.answer))


def _machine(chip: MachineLike) -> MachineLike:
    """The machine; that of a chip's name alone has a ring for each mesh axis."""
    from shardviz.hardware.chips import GPUS, TPUS
    from shardviz.hardware.machine import assumed_machine

    return assumed_machine(chip) if chip in TPUS or chip in GPUS else chip
