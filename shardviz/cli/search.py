"""`shardviz search`: the best meshes and shardings of a program on a machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_note, working
from shardviz.cli.process import ExitCode, first_interrupt
from shardviz.errors import CompilerError, QuestionError, plural, quote
from shardviz.lazy_names import LazyImports
from shardviz.targets import Target, check_installed, parse_targets

with LazyImports():
    from shardviz import user_files
    from shardviz.answers import search
    from shardviz.cli import target_session
    from shardviz.documents import plans as documents
    from shardviz.forms import command_line, options as form_options
    from shardviz.hardware import machine_file
    from shardviz.models import sources
    from shardviz.notation import spec_string
    from shardviz.planner.search import mesh_ranking
    from shardviz.render import search_view
    from shardviz.reports import target_result, trials

if TYPE_CHECKING:
    from shardviz.models import serving
    from shardviz.planner.search.mesh_ranking import MeshRanking

RULE_ENDINGS = (".toml", ".yml", ".py")


@options.command("search")
@click.argument("program", callback=options.refuse_beside_example)
def command(
    program: str,
    machine: str | None,
    axes: str | None,
    compiled: int | None,
    limit: int,
    save: str | None,
    timeout: float,
    output: CommandOutput,
    **given: Any,
) -> int:
    """Search for the mesh and the shardings that run PROGRAM fastest on a machine.

    PROGRAM is an einsum, a chain of them, or statements such as H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d],
    and ends with x 32 for a layer that runs 32 times. Or it is a model, such as llama-3-70b, or a
    config.json."""
    if machine is None:
        raise QuestionError("a search needs a machine", "add --machine v5p:4x4x8, or another")
    words = given | {"sizes": given["sizes"] or "", "backward": given["backward"] == "yes"}
    question = search.search_question(
        program, machine_file.named_machine(machine), axes or "", of_layers=compiled is not None, **words
    )
    if save is not None and not question.name:
        raise QuestionError(
            "-o writes a model's rules, but this is a program", "leave it out, or name a model"
        )
    if save is not None and not user_files.is_folder(user_files.target_path(save).absolute().parent):
        raise QuestionError(f"the folder of {quote(save)} does not exist", "use another name or folder")
    if save is not None and not save.endswith(RULE_ENDINGS):
        hint = "write -o rules.toml, rules.yml for MaxText, or rules.py for Flax"
        raise QuestionError(f"{quote(save)} does not end in {', '.join(RULE_ENDINGS)}", hint)
    if given["serve"] and compiled is not None:
        raise QuestionError("--serve prices a whole model, which --compile does not", "leave out one of them")
    target = None
    if compiled is not None:
        try:
            (target,) = parse_targets(machine)
        except QuestionError as error:
            hint = "leave out --compile, or name hardware such as v5e:4x4"
            raise QuestionError(f"no compiler for the machine {quote(machine)}", hint) from error
        check_installed(target)
    looked_at, stops = "searching the meshes", "stopping; ctrl-c again ends at once"
    served, unpriced = list["serving.ServedMesh"](), 0
    with first_interrupt() as interrupted, working(lambda: stops if interrupted() else looked_at):
        for answer in mesh_ranking.search_meshes(question):
            looked_at = search_view.progress_words(answer)
            if interrupted():
                break
        if given["serve"] and answer.is_complete and answer.found:
            looked_at = "planning the steps of whole models"
            ships = save is None
            for priced in search.served_meshes(answer, program, limit, ships=ships, load=given["load"]):
                answer, served, unpriced = priced
                looked_at = f"planning the steps of whole models, {plural(unpriced, 'mesh', 'meshes')} left"
                if interrupted():
                    break
    # From here on an interrupt ends at once.
    with working(lambda: looked_at):
        if answer.is_complete and not answer.found:
            looked_at = "looking for a large enough machine"
            answer = mesh_ranking.with_smallest_machine(answer)
    if save is not None and answer.found:
        text = search.rules_file(program, question, answer.found[0], save.rpartition(".")[2])
        user_files.write_file(Path(save), text)
    if not output.as_json:
        named = served[0].answer.question.split.rules.name if served else ""
        opened = _opened(program, machine, given, answer, save or named) if answer.found else ""
        output.show(search_view.search_view(answer, *output.page, limit, opened, output.verbose, served))
    rows = None
    if target is not None and answer.is_complete and answer.found:
        rows = _compiled(answer, compiled or 0, target, timeout)
    output.answer(
        lambda: documents.search_document(answer, rows, served),
        lambda: [] if rows is None else search_view.compiled_view(answer, rows, *output.page),
        "what was assumed",
    )
    if unpriced or not answer.is_complete:
        left = f"after {answer.looked_at:,} of {answer.meshes:,} meshes"
        if unpriced:
            left = f"with {plural(unpriced, 'mesh', 'meshes')} left to plan"
        print_note(f"interrupted {left}: not complete")
        return interrupted()
    if rows and all(row.seconds is None for row in rows):
        return ExitCode.COMPILER
    return ExitCode.FINE if answer.found else ExitCode.CHECK_FAILED


def _opened(searched: str, machine: str, given: Mapping[str, Any], answer: MeshRanking, named: str) -> str:
    """The command line that explains the first row, with the rules that are `named` or changes to others; for
    a pipeline of a model there is none."""
    best, question = answer.found[0], answer.question
    shown, specs = mesh_ranking.shown_mesh(question, best), dict(best.specs)
    remat, optimizer = (best.training.remat if best.training else "none"), str(best.optimizer or "none")
    words: dict[str, Any] = {name: given[name] or "" for name in ("sizes", "dtype", "backward", "frozen")}
    words |= {"remat": remat, "optimizer": optimizer}
    if not question.name:
        form = form_options.form_from_options(
            searched, mesh=str(best.mesh), targets="none", machine=machine, **words
        )
        return command_line.to_command_line(form_options.with_shardings(form, shown, specs))
    if any(axis.kind == "pipeline" and best.mesh.axis_size(axis.name) > 1 for axis in question.axes):
        return ""
    batch, sequence = question.tokens
    rules, inputs = search.row_rules(sources.read_model(searched), question, best)
    # A bias is called after the matrix of experts that it belongs to.
    names = {name: name if name.endswith(".weight") else f"{name}$" for name in rules}
    changes = [f"{names[name]}={spec_string.write_spec(spec)}" for name, spec in rules.items() if spec.axes]
    split = ["--rules", f"{shown.axis_names[0]}=data", "--inputs", spec_string.write_spec(inputs)]
    split += [word for change in changes for word in ("--change", change)]
    line = ["shardviz", "model", searched, "--mesh", str(shown), "--machine", machine]
    line += ["--device-order", "row-major"] * (shown.device_order is not None)
    line += ["--batch", str(batch), "--sequence", str(sequence)]
    line += ["--dtype", given["dtype"], *(["--rules", named] if named else split)]
    line += ["--load", given["load"]] if given["load"] else []
    step = ["--remat", remat, "--optimizer", optimizer] if question.training else ["--no-backward"]
    if given["serve"]:
        dtypes = (f"--{name}={given[name]}" for name in ("cache", "activations") if given[name])
        step = [*dtypes, "--serve"]
    return shlex.join([*line, *step])


def _compiled(
    answer: MeshRanking, count: int, target: Target, timeout: float
) -> list[trials.CompiledSharding]:
    best, rows = [first for first, *_ in answer.alike[:count]], list[trials.CompiledSharding]()
    question = answer.question
    of = f"of {plural(len(best), 'sharding')} for {target.name}"
    with (
        target_session.started_worker(timeout, target) as worker,
        working(lambda: f"compiled {len(rows)} {of}"),
    ):
        pending = [worker.submit(trials.one_layer(question, row), target, with_costs=True) for row in best]
        for row, request in zip(best, pending, strict=True):
            try:
                compiled = request.result()
            except CompilerError as error:
                compiled = target_result.without_answer(target.name, error)
            rows.append(trials.compiled_sharding(question, row, compiled))
    return trials.by_compiled_time(rows)
