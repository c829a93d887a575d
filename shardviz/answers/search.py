"""The best meshes and shardings of a program on a machine, as a question in the words of the options, and
what they are for the whole of a model: rules for its parameters, and the tokens that it serves."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError, plural
from shardviz.hardware.machine import Machine, place_mesh
from shardviz.models.answer import usual_sequence
from shardviz.models.layer_program import (
    CACHES,
    architecture_of,
    logical_axes,
    most_layers,
    parameter_specs,
    part_texts,
)
from shardviz.models.rule_files import rules_text, shipped_rules
from shardviz.models.rule_set import RuleSet, ShardingRule
from shardviz.models.serving import ServedMesh, check_context, serving_answer
from shardviz.models.sources import read_model
from shardviz.notation.spec_string import write_spec
from shardviz.planner.problem.training import REMATS, parse_training
from shardviz.planner.search.mesh_choices import InfeasibleMesh, MeshSharding
from shardviz.planner.search.mesh_ranking import MeshRanking, shown_mesh
from shardviz.planner.search.question import SearchQuestion, question_from_text
from shardviz.planner.search.rules import parse_axes
from shardviz.sharding import Mesh, PartitionSpec, canonical_dtype
from shardviz.units import bytes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shardviz.models.model import Model

PRICED = 12
"""Meshes that a serving search prices whole, so that the first row is the same however few are shown."""
SHIPPED = ("data", "tensor", "expert")
"""Kinds of axes for which rules ship that shard what a step that decodes takes."""


def search_question(
    program: str,
    machine: Machine,
    axes: str,
    *,
    sizes: str = "",
    backward: bool = False,
    remat: str = "none",
    optimizer: str = "none",
    frozen: str | None = "",
    batch: int | None = None,
    sequence: int | None = None,
    serve: bool = False,
    of_layers: bool = False,
    dtype: str = "bf16",
    cache: str = "",
    activations: str = "",
    load: str | float = "",
    offload: str = "any",
    **options: Any,
) -> SearchQuestion:
    """The question, checked, without `axes` of usual ones; a `remat` of "any" is chosen, and moments that the
    text of the `optimizer` does not have. `options` are those of `question_from_text`.

    A `program` without an array is the name or the path of a model, for a step of `batch` sequences, by
    default one for each device, of `sequence` tokens; `of_layers` are those of its layers of which there are
    the most, alone. To `serve` it is a step that decodes, whose cache has these tokens, in the dtypes of
    `serving_answer`. Raises `QuestionError` for an unknown model, for sizes of a model, for a batch or
    sequence of a program, and for words that state no question.
    """
    axes = axes or ("data,tensor" if serve else "data,fsdp,tensor")
    if (cache or activations) and not serve:
        raise QuestionError("the dtypes of cache and activations are those of inference", "add --serve")
    if 0 in (batch, sequence):
        raise QuestionError("a step has at least 1 sequence of 1 token", "leave them out, or give more")
    texts, name, dtypes, tokens, cached = [(program, sizes)], "", dict[str, str](), (0, 0), tuple[str, ...]()
    if not {*program} & {*"[],=>*;"}:
        model = read_model(program)
        if sizes:
            raise QuestionError(f"the sizes of {model.name} are its own", "give --batch and --sequence alone")
        if frozen or "=" in dtype:
            problem = f"{model.name} is searched with one dtype and without frozen arrays"
            raise QuestionError(problem, "leave them out, or search a layer as a program")
        batch, sequence = batch or max(1, machine.devices), sequence or usual_sequence(model)
        of = architecture_of(model)
        layers = most_layers(of)
        name = f"the {len(layers.layers)} {layers.name}s of {model.name}" if of_layers else model.name
        name += f", {batch:,} × {sequence:,} tokens"
        texts = part_texts(model, batch, sequence, decodes=serve, with_loss=backward, load=load)
        tokens = batch, sequence
        if serve:
            if backward or any(axis.kind == "pipeline" for axis in parse_axes(axes)):
                problem = "a step that decodes is searched without gradients and pipelines"
                raise QuestionError(problem, "leave out --backward and pipeline axes, or --serve")
            if options.get("overlap") == "all":
                raise QuestionError("a step that decodes is priced without overlap", "leave out --overlap")
            check_context(model, sequence)
            assert layers.kind is not None
            cached = (*CACHES[layers.kind.mixer],)
            name = f"{model.name}: decode steps of {plural(batch, 'sequence')}, {sequence:,} tokens each"
            weights, dtype = canonical_dtype(dtype), canonical_dtype(activations or of.dtype)
            own = canonical_dtype(cache or dtype)
            dtypes = {f"{word}{name}": own for name in cached for word in ("", "new_", "all_")}
    elif serve:
        raise QuestionError("a model is served, but this is a program", "name one, such as llama-3-70b")
    elif batch or sequence or load:
        problem = "a batch, a sequence and a load are those of a model, but this is a program"
        raise QuestionError(problem, "give sizes, such as b=32,t=4096, and dispatch the load")
    named = parse_axes(axes)
    mesh = Mesh(tuple(axis.name for axis in named), (1,) * len(named))
    remats = REMATS if backward and remat == "any" else ()
    training = parse_training(backward, REMATS[0] if remats else remat, optimizer, mesh, frozen)
    (text, sizes), *others = texts
    # A dtype that is written is kept.
    options["moments"] = () if "moments" in optimizer else ("bf16",)
    options["offload"] = "none" if offload == "any" and not (training and training.optimizer) else offload
    question = question_from_text(
        text, machine, named, sizes=sizes, dtype=dtype, training=training, remats=remats, **options
    )
    # The other parts of a model run on all stages of a pipeline.
    beside = tuple(axis for axis in named if axis.kind != "pipeline")
    parts = [
        question_from_text(text, machine, beside, sizes=sizes, dtype=dtype, training=training)
        for text, sizes in (() if of_layers else others)
    ]
    if dtypes:
        question, *parts = (_in_dtypes(part, weights, dtypes) for part in (question, *parts))
    kinds, ends = tuple(parts[:-1]), parts[-1] if parts else None
    return replace(question, name=name, tokens=tokens, cached=cached, kinds=kinds, ends=ends)


def _in_dtypes(question: SearchQuestion, weights: str, dtypes: Mapping[str, str]) -> SearchQuestion:
    """The question with parameters in a dtype, and arrays in the dtypes of their names."""
    own = {**dict.fromkeys(question.roles.parameters, weights), **dtypes}
    typed = question.problem.with_arrays(lambda one: replace(one, dtype=own.get(one.name, one.dtype)))
    return replace(question, problem=typed)


def row_rules(
    model: Model, question: SearchQuestion, row: MeshSharding
) -> tuple[dict[str, PartitionSpec], PartitionSpec]:
    """The specs of a model's parameters in a row, by words in their names, and that of its tokens."""
    specs = dict(row.specs)
    examples, positions = specs["x"].dims[:2]
    if question.cached:
        # The cache takes what is left of the axes of its heads by itself.
        cache = specs[question.cached[0]].dims[0]
        examples, positions = tuple(axis for axis in examples if axis in cache), ()
    inputs = PartitionSpec((examples, positions))
    return parameter_specs(model, specs), inputs


