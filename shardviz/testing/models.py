"""For the tests of a code base that has a model and rules: it fits the memory of a chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.api.arguments import MachineLike, MeshLike
    from shardviz.api.modelling import ModelLike, RulesLike


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
