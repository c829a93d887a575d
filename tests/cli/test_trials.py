"""`shardviz program --try`: combinations of values, compiled and ranked, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from shardviz.cli.group import run
from shardviz.targets import EXTRAS

FILE = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

def layer(x, w):
    return jnp.tanh(x @ w["up"]) @ w["down"] + x, None

def step(mesh, batch=64, remat="nothing_saveable"):
    if batch == 7:
        raise ValueError("7 is not a batch")
    def split(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))
    up, down = split((4, 64, 256), None, "data", "model"), split((4, 256, 64), None, "model", "data")
    policy = getattr(jax.checkpoint_policies, remat)
    def loss(params, x):
        found, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy), x, params)
        return jnp.sum(found.astype(jnp.float32))
    return jax.jit(jax.grad(loss)), {"up": up, "down": down}, split((batch, 64), "data")
"""
QUESTION = ("mine.py:step", "--mesh", "data=2,model=2")
REMATS = ("nothing_saveable", "everything_saveable")


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


def jaxs_own(batch, remat):
    """The memory of a device by JAX's own account, whose peak lacks the temporaries on CPUs."""
    module: dict = {}
    exec(FILE, module)
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
    function, *arguments = module["step"](mesh, batch, remat)
    stats = function.lower(*arguments).compile().memory_analysis()
    held = stats.argument_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes
    return held + stats.temp_size_in_bytes


def test_memory_is_that_of_jax_and_a_bad_combination_is_a_row(capfd):
    tried = ["--try", "batch=1024,7", "--try", f"remat={','.join(REMATS)}", "--machine", "v5e:2x2"]
    assert run(["program", *QUESTION, *tried, "--json"]) == 0
    trials = json.loads(capfd.readouterr().out)["trials"]
    good, bad = trials[:2], trials[2:]
    found = {(int(one["values"]["batch"]), one["values"]["remat"]): one for one in good}
    assert {key: one["live_memory"]["peak_bytes"] for key, one in found.items()} == {
        (1024, remat): jaxs_own(1024, remat) for remat in REMATS
    }
    saved, kept = (found[1024, remat]["live_memory"]["peak_bytes"] for remat in REMATS)
    assert saved < kept
    assert all(one["sample_seconds"] == one["seconds"] / batch for (batch, _), one in found.items())
    assert [one["sample_seconds"] for one in good] == sorted(one["sample_seconds"] for one in good)
    assert {one["values"]["batch"] for one in bad} == {"7"}
    assert all("mine.py:10: ValueError: 7 is not a batch" in one["error"] for one in bad)


def test_an_option_that_is_refused_is_a_row_and_the_table_is_a_picture(capfd):
    words = [*QUESTION, "--try", "option=xla_cpu_enable_fast_math=true", "--try", "option=xla_none=1,2"]
    assert run(["program", *words]) == 3
    page = " ".join(capfd.readouterr().out.split())
    names = ", ".join(f"xla_cpu_enable_fast_math=true xla_none={value}" for value in "12")
    assert f"✗ {names}: INVALID_ARGUMENT: No such compile option: 'xla_none'" in page
    words = [*QUESTION, "--try", "option=xla_cpu_enable_fast_math=true,false", "--machine", "v5e:2x2"]
    assert run(["export", "svg", "program", *words]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    words = " ".join(ElementTree.fromstring(out).itertext())
    assert "step on cpu" in words
    assert "Pareto-optimal" in words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--try", "bach=8"],
            "step has no parameter bach: it takes mesh, batch, remat\nhint: did you mean batch?",
        ),
        (["--try", "batch=1", "--try", "mesh=2"], "step does not take the mesh and these values alone"),
        (["--try", "batch=1", "--target", "cpu,shardy"], "combinations are of a function, for one target"),
        (["--try", "batch=1", "--top", "3"], "--try and --top cannot be combined"),
        (["--try", "batch=1", "--arrays"], "--try and --arrays cannot be combined"),
        (["--try", "libtpu=nowhere"], "'nowhere' has no libtpu"),
    ],
)
def test_what_is_refused(capfd, words, said):
    assert run(["program", *QUESTION, *words]) == 2
    assert said in capfd.readouterr().err


@pytest.mark.skipif(not EXTRAS["tpu"].installed, reason="the extra tpu is not installed")
def test_of_a_tpu_what_does_not_fit_is_said_and_the_rest_is_read_back(capfd):
    words = ["program", *QUESTION, "--target", "v5e:2x2", "--try", "batch=64,67108864"]
    assert run(words) == 0
    out = capfd.readouterr().out
    assert "★  64 " in out
    assert "✗ batch=67108864: does not fit: " in " ".join(out.split())
    library = next(Path(__import__("libtpu").__file__).parent.glob("libtpu.so"))
    assert run([*words[:-1], "batch=64", "--try", f"libtpu={library}", "--json"]) == 0
    (other,) = json.loads(capfd.readouterr().out)["trials"]
    assert other["seconds"] > other["exposed_seconds"]
    assert run([*words[:-1], "batch=64", "--json"]) == 0
    (again,) = json.loads(capfd.readouterr().out)["trials"]
    assert again["live_memory"]["peak_bytes"] == other["live_memory"]["peak_bytes"] > 0
    assert again["is_cached"]