def rules_file(program: str, question: SearchQuestion, row: MeshSharding, ending: str) -> str:
    """The text of a file of rules with a row's specs. Raises `QuestionError` as `rules_text` does."""
    model = read_model(program)
    specs = row_rules(model, question, row)
    return rules_text(ending, *specs, logical_axes(model), shown_mesh(question, row))


def served_meshes(
    ranking: MeshRanking, program: str, limit: int, *, ships: bool = True, load: str | float = ""
) -> Iterator[tuple[MeshRanking, list[ServedMesh], int]]:
    """The first `PRICED` rows, or `limit` where that is more, as `shardviz model --serve` prices them, the
    fastest token first; with the ranking that has these at its head, and rules out those that do not fit; and
    the number of rows that are left to price: one more is priced each time. Of copies in which axes change
    places, the fastest is a row. A row has rules that ship, if one `ships`, where they take no longer."""
    model, question = read_model(program), ranking.question
    arguments = {argument.name: argument for argument in question.problem.arguments}
    weight = next(arguments[name] for name in arguments if name in question.roles.parameters)
    batch, sequence = question.tokens
    kinds = {axis.name: axis.kind for axis in question.axes}
    rows = [(number, row) for number, group in enumerate(ranking.alike) for row in group]
    count, served = min(max(PRICED, limit), len(rows)), list[tuple[int, ServedMesh]]()
    unfit = [*ranking.infeasible]
    for number, (figures, row) in enumerate(rows[:count], 1):
        specs, inputs = row_rules(model, question, row)
        rules = tuple(ShardingRule(f"{re.escape(name)}$", spec) for name, spec in specs.items())
        mesh = shown_mesh(question, row)
        choices = [RuleSet("", "patterns", rules, write_spec(inputs))]
        if ships and {kinds[axis] for axis in mesh.axis_names} <= set(SHIPPED):
            # Rules that ship are easier to give, and planned as a whole they may be as good.
            names = (f"{axis}={kinds[axis]}" for axis in mesh.axis_names)
            choices.insert(0, shipped_rules("+".join(names), mesh))
        words = {"dtype": weight.dtype, "cache": arguments[question.cached[0]].dtype}
        words["activations"] = arguments["x"].dtype
        placed = place_mesh(question.machine, mesh)
        answers = (
            serving_answer(model, choice, placed, mesh, batch=batch, sequence=sequence, load=load, **words)
            for choice in choices
        )
        answer = min(answers, key=lambda one: one.decode.step.seconds)
        held, most = answer.decode.memory, answer.memory.limit or 0
        if answer.memory.over(held):
            reason = f"shardviz model --serve would hold {bytes_of(held, most)} on each device"
            unfit.append(InfeasibleMesh(row.mesh, reason))
        else:
            served.append((figures, ServedMesh(row, answer)))
            served.sort(key=lambda one: one[1].answer.decode.step.seconds)
        fit = dict[tuple[int, int], ServedMesh]()
        for place, (figures, one) in enumerate(served):
            same = (key for key, first in fit.items() if key[0] == figures and _is_same(first, one))
            if (key := next(same, None)) is None:
                fit[figures, place] = one
            else:
                fit[key] = fit[key]._replace(copies=(*fit[key].copies, one.found))
        found = [row for one in fit.values() for row in (one.found, *one.copies)]
        found += [row for _, row in rows[number:]]
        shown = replace(ranking, found=tuple(found), infeasible=tuple(unfit))
        yield shown, [*fit.values()][:limit], count - number


def _is_same(first: ServedMesh, other: ServedMesh) -> bool:
    """Axes of one have changed places in the other, or the figures of both are the same."""
    sizes = [sorted(each.found.mesh.axis_sizes) for each in (first, other)]
    both = first.answer, other.answer
    told = ((each.decode.step.seconds, each.decode.memory, each.prefill.seconds) for each in both)
    return sizes[0] == sizes[1] or next(told) == next(told)
