"""`shardviz program`: a file's function on targets, its page, its JSON, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shardviz.cli.group import run
from shardviz.targets import EXTRAS

FILE = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

print("said by the file")

def mlp(params, x):
    return jnp.tanh(x @ params["w_in"]) @ params["w_out"]

def step(mesh):
    def split(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))
    params = {"w_in": split((256, 512), None, "model"), "w_out": split((512, 256), "model", None)}
    return mlp, params, split((64, 256), "data", None)

def refused(mesh):
    function, params, x = step(mesh)
    return function, params, jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, P()))

def waits(mesh):
    print("waiting", flush=True)
    import time
    time.sleep(600)
"""
MESH = ("--mesh", "data=2,model=4")
needs_libtpu = pytest.mark.skipif(not EXTRAS["tpu"].installed, reason="the extra tpu is not installed")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


@pytest.mark.usefixtures("file")
def test_every_array_has_its_row(capfd):
    assert run(["program", "mine.py:step", *MESH, "--arrays", "--width", "40"]) == 0
    out = capfd.readouterr().out
    assert max(map(len, out.splitlines())) <= 40
    words = " ".join(out.split())
    assert "arguments 144 KiB per device" in words
    assert "params['w_in'] bf16 256×512 _ model 64 KiB 2" in words
    assert run(["program", "mine.py:step", *MESH, "--arrays", "--json"]) == 0
    (target,) = json.loads(capfd.readouterr().out)["targets"]
    rows = [(one["name"], one["spec"], one["bytes_per_device"]) for one in target["program"]["arrays"]]
    assert ("params['w_in']", [[], ["model"]], 65536) in rows
    assert run(["program", "mine.py:step", *MESH, "--arrays", "--time"]) == 2
    assert "--arrays and --time cannot be combined" in capfd.readouterr().err


BOXED = """
class Box:
    def __init__(self, value, names):
        self.value, self.names = value, names

keys = lambda box: (((jax.tree_util.GetAttrKey("value"), box.value),), box.names)
jax.tree_util.register_pytree_with_keys(Box, keys, lambda names, values: Box(*values, names))

def boxed(mesh):
    function, params, x = step(mesh)
    boxes = {"w_in": Box(params["w_in"], ("embed", "mlp")), "w_out": Box(params["w_out"], ("mlp", None))}
    return lambda params, x: mlp({name: box.value for name, box in params.items()}, x), boxes, x
"""


def test_rules_name_the_arrays_and_what_is_not_as_they_say(file, capfd):
    file.write_text(FILE + BOXED)
    Path("rules.toml").write_text("[rules]\n'params/w_in' = 'data model'\nw_out = 'model _'\n")
    Path("base.yml").write_text("logical_axis_rules: [[embed, [data, fsdp]], [mlp, model]]\n")
    Path("wrong.toml").write_text("[rules]\nw_in = 'tensor _'\n")
    words = ["program", "mine.py:step", *MESH, "--arrays"]
    for name, rules, first, second in (
        ("step", "rules.toml", "params/w_in", "w_out"),
        ("boxed", "base.yml", "embed → data,fsdp, mlp → model", "mlp → model"),
    ):
        words[1] = f"mine.py:{name}"
        assert run([*words, "--rules", rules]) == 0
        said = " ".join(capfd.readouterr().out.split())
        assert f" ({first}) bf16 256×512 _ model" in said
        assert f" ({second}) bf16 512×256 model _" in said
        assert said.count("off rule: ") == 1
        assert "it is P(None, 'model'), and the rule says P('data', 'model')" in said
    for refused, error in (
        ([*words, "--rules", "wrong.toml"], "unknown mesh axis 'tensor'"),
        ([*words[:-1], "--rules", "base.yml"], "--rules is about arrays"),
        ([*words, "--rules", "nowhere.yml"], "'nowhere.yml': the file does not exist"),
    ):
        assert run(refused) == 2
        assert error in capfd.readouterr().err


@pytest.mark.usefixtures("file")
def test_one_target_has_the_page_of_hlo(capfd):
    assert run(["program", "mine.py:step", *MESH, "--width", "80"]) == 0
    out, err = capfd.readouterr()
    assert err == "said by the file\n"
    assert out.startswith("cpu  compiled in ")
    assert "all-reduce model" in out
    assert "mine.py:8" in out
    assert "XLA for CPU computes bf16 as f32" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.usefixtures("file")
def test_changes_that_jax_accepts_are_priced(capfd):
    words = ["program", "mine.py:refused", *MESH, "--axis-types", "explicit"]
    assert run([*words, "--width", "40"]) == 2
    out, err = capfd.readouterr()
    assert max(map(len, out.splitlines())) <= 40
    said = " ".join(out.split())
    assert "mine.py:8 jnp.tanh(x @ params['w_in']) @ params['w_out']" in said
    assert "bf16[64, 512_model] bf16[512_model, 256]" in said
    accepted = "jnp.matmul(jnp.tanh(x @ params['w_in']), params['w_out'], out_sharding=P(None, None))"
    assert accepted in said
    # The all-reduce of f32[64,256] over 4 devices: each sends 2 · 3/4 of its bytes; CPUs sum in f32.
    assert "96 KiB" in said
    assert "hint: JAX accepts jnp.matmul(" in err
    assert run([*words, "--json"]) == 2
    out, err = capfd.readouterr()
    found = json.loads(out)
    assert found["kind"] == "refusal"
    assert [each["code"] for each in found["changes"][:1]] == re.findall("hint: JAX accepts (.*), the ", err)
    assert found["changes"][0]["sent_bytes"] == 96 * 1024
    assert found["changes"][0]["peak_bytes"] > 0


