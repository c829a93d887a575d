"""`shardviz.profiled`, in a process of its own: a profiler may end the one in which it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import shardviz
from shardviz.errors import QuestionError
from shardviz.targets import installed_versions, libtpu_mismatch

MISMATCH = libtpu_mismatch(installed_versions())
PROGRAM = """
import json, sys, jax, jax.numpy as jnp, shardviz
from functools import partial
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
product = lambda x: jax.lax.psum(x @ x.T, "data")
total = jax.jit(jax.shard_map(product, mesh=mesh, in_specs=P(None, "data"), out_specs=P()))
x = jax.device_put(jnp.ones((256, 1024)), jax.sharding.NamedSharding(mesh, P(None, "data")))
total(x).block_until_ready()
with shardviz.profiled(sys.argv[1], mesh="data=8", machine="v5e:2x4") as p:
    during = repr(p)
    try:
        p.profile
    except shardviz.ShardvizError as error:
        refused = str(error)
    for _ in range(3):
        jax.block_until_ready(total(x))
try:
    with shardviz.profiled() as failed:
        raise RuntimeError("mine")
except RuntimeError as error:
    mine = str(error), repr(failed)
jax.process_count, jax.process_index = lambda: 2, lambda: 1
with shardviz.profiled(sys.argv[1] + "-job") as of_process:
    jax.block_until_ready(total(x))
assert len(of_process.steps) == 1
html = p._repr_mimebundle_()["text/html"]
print(json.dumps([during, refused, mine, p.document(), repr(p), len(p.svg()), len(p.html()), html[:5]]))
"""


@pytest.mark.skipif(bool(MISMATCH), reason=MISMATCH or "it fits")
def test_a_block_is_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    during, refused, mine, document, page, svg, html, cell = json.loads(done.stdout)
    assert during == "<a profile that is being taken>"
    assert "there is no profile yet" in refused
    assert mine == ["mine", "<a profile that is being taken>"]
    assert document["kind"] == "profile"
    assert not document["steps_are_marked"]
    assert [step["number"] for step in document["steps"]] == [0, 1, 2]
    (psum,) = document["collectives"]
    assert (psum["op"], psum["axes"], psum["runs"]) == ("all-reduce", ["data"], 3)
    assert psum["bytes"] == 256 * 256 * 4
    assert psum["predicted_seconds"] > 0
    assert psum["algbw_bytes_per_s"] == pytest.approx(psum["bytes"] / psum["seconds"])
    assert "jit_" in page.splitlines()[0]
    assert "predicted on v5e:2x4" in page
    assert min(svg, html) > 1000
    assert cell.startswith("<")
    assert [*(tmp_path / "kept").rglob("*.xplane.pb")]
    # Processes of one host do not write over one another's files.
    (of_process,) = (tmp_path / "kept-job").rglob("*.xplane.pb")
    assert of_process.name.endswith("-p1.xplane.pb")
    assert [file.name for file in (tmp_path / "kept-job").iterdir()] == ["plugins"]


def test_jax_must_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    with pytest.raises(QuestionError, match="jax is not imported"), shardviz.profiled():
        pass


def test_a_mesh_that_cannot_be_is_refused_at_once() -> None:
    with pytest.raises(shardviz.ShardvizError):
        shardviz.profiled(mesh="X=")
