"""`check_baseline` on real compiles, on a user's machine and on a CI, and the plugin of pytest."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import shardviz
from shardviz.errors import QuestionError
from shardviz.testing import check_baseline
from shardviz.testing.assertions import RENEWED, BaselineChanged
from shardviz.user_files import EXAMPLES

PROGRAMS = Path(__file__).parent.parent / "benchmarks" / "programs"
STEP = """
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

DEVICES = np.array(jax.devices()[:8]).reshape(2, 4)
MESH = jax.sharding.Mesh(DEVICES, ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def split(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, P(*spec)))


def by_batch(x):
    return lax.with_sharding_constraint(x, NamedSharding(MESH, P("data", None)))


def mlp(params, x):
    hidden = jnp.tanh(x @ params["w_in"])
    return by_batch(hidden @ params["w_out"])


PARAMS = {"w_in": split((64, 128), None, "model"), "w_out": split((128, 64), "model", None)}
X = split((16, 64), "data", None)
"""
CARELESS = STEP.replace('jnp.tanh(x @ params["w_in"])', 'by_batch(jnp.tanh(x @ params["w_in"]))')
TEST = """
from pathlib import Path

import shardviz
from shardviz.testing import check_baseline


def check(name):
    text = Path("{program}").read_text(encoding="utf-8")
    check_baseline(shardviz.read_hlo(text), path=f"baselines/{{name}}.json")


def test_the_step_costs_what_it_did():
    check("step")


def test_a_new_step():
    check("new")
"""
CLEAN = {"CI", "SHARDVIZ_UPDATE", "PYTEST_ADDOPTS", "XLA_FLAGS"}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The folder of a user, who has set nothing."""
    for name in ("CI", "SHARDVIZ_UPDATE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(step=STEP, **more):
    """The check of a user's test, whose program is in step.py. The file of this test is not theirs."""
    path = Path("step.py").resolve()
    path.write_text(step, encoding="utf-8")
    found = runpy.run_path(str(path))
    check_baseline(
        found["mlp"], found["PARAMS"], found["X"], path=path.parent / "baselines/step.json", **more
    )


def failure(step=STEP, **more):
    with pytest.raises(BaselineChanged) as raised:
        check(step, **more)
    return str(raised.value)


def test_a_program_of_a_repository_from_the_first_run_to_a_change(repository, monkeypatch, capsys):
    kept = repository / "baselines" / "step.json"

    # A CI cannot commit what it writes.
    monkeypatch.setenv("CI", "true")
    with pytest.raises(
        AssertionError, match=r"there is no baseline baselines/step\.json: run the test on"
    ) as no:
        check()
    assert [Path(entry.path) for entry in no.traceback if not entry.ishidden(no)] == [Path(__file__)] * 2
    assert not kept.exists()

    monkeypatch.delenv("CI")
    check()
    said = "'baselines/step.json' is written for the first time, commit it"
    assert capsys.readouterr().err == f"shardviz: {said}\n"
    first = kept.read_bytes()
    (line,) = json.loads(first)["collectives"]
    assert (line["op"], line["axes"], line["runs"], line["wire_bytes"]) == ("all-reduce", ["model"], 1, 3072)

    # The same program, some lines further down and by other names of variables, is as it was.
    monkeypatch.setenv("CI", "true")
    check("# A remark.\n\n" + STEP.replace("hidden", "inner"))
    assert capsys.readouterr().err == ""

    assert (
        failure(CARELESS)
        == """\
the program differs from baselines/step.json; to accept the changes, run again with SHARDVIZ_UPDATE=1

                 before  after
sent per device   3 KiB  6 KiB  +100.0 %

1 change

+ added: all-gather over model  f32[8,32]→[8,128], ×1, 3 KiB sent
    step.py:21
mesh data=2,model=4"""
    )
    assert kept.read_bytes() == first

    # A parameter that is no longer split, in a program that sends the same.
    out = failure(STEP.replace('split((64, 128), None, "model")', "split((64, 128))"))
    assert "\n≠ params['w_in'] f32[64,128]: P(None, 'model') before, P(None, None) now\n" in out

    # Within the limits of the user.
    check(CARELESS, fail_on="bytes+100%")
    out = failure(CARELESS, fail_on="new-collective,bytes+1%")
    assert "\n✗ all-gather over model is new\n" in out
    assert "\n✗ bytes rise from 3 KiB to 6 KiB, 100.0 % more: the limit is bytes+1%\n" in out

    monkeypatch.setenv("SHARDVIZ_UPDATE", "1")
    check(CARELESS)
    assert capsys.readouterr().err == "shardviz: 'baselines/step.json' is written anew\n"
    assert kept.read_bytes() != first
    check("\n" + STEP)
    assert kept.read_bytes() == first
    monkeypatch.delenv("SHARDVIZ_UPDATE")

    kept.write_text("{\n<<<<<<< HEAD\n", encoding="utf-8")
    with pytest.raises(QuestionError, match="line 2, column 1: Expecting property name enclosed in double"):
        check()
    assert RENEWED == {"baselines/step.json": "written anew"}
    RENEWED.clear()


def test_wrong_questions(repository):
    with pytest.raises(
        QuestionError, match="'seconds\\+5%' is a limit of seconds, and no machine is named"
    ) as no:
        check(fail_on="bytes+5%,seconds+5%")
    assert no.value.hint == "give target='v5e:4x4'"
    report = shardviz.read_hlo((PROGRAMS / "four_layers.txt").read_text(encoding="utf-8"))
    with pytest.raises(QuestionError, match="a report is of a program that is compiled already"):
        check_baseline(report, path=repository / "step.json", target="v5e:4x4")
    assert [each.name for each in repository.iterdir()] == ["step.py"]


def run_pytest(folder, *options, **environment):
    """Run a user's tests in a fresh process: the exit code and the output."""
    given = {name: value for name, value in os.environ.items() if name not in CLEAN}
    given |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "100", **environment}
    words = [sys.executable, "-m", "pytest", "-p", "shardviz.testing.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*words, "--rootdir", str(folder), *options, "test_step.py"],
        cwd=folder,
        env=given,
        capture_output=True,
        text=True,
        timeout=240,
    )
    return done.returncode, done.stdout


