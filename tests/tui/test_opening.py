"""`o`: files, folders and texts are told apart, read, and shown where they belong; what cannot be read says
why."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
from textual.widgets import Input

from shardviz.cli.group import run
from shardviz.documents.summaries import save_summary
from shardviz.errors import QuestionError
from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_string
from shardviz.hlo import read
from shardviz.lessons.course import course
from shardviz.reports.changes import summary
from shardviz.reports.program_report import report_of
from shardviz.tui.opening.dialog import OpenDialog
from shardviz.tui.opening.kinds import openables, option_words, read_options, typed
from shardviz.tui.opening.pages import CommandDialog, LineEntry, TranslationDialog
from shardviz.user_files import EXAMPLES
from tests.tui.conftest import Mute, drive, text_of, until

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "hlo" / "recorded" / "all_reduce_2x8.txt"
PROFILE = EXAMPLES / "step.xplane.pb"
CHECKPOINT = Path(__file__).parents[1] / "models" / "checkpoints" / "zarr"


FUNCTIONS = """
import print_nothing_of_this

def helper(a, b):
    return a + b

def step(mesh, depth=2):
    return helper, mesh

async def other(mesh): ...
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of files of every kind, in which the application is opened."""
    here = tmp_path / "here"
    (here / "dumps").mkdir(parents=True)
    text = PROGRAM.read_text()
    (here / "step.txt").write_text(text)
    for number in (3, 4):
        (here / "dumps" / f"module_{number:04}.jit_f.cpu_after_optimizations.txt").write_text(text)
    (here / "step.xplane.pb").write_bytes(PROFILE.read_bytes())
    (here / "compile.log").write_text("nothing of a compiler")
    (here / "notes.odt").write_text("not listed")
    (here / "steps.py").write_text(FUNCTIONS)
    (here / "pyproject.toml").write_text('[project]\nname = "no machine"')
    (here / "cluster.toml").write_text('base = "v5p:4x4x8"')
    (here / "package.json").write_text('{"name": "not a report"}')
    save_summary(summary(report_of(read(text, infer=True, origins=True))), here / "before.json")
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 768, "n_head": 12}
    config |= {"n_layer": 12, "n_positions": 1024, "vocab_size": 50257}
    (here / "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(here)
    shutil.copytree(CHECKPOINT, here / "kept")
    return here


def test_a_folder_lists_what_can_be_opened(folder):
    kinds = {each.name: each.kind for each in openables("")}
    assert kinds == {
        "before.json": "saved",
        "cluster.toml": "machine",
        "compile.log": "program",
        "config.json": "model",
        "steps.py": "source",
        "step.txt": "program",
        "step.xplane.pb": "profile",
        "dumps/": "folder",
        "kept/": "folder",
    }
    assert openables("kept/")[0].kind == "checkpoint"
    assert [each.kind for each in openables("dumps/")] == ["modules", "program", "program"]
    assert openables("nowhere/") == []
    assert [(each.name, each.kind) for each in openables("steps.py:")] == [("steps.py:step", "function")]
    assert openables("nowhere.py:") == openables("step.txt:") == []
    (folder / "traces" / "plugins" / "profile").mkdir(parents=True)
    assert openables("traces/")[0].kind == "profile"


KINDS = [
    ("step.txt", "program"),
    ("notes.odt", "program"),
    ("P('X', None)", "notation"),
    ("{devices=[2,4]<=[8]}", "notation"),
    ("shardviz explain 'bd,df->bf' --mesh X=4", "line"),
    (to_string(Shared(ProblemForm(mesh="X=8"), "plan")), "string"),
    ("steps.py", "source"),
    ("steps.py:step", "function"),
    ("train_step", "function"),
    ("before.json", "saved"),
    ("package.json", "program"),
    ("pyproject.toml", "program"),
    ("~/step.txt", "program"),
    ("step.txt --mesh X=2,Y=8", "program"),
    ("dumps --machine v5e:4x4", "modules"),
    ("shardviz hlo step.txt --time", "program"),
    ("shardviz hlo no_such_file", "program"),
    ("shardviz program steps.py:step --mesh X=4", "function"),
    ("shardviz profile traces --machine v5e:2x2", "profile"),
    ("shardviz diff before.json step.txt", "command"),
    ("shardviz model llama-3-8b", "model"),
    ("kept --mesh X=8", "checkpoint"),
    ("kept/_METADATA", "checkpoint"),
    ("shardviz checkpoint no_such_folder", "checkpoint"),
    ("~nobody/step.txt", None),
    ("no/such_file", None),
    ("step", None),
    ("", None),
]


def test_each_text_is_told_apart(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    for text, kind in KINDS:
        found = typed(text, True)
        assert (found.kind if found is not None else None) == kind, text
        if kind == "program" and not text.startswith("shardviz"):
            assert typed(text, False) is None


async def opened(pilot, text):
    await pilot.press("o")
    assert isinstance(pilot.app.screen, OpenDialog)
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")


def test_what_a_command_prints_is_shown_and_its_line_is_typed_anew(capsys):
    async def script(pilot):
        app = pilot.app
        await opened(pilot, "step.txt --mesh X=2,Y=8")
        await until(pilot, lambda: "all-reduce X" in text_of(app))
        await pilot.press("y")
        line = app.clipboard
        assert line == "shardviz hlo step.txt --mesh X=2,Y=8"
        assert run(shlex.split(line)[1:]) == 0
        printed = capsys.readouterr().out.split()[:20]
        assert printed == [word for word in text_of(app).split() if word in printed][:20]
        await pilot.press("enter")
        assert isinstance(app.screen, LineEntry)
        await pilot.press(*" --time", "enter")
        await until(pilot, lambda: "v5e" in text_of(app))
        await pilot.press("enter")
        app.screen.query_one(Input).value = "shardviz hlo nowhere.txt"
        await pilot.press("enter")
        await until(pilot, lambda: "error: file 'nowhere.txt' does not exist" in text_of(app))
        await pilot.press("escape")
        assert len(app.screen_stack) == 1

    drive(script, screen="plan")


MATMUL = """
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

