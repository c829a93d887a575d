"""`check_baseline` and the plugin of pytest on real compiles, on a user's machine and on a CI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shardviz.testing.outcomes import RENEWED, BaselineChanged

STEP = """
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
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
from shardviz.testing import check_baseline
from step import PARAMS, X, mlp


def test_the_step_costs_what_it_did():
    check_baseline(mlp, PARAMS, X, path="baselines/step.json"{more})
"""
CLEAN = {"CI", "SHARDVIZ_UPDATE", "PYTEST_ADDOPTS", "XLA_FLAGS"}


@pytest.fixture
def repository(tmp_path):
    write(tmp_path)
    return tmp_path


def write(folder, step=STEP, more=""):
    (folder / "step.py").write_text(step, encoding="utf-8")
    (folder / "test_step.py").write_text(TEST.replace("{more}", more), encoding="utf-8")


def run_pytest(folder, *options, **environment):
    """Run a user's tests in a fresh process: the exit code and the output."""
    given = {name: value for name, value in os.environ.items() if name not in CLEAN}
    given |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(folder),
        "COLUMNS": "100",
        **environment,
    }
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


@pytest.mark.slow
def test_a_program_of_a_repository_from_the_first_run_to_a_change(repository):
    kept = repository / "baselines" / "step.json"

    # A CI cannot commit what it writes.
    code, out = run_pytest(repository, CI="true")
    assert code == 1
    assert "there is no baseline baselines/step.json: run the test on your own machine, and commit" in out
    assert not kept.exists()

    code, out = run_pytest(repository)
    assert code == 0
    assert "= shardviz baselines =" in out
    assert "baselines/step.json: written for the first time, commit it" in out
    first = kept.read_bytes()
    (line,) = json.loads(first)["collectives"]
    assert (line["op"], line["axes"], line["runs"], line["wire_bytes"]) == ("all-reduce", ["model"], 1, 3072)

    # The same program, some lines further down and by other names of variables, is as it was.
    write(repository, "# A remark.\n\n" + STEP.replace("hidden", "inner"))
    code, out = run_pytest(repository, CI="true")
    assert code == 0
    assert "shardviz baselines" not in out
    kept.unlink()
    assert run_pytest(repository)[0] == 0
    assert kept.read_bytes() == first

    write(repository, CARELESS)
    code, out = run_pytest(repository, CI="true")
    assert code == 1
    section = out[out.index("shardviz: the program and its baseline") :]
    assert "\n+ added: all-gather over model  f32[8,32]→[8,128], ×1, 3 KiB sent\n" in section
    assert "step.py:" in section
    assert "\nsent by a device   3 KiB  6 KiB  +100.0 %\n" in section
    assert "the program is not as baselines/step.json has it; if it should be so, run again with" in out
    assert kept.read_bytes() == first

    # Within the limits of the user.
    write(repository, CARELESS, ', fail_on="bytes+100%"')
    assert run_pytest(repository)[0] == 0
    write(repository, CARELESS, ', fail_on="new-collective,bytes+1%"')
    code, out = run_pytest(repository)
    assert code == 1
    assert "✗ all-gather over model is new\n" in out
    assert "✗ bytes rise from 3 KiB to 6 KiB, 100.0 % more: the limit is bytes+1%\n" in out

    code, out = run_pytest(repository, "--shardviz-update")
    assert code == 0
    assert "baselines/step.json: written anew" in out
    assert kept.read_bytes() != first
    assert run_pytest(repository, CI="true")[0] == 0

    write(repository)
    assert run_pytest(repository, SHARDVIZ_UPDATE="1")[0] == 0
    assert kept.read_bytes() == first

    kept.write_text("{\n<<<<<<< HEAD\n", encoding="utf-8")
    code, out = run_pytest(repository)
    assert code == 1
    assert "step.json': line 2, column 1: Expecting property name enclosed in double quotes" in out


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

    import shardviz

    project = Path(shardviz.__file__).parent.parent / "pyproject.toml"
    points = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"]["pytest11"]
    assert points == {"shardviz": "shardviz.testing.pytest_plugin"}


def test_another_mesh_is_another_program(tmp_path, monkeypatch, capsys):
    import shardviz
    from shardviz.testing import check_baseline

    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)
    text = (Path(__file__).parent.parent / "render" / "program.txt").read_text(encoding="utf-8")
    path = tmp_path / "program.json"
    check_baseline(shardviz.read_hlo(text, "X=2,Y=4"), path=path)
    assert capsys.readouterr().err == f"shardviz: '{path}' is written for the first time, commit it\n"
    assert RENEWED.take() == [(str(path), "written for the first time, commit it")]
    check_baseline(shardviz.read_hlo(text, "X=2,Y=4"), path=path)
    with pytest.raises(BaselineChanged) as raised:
        check_baseline(shardviz.read_hlo(text, "A=2,B=4"), path=path, fail_on="bytes+900%")
    assert "\nanother mesh: X=2,Y=4 → A=2,B=4\n" in str(raised.value)
    assert RENEWED.take() == []
