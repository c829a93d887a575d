"""`shardviz targets`, `info` and `schema`: what can answer here, in which version, and in which form."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_json
from shardviz.documents.fields import KINDS, schema_of
from shardviz.lazy_names import LazyImports
from shardviz.targets import installed_versions, libtpu_mismatch

with LazyImports():
    from shardviz.compiler import compile_cache
    from shardviz.render import machine_view
    from shardviz.targets import hardware


@options.command("targets")
def targets(output: CommandOutput) -> None:
    """List the values of --target and what each needs. No TPU or GPU has to be present."""
    groups = hardware.target_groups()
    output.answer(
        lambda: KINDS["targets"].document(groups=groups),
        lambda: machine_view.targets_view(groups, output.width, output.verbose),
        "the figures of each chip",
    )


@options.command("info")
def info(clear_cache: bool, output: CommandOutput) -> None:
    """Show the versions that answers depend on, and the cache of compiled programs.

    A program compiled for a TPU or GPU target is kept on disk, and the same question is then read from there.
    """
    if clear_cache:
        compile_cache.clear()
    versions, cache = installed_versions(), compile_cache.usage()
    warning = libtpu_mismatch(versions)
    output.answer(
        lambda: KINDS["info"].document(versions=versions, warning=warning, cache=cache),
        lambda: machine_view.info_view(versions, warning, cache, output.width),
    )


@options.command("schema")
@click.argument("kind", required=False, type=click.Choice([*KINDS]), metavar="[KIND]")
@click.pass_context
def schema(ctx: click.Context, kind: str | None) -> None:
    """Print the schema of a KIND of document, in JSON Schema 2020-12; without KIND list the kinds."""
    if kind is not None:
        print_json(schema_of(kind))
        return
    kinds = ctx.make_formatter()
    kinds.write_dl([(name, f"{kind.summary} (shardviz {kind.printed_by})") for name, kind in KINDS.items()])
    click.echo(kinds.getvalue(), nl=False)