def step(mesh):
    x = jax.ShapeDtypeStruct((64, 64), "float32", sharding=NamedSharding(mesh, P("X")))
    return lambda x: x @ x, x
"""


def test_a_key_lists_every_array_of_a_function(folder):
    (folder / "tiny.py").write_text(MATMUL)

    async def script(pilot):
        app = pilot.app
        await opened(pilot, "tiny.py:step --mesh X=4 --target shardy")
        await until(pilot, lambda: "running …" in text_of(app))
        await pilot.press("a")
        assert app.screen.line.endswith("--arrays")
        await until(pilot, lambda: "arguments" in text_of(app))
        await pilot.press("a")
        assert app.screen.line.endswith("--target shardy")

    drive(script, screen="plan", size=(40, 15))


OPENED = [
    ("before.json", "shardviz hlo before.json"),
    ("dumps/", "shardviz hlo dumps"),
    ("shardviz diff before.json step.txt", "shardviz diff before.json step.txt"),
    ("steps.py:step --mesh=X=4", "shardviz program steps.py:step --mesh=X=4 --target v5e:2x4"),
    ("train_step", "shardviz program train_step --mesh data=2,model=4 --target v5e:2x4"),
    ("shardviz hlo 'a file' --time", "shardviz hlo 'a file' --time"),
]


def test_each_kind_has_its_command():
    for text, line in OPENED:
        found = typed(text, True) or openables("dumps/")[0]
        assert found.command("X=2,Y=4", "v5e:2x4") == line


@pytest.mark.parametrize(("key", "line"), [("o", "config.json"), ("M", "llama-3-8b")])
def test_a_model_is_the_page_of_its_command(key, line):
    async def script(pilot):
        app = pilot.app
        if key == "o":
            await opened(pilot, line)
        else:
            await pilot.press(key)
        await until(pilot, lambda: "parameters in" in text_of(app))
        await pilot.press("y")
        assert app.clipboard == f"shardviz model {line} --rules fsdp+tensor --mesh data=4,tensor=2"

    drive(script, screen="plan")


def test_a_window_lists_its_keys_and_its_palette_runs_them():
    async def script(pilot):
        app = pilot.app
        await opened(pilot, "before.json")
        await pilot.press("question_mark")
        await pilot.pause()
        for command in CommandDialog.commands:
            assert re.search(rf"{re.escape(command.own_key)} +{command.title} ", text_of(app)), command
        await pilot.press("question_mark")
        assert isinstance(app.screen, CommandDialog)
        await pilot.press("ctrl+p", *"line")
        await until(pilot, lambda: "Command line  enter" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LineEntry))
        await pilot.press("escape", "escape", "o", "f1")
        await until(pilot, lambda: "Complete" in text_of(app))

    drive(script, screen="plan")


def test_tab_completes_a_path():
    async def script(pilot):
        await pilot.press("o", "s", "tab")
        field = pilot.app.screen.query_one(Input)
        assert field.value == "step"
        await pilot.press("s", "tab", "enter")
        assert field.value == "steps.py:"
        await pilot.press("tab")
        assert field.value == "steps.py:step"

    drive(script, screen="plan")


def test_a_file_that_is_named_in_full_is_opened_before_one_that_ends_so(folder):
    for name in ("my_step.txt", "step.txt"):
        (folder / name).write_text(PROGRAM.read_text())

    async def script(pilot):
        await pilot.press("o", *"step.txt", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandDialog))
        assert pilot.app.screen.line == "shardviz hlo step.txt"

    drive(script, screen="plan")


def test_a_name_that_would_move_the_cursor_is_shown_without_that(folder):
    (folder / "a\x1b[31m\nb.txt").write_text(PROGRAM.read_text())

    async def script(pilot):
        await pilot.press("o", "left_square_bracket", "3")
        assert "a?[31m?b.txt" in text_of(pilot.app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandDialog))
        await until(pilot, lambda: "a?[31m?b.txt" in text_of(pilot.app))
        assert "\x1b" not in text_of(pilot.app)

    drive(script, screen="plan")


def test_a_reading_that_is_stopped_leaves_the_list_and_calls_its_ends(monkeypatch):
    ended = threading.Event()

    def reader(_kind, _state, say, end_by):
        end_by(ended.set)
        ended.wait(20)
        say("on")

    monkeypatch.setattr("shardviz.tui.opening.dialog.read_profile", reader)

    async def script(pilot):
        await opened(pilot, "step.xplane.pb")
        await until(pilot, lambda: "reading step.xplane.pb …" in text_of(pilot.app))
        await pilot.press("escape")
        assert ended.is_set()
        await until(pilot, lambda: "stopped; esc closes" in text_of(pilot.app))
        await pilot.app.workers.wait_for_complete()
        await pilot.press("escape")
        assert len(pilot.app.screen_stack) == 1

    drive(script, screen="plan")


def test_texts_open_as_a_problem_or_in_every_notation():
    async def script(pilot):
        app = pilot.app
        await opened(pilot, "P('X', None)")
        assert isinstance(app.screen, TranslationDialog)
        await pilot.pause()
        assert "book" in text_of(app)
        await pilot.press("escape")
        await opened(pilot, "shardviz explain 'ab,bc->ac' --mesh X=4 --specs 'X_,__->X_'")
        assert app.state.history.draft.einsum == "ab,bc->ac"
        await opened(pilot, to_string(Shared(ProblemForm(mesh="X=8"), "layout")))
        await until(pilot, lambda: app.state.area == "layout")
        assert app.state.history.draft.mesh == "X=8"
        await pilot.press("u", "u")
        assert app.state.history.draft == ProblemForm()
        await opened(pilot, "shardviz step psum --mesh i=4")
        await until(pilot, lambda: app.state.area == "step" and "psum over i" in text_of(app))

    drive(script, screen="plan")


def test_a_string_may_open_a_lesson():
    async def script(pilot):
        lesson = course()[0]
        await opened(pilot, to_string(Shared(ProblemForm(), lesson.screen, lesson.name, 2)))
        await until(pilot, lambda: pilot.app.lesson is not None)
        assert pilot.app.lesson.controller.lesson == lesson

    drive(script, screen="plan")


def test_a_machine_file_keeps_the_lesson_open(tmp_path):
    async def script(pilot):
        lesson, file = course()[0], tmp_path / "tpus.toml"
        file.write_text('base = "v5e:2x2"')
        await opened(pilot, to_string(Shared(ProblemForm(), lesson.screen, lesson.name, 0)))
        await until(pilot, lambda: pilot.app.lesson is not None)
        stage = pilot.app.lesson.controller.attempt.stage
        assert stage.kind != "change"
        await opened(pilot, str(file))
        await until(pilot, lambda: pilot.app.state.resolved.draft.machine == str(file))
        assert pilot.app.lesson is not None
        assert pilot.app.lesson.controller.attempt.stage == stage

    drive(script, screen="plan")


class Printer(Mute):
    """A worker whose XLA reads no program of a profile."""

    def module_texts(self, protos):
        found = Future()
        found.set_result([""] * len(protos))
        return found


def test_a_profile_is_a_source_of_the_time_screen():
    async def script(pilot):
        for _ in range(2):
            await opened(pilot, "step.xplane.pb")
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
            assert pilot.app.pane.area == "time"
            await until(pilot, lambda: "❯ profile ✓" in text_of(pilot.app))
            assert pilot.app.pane.timeline is pilot.app.state.profile.profile.timeline
            assert pilot.app.pane.command_line() == "shardviz profile step.xplane.pb"

    drive(script, screen="time", worker=Printer())


WRONG = {
    "nowhere/": "'nowhere/' cannot be read: No such file or directory.",
    "empty/": "No file in 'empty/' has a known name",
    "broken.py:": "'broken.py' has no function that takes a mesh, or is not valid Python",
    "pipe.txt": "'pipe.txt' is a device or a pipe, not a file.",
    "circle.txt": "This is neither a file",
    "cut.xplane.pb": "✗ 'cut.xplane.pb' cannot be read as a profile",
}


def test_whatever_is_wrong_is_one_sentence_in_the_list(folder):
    (folder / "empty").mkdir()
    (folder / "broken.py").write_text("def step(mesh:")
    os.mkfifo(folder / "pipe.txt")
    (folder / "circle.txt").symlink_to("circle.txt")
    (folder / "cut.xplane.pb").write_bytes(PROFILE.read_bytes()[:3000])

    async def script(pilot):
        for text, said in WRONG.items():
            await opened(pilot, text)
            await until(
                pilot, lambda said=said: said in " ".join(text_of(pilot.app).replace("│", " ").split())
            )
            assert isinstance(pilot.app.screen, OpenDialog)
            assert pilot.app.screen.query_one(Input).value == text
            await pilot.press("escape")
            assert len(pilot.app.screen_stack) == 1

    drive(script, screen="plan", worker=Printer())


def test_a_guest_opens_texts_alone():
    async def script(pilot):
        await pilot.press("o")
        assert "step.txt" not in text_of(pilot.app)
        pilot.app.screen.query_one(Input).value = "step.txt"
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, OpenDialog)
        await pilot.press("escape")
        await opened(pilot, "P('X', None)")
        assert isinstance(pilot.app.screen, TranslationDialog)

    drive(script, screen="plan", is_guest=True)


@pytest.mark.parametrize(
    ("words", "allowed", "message"),
    [
        ("--mesh", ("--mesh",), "--mesh has no value"),
        ("--mash X=4", ("--mesh", "--target"), "'--mash' is not an option here"),
        ("--target cpu", ("--mesh",), "'--target' is not an option here"),
        ("--mesh X=4 more", ("--mesh",), "'more' is not an option here"),
    ],
)
def test_an_option_that_cannot_be_is_refused(words, allowed, message):
    with pytest.raises(QuestionError, match=message):
        read_options(words.split(), allowed)


def test_a_profile_has_the_options_of_its_command():
    line = "shardviz profile step.xplane.pb"

    async def script(pilot):
        for options, refused in (
            ("--step no", "'no' is not a step number"),
            ("--device-order 1,0", "Order needs a mesh"),
        ):
            await opened(pilot, f"{line} {options}")
            await until(pilot, lambda refused=refused: refused in text_of(pilot.app))
            await pilot.press("escape")
        await opened(pilot, f"{line} --step 1 --device 0")
        await until(pilot, lambda: pilot.app.pane.command_line() == f"{line} --step 1 --device 0")

    drive(script, screen="time", worker=Printer())


def test_options_are_those_of_the_command_line():
    paths, words = option_words(["a b", "--mesh=X=4", "--machine", "v5e:2x2"])
    found = read_options(words, ("--mesh", "--machine"))
    assert (paths, found) == (["a b"], {"--mesh": "X=4", "--machine": "v5e:2x2"})
