"""`shardviz model`: every parameter of a model, split by rules, and what a step of it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json, print_note, working
from shardviz.cli.target_session import TargetSession
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh

with LazyImports():
    from shardviz.answers import explain
    from shardviz.documents import programs as documents
    from shardviz.models import answer as model_answer
    from shardviz.models import rule_files, serving, sources
    from shardviz.planner.problem import training
    from shardviz.render import model_view
    from shardviz.render.programs import target_answers
    from shardviz.targets import hardware

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.reports.target_result import TargetResult


class _Tokens(TypedDict):
    dtype: str
    batch: int | None
    sequence: int | None
    inputs: str


@click.command("model", cls=ExampleCommand)
@click.argument("source")
@options.option(
    "--rules",
    "NAMES|FILE",
    "Sharding rules: data, fsdp, tensor, expert, sequence, joined by +, or a file.",
    required=True,
)
@options.option(
    "--change changes",
    "PATTERN=SPEC",
    "A spec that overrides the rules, and what it changes; may be given several times.",
    multiple=True,
)
@options.mesh
@options.device_order
@options.field("targets", default="none", help="Compilers to ask about one layer, comma-separated.")
@options.machine
@options.field("dtype", default=None, help="Dtype of the weights; default: the source's.")
@options.count("--batch", "Sequences per step; default: one per shard of the batch.", 1)
@options.count("--sequence", "Tokens per sequence; default: up to 4096.", 1)
@options.option(
    "--inputs",
    "SPEC",
    "Spec of the tokens [batch, sequence]; default: from the rules, else the batch over data and fsdp.",
    default="",
)
@options.flag("--no-backward", "Plan only the forward pass: no gradients, no optimizer.")
@options.field(
    "remat",
    default="layer",
    help="What the backward pass recomputes: all of a layer (layer), all but its matmuls (dots), or nothing "
    "(none).",
)
@options.field(
    "optimizer",
    default="adam",
    help="none, sgd or adam; adam,moments=bf16,over=X has bf16 moments, also sharded over X.",
)
@options.flag(
    "--serve", "Inference: the time of a token and of a prompt, by batch, in place of a train step."
)
@options.option(
    "--cache", "DTYPE", "Dtype of the KV cache, with --serve; default: the activations'.", default=""
)
@options.option(
    "--activations", "DTYPE", "Dtype of the activations, with --serve; default: the source's.", default=""
)
@options.timeout
@options.long_output
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    rules: str,
    changes: tuple[str, ...],
    mesh: str,
    device_order: str | None,
    target: str,
    machine: str | None,
    dtype: str | None,
    batch: int | None,
    sequence: int | None,
    inputs: str,
    no_backward: bool,
    remat: str,
    optimizer: str,
    serve: bool,
    cache: str,
    activations: str,
    timeout: float,
    output: CommandOutput,
) -> int:
    """Shard every parameter of a model by rules, and show a step's memory and collectives.

    SOURCE is a name such as llama-3-70b, a config.json of Hugging Face, a .safetensors file or the index of
    many, or a folder with these. No weights are read. Python files of rules are read, not run.
    """
    if serve:
        for option in ("target", "no_backward", "remat", "optimizer"):
            given = options.is_given(ctx, option)
            options.refuse_both({"--serve": True, f"--{option.replace('_', '-')}": given})
    elif cache or activations:
        problem = f"{'--cache' if cache else '--activations'} is about inference"
        raise QuestionError(problem, "add --serve")
    targets = options.asked_targets(target, mesh)
    with TargetSession(targets, timeout, may_drop=False) as session:
        devices = parse_mesh(mesh, device_order)
        model, named = sources.read_model(source), rule_files.named_rules(rules, devices)
        placed = hardware.placed_for(machine, targets, devices)
        moves = [*map(model_answer.read_change, changes)]
        tokens = _Tokens(dtype=dtype or "", batch=batch, sequence=sequence, inputs=inputs)
        if serve:
            changed = replace(named, changes=tuple(moves))
            with working("planning steps of many batches"):
                served = serving.serving_answer(
                    model, changed, placed, devices, cache=cache, activations=activations, **tokens
                )
                document = documents.serving_document(served)
            if output.as_json:
                print_json(document)
            else:
                output.show(model_view.serving_lines(served, *output.page, output.verbose))
                output.show_more("the collectives of a step")
            return 0
        update = None if no_backward else training.parse_training(True, remat, optimizer, devices)
        question = model_answer.model_question(model, named, placed, devices, training=update, **tokens)
        unchanged = question
        question = model_answer.with_changes(question, moves)
        with working("planning a step"):
            answer = model_answer.answered(question)
            moved = model_answer.change(model_answer.answered(unchanged), answer) if changes else None
        if answer.step is None:
            print_note(f"no step is planned: the program of {question.model.name} is unknown")
        if not output.as_json:
            lines = model_view.model_lines(answer, *output.page, output.verbose)
            if moved is None:
                output.show(lines)
            else:
                output.show(model_view.change_lines(moved, *output.page))
                output.show_below(lines)
        told: Sequence[tuple[TargetResult, tuple[Difference, ...]]] = ()
        if answer.step is not None:
            plan = answer.step.layer.cost.plan
            session.ask(plan.problem)
            told = explain.told_of(plan, session.answers()) if session.requested else ()
        if output.as_json:
            print_json(documents.model_document(answer, told, moved))
        elif told:
            output.show(target_answers.targets_table(told, plan.problem, *output.page))
        if not output.as_json:
            output.show_more(f"memory by use{'' if answer.step is None else ' and every collective'}")
        return session.exit_code