@pytest.fixture
def changed_step(repository):
    """Tests of a program that has changed since its baseline was written, and of one without a baseline."""
    old, new = PROGRAMS / "four_layers.txt", PROGRAMS / "four_layers_async.txt"
    report = shardviz.read_hlo(old.read_text(encoding="utf-8"))
    check_baseline(report, path=repository / "baselines" / "step.json")
    RENEWED.clear()
    (repository / "test_step.py").write_text(TEST.format(program=new.as_posix()), encoding="utf-8")
    return repository


def test_the_plugin_shows_what_has_changed_and_what_is_written(changed_step):
    code, out = run_pytest(changed_step, "-p", "xdist", "-n", "1", "--show-capture=no")
    assert code == 1
    assert (
        "E       shardviz.testing.assertions.BaselineChanged: the program differs from baselines/step.json"
        in out
    )
    section = out[out.index(" shardviz: the program and its baseline -") :]
    assert "\n\n1 change\n\n↓ more overlapped: all-gather over " in section
    assert out.count("more overlapped") == 1
    written = out[out.index("= shardviz baselines =") :]
    assert "\nbaselines/new.json: written for the first time, commit it\n=" in written


def test_the_variable_writes_anew(changed_step):
    code, out = run_pytest(changed_step, SHARDVIZ_UPDATE="1")
    assert code == 0
    assert "\nbaselines/step.json: written anew\n" in out
    assert "\nbaselines/new.json: written for the first time, commit it\n" in out


def test_the_start_of_pytest_loads_nothing_heavy(tmp_path):
    (tmp_path / "test_step.py").write_text(
        "import sys\n\n\ndef test_what_is_loaded():\n"
        "    heavy = {'jax', 'jaxlib', 'numpy', 'rich', 'textual', 'click'}\n"
        "    assert heavy & {name.partition('.')[0] for name in sys.modules} == set()\n"
        "    assert 'shardviz.testing.pytest_plugin' in sys.modules\n"
        "    assert 'shardviz.api' not in sys.modules\n",
        encoding="utf-8",
    )
    code, out = run_pytest(tmp_path)
    assert code == 0, out


def test_pytest_finds_the_plugin():
    import tomllib

    project = Path(shardviz.__file__).parent.parent / "pyproject.toml"
    points = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"]["pytest11"]
    assert points == {"shardviz": "shardviz.testing.pytest_plugin"}


def test_another_mesh_is_another_program(repository, capsys):
    text = (EXAMPLES / "mlp.txt").read_text(encoding="utf-8")
    path = repository / "program.json"
    check_baseline(shardviz.read_hlo(text, "X=2,Y=4"), path=path)
    assert capsys.readouterr().err == "shardviz: 'program.json' is written for the first time, commit it\n"
    assert RENEWED == {"program.json": "written for the first time, commit it"}
    RENEWED.clear()
    check_baseline(shardviz.read_hlo(text, "X=2,Y=4"), path=path)
    with pytest.raises(BaselineChanged) as raised:
        check_baseline(shardviz.read_hlo(text, "A=2,B=4"), path=path, fail_on="bytes+900%")
    assert "\nanother mesh: X=2,Y=4 → A=2,B=4\n" in str(raised.value)
    assert RENEWED == {}
