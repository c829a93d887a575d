"""`shardviz model`: every parameter of a model, split by rules, and what a step of it costs; and
`checkpoint`: the arrays of an Orbax checkpoint, and what restoring them elsewhere reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_note, working
from shardviz.cli.process import ExitCode
from shardviz.cli.target_session import TargetSession
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import canonical_dtype

with LazyImports():
    from shardviz.answers import plans
    from shardviz.documents import fields, programs as documents
    from shardviz.models import (
        answer as model_answer,
        checkpoint as checkpoints,
        rule_files,
        serving,
        sources,
    )
    from shardviz.planner.problem import training
    from shardviz.render import model_view
    from shardviz.render.programs import target_answers
    from shardviz.targets import hardware

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.reports.target_result import TargetResult


@options.command("model")
@click.argument("source")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    source: str,
    rules: str,
    changes: tuple[str, ...],
    mesh: str,
    device_order: str | None,
    target: str,
    machine: str | None,
    serve: bool,
    timeout: float,
    output: CommandOutput,
    **given: Any,
) -> int:
    """Shard every parameter of a model by rules, and show a step's memory and collectives.

    SOURCE is a name such as llama-3-70b, a config.json of Hugging Face, a .safetensors file or the index of
    many, or a folder with these. No weights are read. Python files of rules are read, not run."""
    if serve:
        for option in ("target", "no_backward", "remat", "optimizer"):
            flag = f"--{option.replace('_', '-')}"
            options.refuse_both({"--serve": True, flag: options.is_given(ctx, option)})
    for option in ("cache", "activations"):
        if given[option] and not serve:
            raise QuestionError(f"--{option} is about inference", "add --serve")
    targets = options.asked_targets(target, mesh)
    with TargetSession(targets, timeout, may_drop=False) as session:
        devices = parse_mesh(mesh, device_order)
        model, named = sources.read_model(source), rule_files.named_rules(rules, devices)
        placed = hardware.placed_for(machine, targets, devices)
        moves = [*map(model_answer.read_change, changes)]
        tokens: dict[str, Any] = {name: given[name] for name in ("batch", "sequence", "inputs", "load")}
        tokens["dtype"] = given["dtype"] or ""
        if serve:
            changed = replace(named, changes=tuple(moves))
            dtypes = {name: given[name] for name in ("cache", "activations")}
            with working("planning steps of many batches"):
                served = serving.serving_answer(model, changed, placed, devices, **dtypes, **tokens)
                document = fields.KINDS["serving"].document(served)
            output.answer(
                lambda: document,
                lambda: model_view.serving_lines(served, *output.page, output.verbose),
                "the collectives of a step",
            )
            return ExitCode.FINE
        update = None
        if not given["no_backward"]:
            update = training.parse_training(True, given["remat"], given["optimizer"], devices)
        unchanged = model_answer.model_question(model, named, placed, devices, training=update, **tokens)
        question = model_answer.with_changes(unchanged, moves)
        with working("planning a step"):
            answer = model_answer.answered(question)
            moved = model_answer.change(model_answer.answered(unchanged), answer) if changes else None
        if answer.step is None:
            print_note(f"no step is planned: the program of {question.model.name} is unknown")
        if not output.as_json:
            if moved is not None:
                output.show(model_view.change_lines(moved, *output.page))
                output.show([])
            output.show(model_view.model_lines(answer, *output.page, output.verbose))
        told: Sequence[tuple[TargetResult, tuple[Difference, ...]]] = ()
        if answer.step is not None:
            plan = answer.step.layer.cost.plan
            session.ask(plan.problem)
            told = plans.told_of(plan, session.answers()) if session.requested else ()
        output.answer(
            lambda: documents.model_document(answer, told, moved),
            lambda: target_answers.targets_table(told, plan.problem, *output.page) if told else [],
            f"memory by use{'' if answer.step is None else ' and every collective'}",
        )
        return session.exit_code


@options.command("checkpoint")
@click.argument("folder")
def checkpoint(
    folder: str,
    mesh: str | None,
    device_order: str | None,
    rules: str | None,
    dtype: str | None,
    output: CommandOutput,
) -> None:
    """List the arrays of an Orbax checkpoint: shape, dtype, saved spec and bytes per device.

    FOLDER has _METADATA, or steps that do; the newest step is read. With --mesh or --rules: what each device
    needs when it is restored so, what it held of that when it was saved, and the bytes of the stored pieces
    that it reads. Saved axes that the mesh lacks are left out. No weights are read."""
    given = options.asked_mesh(mesh, device_order)
    found = checkpoints.read_checkpoint(folder, canonical_dtype(dtype) if dtype else "")
    asked = given or found.mesh or checkpoints.ONE
    named = None if rules is None else rule_files.named_rules(rules, asked)
    restore = checkpoints.restored(found, asked, named)
    output.answer(
        lambda: fields.KINDS["checkpoint"].document(restore, found, found.model),
        lambda: model_view.checkpoint_lines(restore, *output.page, output.verbose),
        "every array" if len(restore.arrays) > model_view.MOST else "",
    )
