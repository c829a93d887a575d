"""The best meshes and shardings of a program on a machine, as a question in the words of the options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError
from shardviz.models.answer import usual_sequence
from shardviz.models.layer_program import architecture_of, layers_text, most_layers
from shardviz.models.sources import read_model
from shardviz.planner.problem.training import REMATS, parse_training
from shardviz.planner.search.question import SearchQuestion, question_from_text
from shardviz.planner.search.rules import parse_axes
from shardviz.sharding import Mesh

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine


def search_question(
    program: str,
    machine: Machine,
    axes: str,
    *,
    sizes: str = "",
    backward: bool = False,
    remat: str = "none",
    optimizer: str = "none",
    batch: int | None = None,
    sequence: int | None = None,
    **options: Any,
) -> SearchQuestion:
    """The question, checked; a `remat` of "any" is chosen, and `options` are those of `question_from_text`.

    A `program` without an array is the name or the path of a model: its layers, for a step of `batch`
    sequences, by default one for each device, of `sequence` tokens; of several kinds of layers those of which
    there are the most. Raises `QuestionError` for an unknown
    model, for sizes of a model, for a batch or sequence of a program, and for words that state no question.
    """
    text, name = program, ""
    if not {*program} & {*"[],=>*;"}:
        model = read_model(program)
        if sizes:
            raise QuestionError(f"the sizes of {model.name} are its own", "give --batch and --sequence alone")
        batch, sequence = batch or max(1, machine.devices), sequence or usual_sequence(model)
        layers = most_layers(architecture_of(model))
        name = f"the {len(layers.layers)} {layers.name}s of {model.name}, {batch:,} × {sequence:,} tokens"
        text, sizes = layers_text(model, batch, sequence)
    elif batch or sequence:
        problem = "a batch and a sequence are those of a model, but this is a program"
        raise QuestionError(problem, "give sizes, such as b=32,t=4096")
    named = parse_axes(axes)
    mesh = Mesh(tuple(axis.name for axis in named), (1,) * len(named))
    remats = REMATS if backward and remat == "any" else ()
    training = parse_training(backward, REMATS[0] if remats else remat, optimizer, mesh)
    question = question_from_text(
        text, machine, named, sizes=sizes, training=training, remats=remats, **options
    )
    return replace(question, name=name)