@needs_libtpu
@pytest.mark.usefixtures("file")
def test_several_targets_with_one_that_cannot(capfd):
    words = ["program", "mine.py:step", *MESH, "--target", "v5e:2x4,v5p:4x4x4,cpu"]
    assert run([*words, "--json"]) == 2
    out, err = capfd.readouterr()
    found = json.loads(out)
    assert [each["status"] for each in found["targets"]] == ["ok", "unavailable", "ok"]
    tpu, large, cpu = found["targets"]
    assert [(each["op"], each["axes"]) for each in tpu["program"]["collectives"]] == [
        ("all-reduce", ["model"])
    ]
    assert tpu["seconds"] > 0
    assert tpu["live_memory"]["limit_bytes"] > tpu["live_memory"]["peak_bytes"] > 0
    assert large["program"] is cpu["placement"] is cpu["seconds"] is None
    assert "v5p:4x4x4 has 64 devices" in err
    assert run([*words, "--machine", "v5e:2x4"]) == 2
    page = capfd.readouterr().out
    assert len([line for line in page.splitlines() if " KiB " in line]) >= 2
    assert "v5p:4x4x4 ✗" in page


@needs_libtpu
@pytest.mark.usefixtures("file")
def test_times_and_options(capfd):
    words = ["program", "mine.py:step", *MESH, "--target", "v5e:2x4"]
    assert run([*words, "--time", "-v", "--option", "xla_enable_async_all_gather=true"]) == 0
    page = capfd.readouterr().out
    assert "jit_mlp on v5e:2x4: " in page
    assert "peak memory: " in page
    assert run([*words, "--option", "--xla_no_such=1"]) == 3
    assert "No such compile option: 'xla_no_such'" in capfd.readouterr().err


@needs_libtpu
def test_what_avoids_a_collective_of_a_tpu_is_tried_on_shardy(file, capfd):
    """It is the program that was lowered for the TPU: the file is run for no other."""
    hidden = 'jnp.tanh(x @ params["w_in"])'
    text = FILE.replace(hidden, f'jax.lax.with_sharding_constraint({hidden}, P("data"))')
    file.write_text(text.replace("(64, 256)", "(8192, 256)"))
    assert run(["program", "mine.py:step", *MESH, "--target", "v5e:2x4", "--why"]) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "superfluous constraint: mine.py:8: " in out
    assert "instead: delete x = jax.lax.with_sharding_constraint(x, P('data', None)) a run takes " in out


@pytest.mark.usefixtures("file")
def test_what_the_options_cannot_change_is_noted(capfd, tmp_path):
    """Another mesh than the file's own, and a machine that cannot hold it, make no difference in silence."""
    own = "jax.sharding.Mesh(mesh.devices[:, :2], mesh.axis_names, axis_types=mesh.axis_types)"
    text = FILE.replace("def step(mesh):", f"def step(mesh):\n    mesh = {own}")
    (tmp_path / "own.py").write_text(text)
    kept = tmp_path / "kept.json"
    words = ["own.py:step", *MESH, "--machine", "v5e:4x4", "--save", str(kept)]
    assert run(["program", *words]) == 0
    err = capfd.readouterr().err
    assert "note: step makes the mesh data=2,model=2, and does not use data=2,model=4, which" in err
    assert "note: cpu: no seconds: v5e:4x4 has 16 devices, but the mesh data=2,model=2 has 4" in err
    # The report is kept whole, with the compiler's account of memory.
    found = json.loads(kept.read_text())
    assert (found["kind"], found["mesh"], found["seconds"]) == ("summary", {"data": 2, "model": 2}, None)
    assert found["memory_bytes"] > 0
    assert [each["op"] for each in found["collectives"]] == ["all-reduce"]


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mine.py:step"], "a function needs a mesh"),
        (["mine.py:stop", *MESH], "has no function stop"),
        (["mine.py:step", *MESH, "--target", "none"], "a program needs a target"),
        (["mine.py:step", *MESH, "--option", "xla"], "'xla' is not an option with its value"),
        (["mine.py:step", *MESH, "--machine", "v99"], "v99"),
        (
            ["mine.py:step", *MESH, "--target", "cpu,shardy", "--save", "x.json"],
            "--save needs one target",
        ),
        (["mine.py:step", *MESH, "--save", "mine.py"], "'mine.py' holds something else"),
        (
            ["mine.py:step", *MESH, "--target", "cpu,shardy", "--why"],
            "--why needs one target",
        ),
        (["mine.py:step", *MESH, "--why", "--time"], "--why and --time cannot be combined"),
        (["mine.py:step", "--mesh", "data=2,model"], "model"),
    ],
)
def test_wrong_questions(words, said, capfd):
    assert run(["program", *words]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert said in err
    assert "hint: " in err


def test_an_interrupt_ends_the_files_process(file):
    command = [sys.executable, "-m", "shardviz", "program", f"{file}:waits", *MESH]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        while "waiting" not in process.stderr.readline():
            assert process.poll() is None
        started = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        # The pipe closes when the last process that has it is gone.
        assert process.stderr.read().count("Traceback") == 0
        assert process.wait(60) == 130
    assert time.monotonic() - started < 120
