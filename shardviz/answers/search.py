"""The best meshes and shardings of a program on a machine, as a question in the words of the options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from shardviz.errors import QuestionError
from shardviz.models.answer import usual_sequence
from shardviz.models.layer_program import architecture_of, layers_text
from shardviz.models.sources import read_model
from shardviz.planner.problem.training import REMATS, parse_training
from shardviz.planner.search.mesh_ranking import MeshRanking, best_meshes, with_smallest_machine
from shardviz.planner.search.question import SearchQuestion, question_from_text
from shardviz.planner.search.rules import parse_axes
from shardviz.sharding import Mesh

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine

ANY = "any"
"""The word for a remat policy that the search chooses."""
_OF_A_PROGRAM = frozenset("[],=>*;")


class SearchedProgram(NamedTuple):
    """A program and the sizes of its dimensions, as texts; a model's has a `name`."""

    text: str
    sizes: str
    name: str = ""


def searched_program(
    words: str, machine: Machine, sizes: str, batch: int | None = None, sequence: int | None = None
) -> SearchedProgram:
    """The program that is searched. Words without an array are the name or the path of a model: its layers,
    for a step of `batch` sequences, by default one for each device, of `sequence` tokens. Raises
    `QuestionError` for an unknown model, for sizes of a model, and for a batch or sequence of a program."""
    if not _OF_A_PROGRAM.isdisjoint(words):
        if batch or sequence:
            problem = "a batch and a sequence are those of a model, but this is a program"
            raise QuestionError(problem, "give sizes, such as b=32,t=4096")
        return SearchedProgram(words, sizes)
    model = read_model(words)
    if sizes:
        raise QuestionError(f"the sizes of {model.name} are its own", "give --batch and --sequence alone")
    of = architecture_of(model)
    batch, sequence = batch or max(1, machine.devices), sequence or usual_sequence(model)
    name = f"the {of.layers} layers of {model.name}, {batch:,} × {sequence:,} tokens"
    return SearchedProgram(*layers_text(model, batch, sequence), name)


def search_question(
    program: str,
    machine: Machine,
    axes: str,
    *,
    sizes: str = "",
    dtype: str = "bf16",
    keep: str = "",
    backward: bool = False,
    remat: str = "none",
    optimizer: str = "none",
    overlap: Literal["parameters", "none", "all"] = "parameters",
    microbatches: int | None = None,
    interleave: int | None = None,
    batch: int | None = None,
    sequence: int | None = None,
) -> SearchQuestion:
    """The question, checked; a `remat` of "any" is chosen. Raises `QuestionError` for words that state none,
    as `searched_program` does."""
    searched = searched_program(program, machine, sizes, batch, sequence)
    named = parse_axes(axes)
    mesh = Mesh(tuple(axis.name for axis in named), (1,) * len(named))
    remats = REMATS if backward and remat == ANY else ()
    training = parse_training(backward, REMATS[0] if remats else remat, optimizer, mesh)
    question = question_from_text(
        searched.text,
        machine,
        named,
        sizes=searched.sizes,
        dtype=dtype,
        keep=keep,
        training=training,
        overlap=overlap,
        microbatches=microbatches,
        interleave=interleave,
        remats=remats,
    )
    return replace(question, name=searched.name)


def searched(question: SearchQuestion) -> MeshRanking:
    """The answer; where no mesh fits the machine, with the smallest machine on which one does."""
    return with_smallest_machine(best_meshes(question))
