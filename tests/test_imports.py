"""What is loaded when: start-up time is a feature, and the compilers live in another process.

Each claim is proved in a fresh interpreter, and one test proves that the proof can fail.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

HEAVY = ("jax", "jaxlib", "numpy", "textual", "rich", "click")
COMPILERS = ("jax", "jaxlib")


def loaded_by(statement: str, names: tuple[str, ...] = HEAVY) -> set[str]:
    """Which of the packages `names` a fresh interpreter has loaded after a statement."""
    code = f"""
import sys
{statement}
print('loaded:', *({{name.partition('.')[0] for name in sys.modules}} & {set(names)!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("loaded:")[2].split())


PURE = (
    "shardviz",
    "shardviz.errors",
    "shardviz.sharding",
    "shardviz.notation",
    "shardviz.notation.notations",
    "shardviz.planner",
    "shardviz.planner.pricing.costs",
    "shardviz.timeline.of_plan",
    "shardviz.collectives",
    "shardviz.collectives.operations",
    "shardviz.hardware",
    "shardviz.devices.fitting",
    "shardviz.devices.question",
    "shardviz.models.answer",
    "shardviz.hlo",
    "shardviz.compare",
    *(
        f"shardviz.documents.{name}"
        for name in ("course", "machines", "plans", "programs", "rounds", "summaries")
    ),
    "shardviz.stepping",
    "shardviz.stepping.question",
    "shardviz.devices.job",
    "shardviz.compiler",
    "shardviz.targets",
    "shardviz.forms.resolve",
    "shardviz.forms.axis_edits",
    "shardviz.forms.command_line",
    "shardviz.forms.state_file",
    "shardviz.testing",
)


CLIENT = "from shardviz.compiler import Worker; from shardviz.targets import TARGETS, parse_targets"
DRAFT = """
from shardviz.forms.command_line import to_command_line
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.forms.summary import summary
summary(resolve(ProblemForm())); to_command_line(ProblemForm())"""


def check_together(statements: Iterable[str], allowed: set[str]) -> None:
    """Statements load no more than that, all in one interpreter; where they do, it is said which."""
    together = loaded_by("\n".join(statements))
    assert together <= allowed, {each: loaded_by(each) for each in statements}


def test_pure_rooms_the_client_of_the_compilers_and_a_draft_load_the_standard_library_alone() -> None:
    check_together([*(f"import {module}" for module in PURE), CLIENT, DRAFT], set())


TEXT = "HloModule m\n\nENTRY %main (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8]{0} parameter(0)\n}\n"


STATEMENTS = [
    "from shardviz import *",
    "shardviz.testing",
    f"report = shardviz.read_hlo({TEXT!r}); assert report.collectives == ()",
    f"shardviz.testing.assert_collectives(shardviz.read_hlo({TEXT!r}), others=0)",
    "shardviz.explain('bd,df->bf', specs='XY,Y_', target='none')",
    "shardviz.rank('bd,df->bf')",
    "shardviz.model('gpt2', rules='fsdp', mesh='data=4', backward=False)",
]


def test_the_python_interface_loads_no_more_than_it_needs() -> None:
    check_together([f"import shardviz; {statement}" for statement in STATEMENTS], set())


def test_showing_an_answer_loads_rich_and_no_compiler() -> None:
    shown = "repr(shardviz.explain('bd,df->bf', specs='XY,Y_->X_', target='shardy'))"
    assert loaded_by(f"import shardviz; {shown}") <= {"rich", "numpy"}


def run(*words: str) -> str:
    return f"from shardviz.cli.group import run; assert run({list(words)!r}) == 0"


PROGRAM = str(Path(__file__).parents[1] / "shardviz" / "examples" / "mlp.txt")
QUESTION = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--target", "none")


COMMANDS = {
    "click": [
        *([*words, "--help"] for words in ((), ("explain",), ("passes",), ("step",), ("hlo",))),
        *([name, "--help"] for name in ("search", "measure", "model")),
        ("--version",),
        ("translate", "XY", "--to", "book"),
        ("schema", "explain"),
    ],
    "click rich": [
        QUESTION,
        (*QUESTION, "--json"),
        ("sweep", "bd,df->bf", "d=1Ki:4Ki", "--specs", "XY,Y_->X_"),
        ("layout", "8x8", "--spec", "XY"),
        ("info",),
        ("export", "svg", "explain", "bd,df->bf", "--specs", "XY,Y_->X_"),
        ("hlo", PROGRAM, "--json"),
        ("hlo", PROGRAM, "--picture"),
        ("targets",),
        ("model", "gpt2", "--rules", "fsdp", "--mesh", "data=4", "--no-backward"),
    ],
    "click rich numpy": [("step", "psum", "--mesh", "i=4", "--on", "none")],
}


@pytest.mark.parametrize("allowed", COMMANDS)
def test_commands_load_what_they_need(allowed: str) -> None:
    check_together([run(*words) for words in COMMANDS[allowed]], set(allowed.split()))


def rooms_loaded_by(words: tuple[str, ...]) -> set[str]:
    """The rooms, and the commands, of which a command line has loaded a module: not those of which a lazy
    import has only noted where they are."""
    code = f"""
import sys
from types import ModuleType
{run(*words)}
loaded = {{name: each for name, each in sys.modules.items() if type(each) is ModuleType}}
files = [name for name in loaded if name[:9] == "shardviz." and not hasattr(loaded[name], "__path__")]
print("loaded:", *{{part for name in files for part in name.split(".")[1:]}})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("loaded:")[2].split())


def test_a_plan_alone_loads_no_reader_of_compiled_programs() -> None:
    found = rooms_loaded_by(QUESTION)
    assert "planner" in found
    assert not {"compare", "hlo", "collectives", "step"} & found


@pytest.mark.parametrize("words", [("explain", "--help"), ("export", "--help"), ("schema", "explain")])
def test_help_and_schemas_load_no_room_that_answers(words: tuple[str, ...]) -> None:
    """The shell asks the same modules for completions at each press of the key."""
    assert not {"hlo", "hardware", "stepping", "lessons"} & rooms_loaded_by(words)


def test_the_first_screen_loads_textual_and_no_other_screen() -> None:
    opened = "from shardviz.tui.app import ShardvizApp; ShardvizApp(); import shardviz.tui.layout_pane, sys"
    assert loaded_by(f"{opened}; assert 'shardviz.collectives' not in sys.modules") == {"textual", "rich"}
    panes = "sorted(name for name in sys.modules if name.endswith('pane'))"
    assert loaded_by(f"{opened}; assert {panes} == ['shardviz.tui.layout_pane', 'shardviz.tui.pane']")


def test_the_compilers_are_not_loaded_here_even_when_they_are_asked() -> None:
    words = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--target", "shardy")
    assert not loaded_by(run(*words), COMPILERS)


def test_the_proof_can_fail() -> None:
    assert loaded_by("import rich.text, click, jax") >= {"numpy", "rich", "click", "jax"}
