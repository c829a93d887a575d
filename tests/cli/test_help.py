"""Help: every example in it runs, and the list of commands says what each command says of itself."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import click
import pytest

import shardviz
from shardviz.cli import group
from shardviz.cli.group import COMMANDS, OPTIONS, command_named, run
from shardviz.cli.streams import no_terminal
from shardviz.lessons.attempt import begin
from shardviz.lessons.course import file_names, find
from shardviz.lessons.progress import load
from shardviz.user_files import EXAMPLES as SHIPPED
from tests.conftest import one_in

EXAMPLES = [line for name in COMMANDS if name != "launch" for _, line in command_named(name).examples]
LAUNCHING = [pytest.param(line, marks=pytest.mark.slow) for _, line in command_named("launch").examples]


PROGRAM = SHIPPED / "mlp.txt"
PROFILE = SHIPPED / "step.xplane.pb"
LOG = Path(__file__).parent.parent / "reports" / "compile.log"
CHECKPOINT = Path(__file__).parent.parent / "models" / "checkpoints" / "zarr"
STEP = """
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

def step(mesh, batch=64):
    x = jax.ShapeDtypeStruct((batch, 64), "float32", sharding=NamedSharding(mesh, P("data")))
    return lambda x: x @ x.T, x
"""
LESSON = Path(shardviz.__file__).parent / "lessons" / file_names()[0]


@pytest.mark.usefixtures("server_that_ends")
@pytest.mark.parametrize("line", [*one_in(6, EXAMPLES), *LAUNCHING])
def test_example_runs(
    line: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("step.txt", "old.txt", "new.txt"):
        (tmp_path / name).write_bytes(PROGRAM.read_bytes())
    (tmp_path / "step.py").write_text(STEP)
    (tmp_path / "compile.log").write_bytes(LOG.read_bytes())
    shutil.copytree(CHECKPOINT, tmp_path / "checkpoints" / "7" / "default")
    (tmp_path / "rules.toml").write_text("[rules]\nembed = 'data _'\n")
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "vm.xplane.pb").write_bytes(PROFILE.read_bytes())
    (tmp_path / "dumps").mkdir()
    for number in (1, 2):
        dumped = tmp_path / "dumps" / f"module_000{number}.jit_f.cpu_after_optimizations.txt"
        dumped.write_bytes(PROGRAM.read_bytes())
    (tmp_path / "my-lesson.toml").write_bytes(LESSON.read_bytes())
    load().save(begin(find("1")).next())
    program, *words = shlex.split(line)
    assert program == "shardviz"
    # The application has no terminal here: it says so, and ends, or prints the lesson.
    status = run(words)
    out, err = capfd.readouterr()
    if words[0] == "tui":
        assert status == 2
        assert err.startswith(f"shardviz: error: {no_terminal()}\n")
        return
    assert status == 0
    assert out
    if words[0] == "serve":
        assert " at a time; Ctrl-C ends it\n" in err
        return
    opens = words[:2] == ["lesson", "4"]
    assert err == ("" if not opens else f"shardviz: note: {no_terminal()}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_two_examples_at_the_top_of_its_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(command_named(name).examples) >= 2
    assert run([name, "--help"]) == 0
    out = capsys.readouterr().out
    top = out[: min(out.index(f"\n{title}:\n") for title in ("Options", *OPTIONS) if f"\n{title}:\n" in out)]
    assert [line.strip() for line in top.splitlines() if line.startswith("    shardviz ")] == [
        line for _, line in command_named(name).examples[:2]
    ]
    assert "<=None" not in out
    for parameter in command_named(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.help
            assert parameter.help.endswith("."), parameter.name
    for words, line in command_named(name).examples:
        assert words in out
        assert f"shardviz {name} " in f"{line} "
        assert line in out


def test_the_main_help_begins_with_two_examples_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert len(group.shardviz.examples) == 2
    for words, line in group.shardviz.examples:
        assert out.index(words) < out.index(line) < out.index("Options:") < out.index("Ask:")
        assert (words, line) in command_named(line.split()[1]).examples


@pytest.mark.parametrize("columns", [40, 200])
@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS)])
def test_help_fits_the_terminal(
    words: tuple[str, ...], columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run([*words, "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= min(columns, 80)
    pasted = [" ".join(line.split()) for line in out.replace(" \\\n", " ").splitlines()]
    for _, line in command_named(*words).examples if words else group.shardviz.examples:
        assert line in pasted


def test_every_command_that_prints_text_prints_it_plainly() -> None:
    assert group.commands_with("--plain") == [
        n for n in COMMANDS if n not in ("tui", "export", "serve", "launch")
    ]


@pytest.mark.parametrize("words", [[], ["-h"]])
def test_the_list_of_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    out = capsys.readouterr().out
    for name, summary in COMMANDS.items():
        assert f"  {name}" in out
        assert summary.split(",")[0].split(".")[0] in " ".join(out.split())
    assert "\x1b" not in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from shardviz import __version__

    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"shardviz {__version__}\n"
