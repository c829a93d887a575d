"""`shardviz export`: the words of other commands, in formats that need no shardviz."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from shardviz.cli.export import EXPORTABLE, FORMS, written
from shardviz.cli.group import COMMANDS, command_named, run
from shardviz.errors import QuestionError
from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.forms.options import form_from_options
from shardviz.forms.resolve import resolve
from shardviz.forms.share import Shared, to_string
from shardviz.lessons.attempt import begin
from shardviz.lessons.course import course, find
from shardviz.render.exports import Subject
from shardviz.user_files import write_file

KINDS = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
}
README = "explain 'bd,df->bf' --mesh X=2,Y=4 --specs 'XY,Y_->X_' --sizes b=8,d=2048,f=8192"
FORM = form_from_options("bd,df->bf", mesh="X=2,Y=4", specs="XY,Y_->X_", sizes="b=8,d=2048,f=8192")
"""What shardviz shows for these words."""
SANDBOX = to_string(Shared(begin(find("detective")).draft, "plan", "detective", 99))
"""A lesson that is not solved yet."""
EXPLAIN = "explain 'bd,df->bf' --specs 'XY,Y_->X_' --sizes b=8,d=16,f=4"
PROGRAM = Path(__file__).parent.parent / "benchmarks" / "programs" / "four_layers.txt"
TIMED = {"plan": f"{EXPLAIN} --time", "program": f"hlo {PROGRAM} --machine v4:2x2x1"}
WORDS = {
    "problem": EXPLAIN,
    "plan": f"{EXPLAIN} --as plan",
    "step of a plan": f"{EXPLAIN} --step 2",
    "rounds": f"--as rounds {EXPLAIN}",
    "collective": "step all_gather --mesh i=4 --data 3,9,5,2",
    "negative": "step all_gather --mesh i=2 --data -3,-9",
    "layout": "layout 8x16 --spec XY --width 60",
    "lesson": "lesson 7",
    "shared": f"--from {to_string(Shared(FORM, 'plan'))}",
    "shared step": f"--from {to_string(Shared(ProblemForm(collective=CollectiveFields('psum')), 'step'))}",
}


def test_the_commands_that_are_named_are_those_that_say_what_an_export_shows():
    said = {name for name in COMMANDS if name != "export" and hasattr(command_named(name), "subject")}
    assert said == {*EXPORTABLE}


@pytest.fixture
def exported(capsys):
    def export(form, words):
        assert run(["export", form, *shlex.split(words)]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return export


def test_a_script_prints_the_collectives_that_shardviz_shows(exported, printed_by, collectives_in):
    """Of plans as programs: tests/codegen."""
    out = printed_by({"": exported("python", README)})[""]
    plan = resolve(FORM).plan
    shown = [(KINDS[step.op], plan.problem.mesh.groups(step.axes)) for step in plan.collectives]
    assert shown
    assert collectives_in(out) == sorted(shown)


def test_every_lesson_becomes_a_program(exported):
    for lesson in course():
        code = exported("python", f"lesson {lesson.number}")
        compile(code, lesson.name, "exec")
        assert "pip install" in code


@pytest.mark.parametrize(
    ("form", "words"),
    [
        *(("python", words) for words in WORDS.values()),
        *((form, WORDS["lesson"]) for form in FORMS[1:-1]),
        *((form, words) for form in ("svg", "trace") for words in TIMED.values()),
        ("svg", WORDS["layout"]),
        ("html", WORDS["rounds"]),
    ],
)
def test_every_format_of_everything(exported, form, words):
    text = exported(form, words)
    assert text.endswith("\n")
    if form == "python":
        compile(text, "script", "exec")
    elif form == "notebook":
        assert json.loads(text)["nbformat"] == 4
    elif form == "svg":
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    elif form == "html":
        assert text.startswith("<!doctype html>")
    else:
        assert {event["ph"] for event in json.loads(text)["traceEvents"]} >= {"M", "X", "s", "f"}


def test_what_is_exported_is_what_the_words_say(exported):
    assert "jax.jit(program, out_shardings" in exported("python", WORDS["problem"])
    assert 'jax.lax.psum(Out, "Y")' in exported("python", WORDS["plan"])
    assert "with the bidirectional-ring algorithm" in exported("python", f"{EXPLAIN} --as rounds")
    assert "with the ring algorithm" in exported("python", f"{EXPLAIN} --as rounds --algorithm ring")
    for name in ("step of a plan", "rounds"):
        assert "def by_hand(shard):" in exported("python", WORDS[name])
    assert "x = jnp.array([-3, -9], dtype=jnp.int32)" in exported("python", WORDS["negative"])
    assert "sharding.devices_indices_map(shape)" in exported("python", WORDS["layout"])
    tpu = exported("python", f"{EXPLAIN} --target v5e:2x4")
    assert '"v5e:2x4", platform="tpu"' in tpu
    assert 'pip install -U "jax[tpu]"' in tpu
    assert f"# In a terminal: shardviz {README}\n" in exported("python", README)
    assert ": Detective" in exported("html", f"--from {SANDBOX}")
    assert "jax.lax.all_gather" in exported("python", f"--as plan --from {SANDBOX}")
    assert 'W4 = place((8192, 2048), P(None, "Y"))' in exported("python", "--as start lesson detective")
    assert "jax.lax.all_gather" not in exported("python", "--as plan lesson detective")


@pytest.mark.parametrize(
    "words",
    [
        "explain --bogus",
        "explain",
        "explain 'bd,df->bf' --specs ''",
        "explain 'bd,df->bf' --specs XY,Y_ --limit x",
        "layout 8x16",
        "layout 8x16 --spec XQ",
        "layout 8y16 --spec XY",
        "step all_gathr",
        "step psum --mesh i=4 --data 1,2,3 --on none",
        "step psum --mesh i=4 --topology moon --on none",
        "lesson nowhere",
    ],
)
def test_a_wrong_word_is_told_as_the_command_tells_it(words, capsys):
    code = run(shlex.split(words))
    alone = capsys.readouterr()
    assert code == 2
    assert run(["export", "python", *shlex.split(words)]) == 2
    assert capsys.readouterr() == alone


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("python", "give either a command or a share string"),
        ("pdf step psum", "'pdf' is not one of 'python'"),
        ("python translate x", "'translate' is not a command that can be exported"),
        (f"python hlo {PROGRAM}", "a timeline cannot be written as python"),
        (f"svg {EXPLAIN} --time --as plan", "--time and --as plan cannot be combined"),
        (f"svg hlo {PROGRAM} --as plan", "hlo has no plan to choose"),
        (f"svg hlo {PROGRAM} --picture", "--picture affects only the terminal"),
        (f"trace {EXPLAIN}", "a trace needs a timeline, which this command does not show"),
        (f"trace {EXPLAIN} --time --machine v9:2x2", "v9"),
        ("python explain 'bd,df->bf'", "an export shows one plan, not a ranking"),
        (
            f"python {EXPLAIN} --target cpu,v5e:2x4",
            "a program is compiled for one target, not for cpu, v5e:2x4",
        ),
        (f"svg {EXPLAIN} --step 2 --as plan", "--step is one step, but --as plan exports all of them"),
        (f"svg {EXPLAIN} --as start", "explain has no start to choose"),
        (f"svg --from {SANDBOX} --as start", "a share string holds a lesson's current state"),
        ("svg explain 'bd,df->bf' --specs X_,_Y --as rounds", "this plan has no collectives"),
        (f"svg {EXPLAIN} --algorithm ring", "--algorithm applies to the rounds of one collective"),
        (f"svg {EXPLAIN} --latency 1us", "--latency applies to the rounds of one collective"),
        ("svg lesson 7 --present", "--present affects only the terminal"),
        ("python lesson", "an export needs one lesson"),
        (f"svg --from {to_string(Shared(ProblemForm(), lesson='nope'))}", "there is no lesson 'nope'"),
        ("python --from shardviz1-AAAA", "the shared string was cut or altered on its way"),
        ("python step psum --force", "--force needs a file to write"),
        ("python step psum -o .", "'.' is a folder"),
        ("python layout 7x16 --spec X_", "JAX places no array that its axes do not divide"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["export", *shlex.split(words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 2
    assert err.splitlines()[1].startswith("hint: ")


def test_a_program_of_its_own_has_no_picture():
    asked = Subject("print(1)\n", "one")
    assert written(asked, None, "python").endswith("print(1)\n")
    with pytest.raises(QuestionError, match="a program cannot be written as svg"):
        written(asked, None, "svg")


def test_a_file_that_exists_is_kept_unless_it_may_go(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("gather.py")
    file.write_text("mine")
    words = ["export", "python", "step", "all_gather", "-o", "gather.py"]
    assert run(words) == 2
    assert "the file 'gather.py' already exists" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert run([*words, "--force"]) == 0
    assert capsys.readouterr().out == f"gather.py: {file.stat().st_size:,} bytes\n"
    assert file.read_text().startswith('"""all_gather over X, Y')
    assert [path.name for path in tmp_path.iterdir()] == ["gather.py"]


