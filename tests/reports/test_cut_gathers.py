"""Arrays that a compiled text gathers from all devices and cuts again, found without a log."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import shardviz
from shardviz.cli.group import run
from shardviz.hlo import read_hlo
from shardviz.reports.rematerialization import cut_gathers, rematerializations_of
from shardviz.sharding import Mesh

XY = Mesh(("x", "y"), (4, 2))


@pytest.fixture(scope="module")
def text():
    """XLA warns of this program: it knows no way between the two shardings."""
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    before, after = (NamedSharding(mesh, P(*spec)) for spec in (("y", None, "x"), (None, ("x", "y"), None)))
    x = jax.ShapeDtypeStruct((16, 32, 64), jnp.float32, sharding=before)

    def program(x):
        return jnp.sin(jax.lax.with_sharding_constraint(x * 2, after))

    return jax.jit(program, out_shardings=after).lower(x).compile().as_text()


def test_what_is_made_whole_to_be_cut(text):
    (found,) = rematerializations_of(read_hlo(text, XY, origins=True))
    assert str(found.before) == "P('y', None, 'x')"
    assert (found.shape, found.kept, found.dtype) == ((16, 32, 64), (16, 4, 64), "f32")
    assert found.whole_bytes == 16 * 32 * 64 * 4
    assert found.wire_bytes == found.whole_bytes * 7 // 8
    # JAX 0.12 gathers the argument itself, which has a name and no line.
    assert found.source.startswith(__file__) or found.source == found.op_name == "x"


def test_pages_tell_of_it(text, tmp_path, capsys):
    told = "1 array is fully replicated in order to reshard it"
    assert told in str(shardviz.read_hlo(text, "x=4,y=2"))
    (tmp_path / "step.txt").write_text(text)
    assert run(["hlo", str(tmp_path / "step.txt"), "--mesh", "x=4,y=2"]) == 0
    assert f"{told}\nf32[16,32,64] from P('y', None, 'x')" in capsys.readouterr().out


def test_another_use_of_the_whole_array_is_none(text):
    gathered = [each for each in read_hlo(text).collectives if each.op == "all-gather"][-1].name
    used = text.replace("\n  ROOT %", f"\n  %more = f32[16,32,64]{{2,1,0}} negate(%{gathered})\n  ROOT %")
    assert used != text
    assert not [*cut_gathers(read_hlo(used, XY, origins=True))]


def test_a_cut_at_a_place_that_no_device_tells_is_none(text):
    """As a loop takes the weights of one layer."""
    counted = text.replace("partition-id()", 'custom-call(), custom_call_target="step"')
    assert counted != text
    assert not [*cut_gathers(read_hlo(counted, XY, origins=True))]


def test_a_gather_among_some_of_the_devices_is_none(text):
    some = text.replace("num_partitions=8", "num_partitions=16")
    assert not [*cut_gathers(read_hlo(some, origins=True))]


@pytest.mark.parametrize("damage", ["f32[16,4,64", "f32[", "s99[16,4,64]", "(f32[16,4,64], f32[2])"])
def test_a_damaged_shape_is_none(text, damage):
    for shape in ("f32[16,4,64]{2,1,0}", "f32[16,32,64]{2,1,0}"):
        damaged = text.replace(f"{shape} dynamic-slice(", f"{damage} dynamic-slice(").replace(
            f"{shape} all-gather(", f"{damage} all-gather("
        )
        assert damaged != text
        assert not [*cut_gathers(read_hlo(damaged, XY, origins=True))]