def test_a_hyphen_is_standard_output_and_a_pipe_or_device_is_never_replaced(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["export", "python", "step", "all_gather", "-o"]
    assert run([*words, "-"]) == 0
    assert capsys.readouterr().out.startswith('"""all_gather over X, Y')
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    for name in ("pipe", "link"):
        assert run([*words, name, "--force"]) == 2
        assert "is a device or a pipe, not a file" in capsys.readouterr().err
        assert Path(name).is_fifo()
    with pytest.raises(QuestionError, match="is a device or a pipe, not a file"):
        write_file(Path("link"), "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


SWEPT = "sweep 'bd,df->bf' b=1Ki:1Mi --specs 'X_,X_->X_'"
VARIED = "explain 'bd,df->bf' --specs 'X_,X_->X_' --vary b=1Ki:1Mi"


def test_a_chart_over_sizes(exported):
    assert "compute takes longer from b = 4,378" in exported("svg", VARIED)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"python {SWEPT}", "a sweep is a chart, and python is a program"),
        (f"svg --as plan {SWEPT}", "sweep has no plan to choose"),
        (f"svg --as plan {VARIED}", "--vary and --as plan cannot be combined"),
        (f"svg {VARIED} --step 1", "--vary and --step cannot be combined"),
        (f"svg {VARIED} --time", "--vary and --time cannot be combined"),
    ],
)
def test_a_chart_over_sizes_is_no_program_and_no_plan(capsys, words, said):
    assert run(["export", *shlex.split(words)]) == 2
    assert said in capsys.readouterr().err
