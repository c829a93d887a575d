"""The cost and the place of each collective: a train step that XLA for CPU has compiled."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.hardware.machine_file import named_machine
from shardviz.reports.program_report import program_report
from shardviz.sharding import Mesh

LAYERS, ROWS, WIDTH, HIDDEN = 4, 64, 256, 1024
MESH = Mesh(("data", "model"), (2, 4))


@pytest.fixture(scope="module")
def train_step():
    devices = np.array(jax.devices()[:8]).reshape(2, 4)
    mesh = jax.sharding.Mesh(devices, ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def array(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

    def layer(x, p):
        with jax.named_scope("mlp"):
            return x + jax.nn.gelu(x @ p["w_in"]) @ p["w_out"]

    def loss(params, x):
        y, _ = jax.lax.scan(lambda x, p: (jax.checkpoint(layer)(x, p), None), x, params["layers"])
        return jnp.mean(y**2)

    def step(params, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        norm = sum(jnp.sum(each**2) for each in jax.tree.leaves(gradients))
        return jax.tree.map(lambda p, g: p - 0.1 * g / norm, params, gradients), value

    layers = {
        "w_in": array((LAYERS, WIDTH, HIDDEN), None, "data", "model"),
        "w_out": array((LAYERS, HIDDEN, WIDTH), None, "model", "data"),
    }
    x = array((ROWS, WIDTH), "data", None)
    text = jax.jit(step).lower({"layers": layers}, x).compile().as_text()
    return program_report(text, named_machine("v5e:2x4"), mesh=MESH)


def entries(report, op, axis, phase):
    return [
        each
        for each in report.entries
        if (each.collective.op, each.collective.axes, each.phase) == (op, (axis,), phase)
    ]


def test_weights_are_gathered_for_each_layer_under_their_names(train_step):
    gathered = {
        (each.phase, each.argument)
        for each in train_step.entries
        if each.collective.op == "all-gather" and each.collective.axes == ("data",)
    }
    assert ("forward", "params['layers']['w_in']") in gathered
    assert ("forward", "params['layers']['w_out']") in gathered
    assert {name for _, name in gathered} == {"params['layers']['w_in']", "params['layers']['w_out']"}
    assert all(each.runs == LAYERS for each in train_step.entries if each.argument)


def test_a_sum_of_the_forward_pass_stands_in_its_scope(train_step):
    (psum,) = entries(train_step, "all-reduce", "model", "forward")
    assert psum.scopes == ("mlp",)
    assert psum.argument == ""
    # The whole activation of a device, in each layer.
    assert psum.all_bytes == LAYERS * ROWS // 2 * WIDTH * 4


def test_what_works_on_gradients_is_the_optimizer(train_step):
    norms = [each for each in train_step.entries if each.phase == "optimizer"]
    assert norms
    assert all(each.collective.op == "all-reduce" and each.runs == 1 for each in norms)


def test_gradients_are_named_after_their_parameters(train_step):
    named = {path for each in train_step.entries for path in each.gradient_of}
    assert named == {"params['layers']['w_in']", "params['layers']['w_out']"}
    (both,) = (each for each in train_step.entries if each.gradient_of)
    assert both.place == "params['layers']: ['w_in'], ['w_out']"
    assert (both.phase, both.collective.axes) == ("backward", ("data",))


def test_seconds_of_all_runs_add_up_to_the_timeline(train_step):
    moved = dict(train_step.timeline.communication_seconds)
    over_model = sum(each.all_seconds for each in train_step.entries if each.collective.axes == ("model",))
    assert over_model == pytest.approx(moved["model"])
    waited = sum(each.all_exposed for each in train_step.entries)
    assert waited == pytest.approx(sum(dict(train_step.timeline.exposed_seconds).values()))
    assert {each.link for each in train_step.entries} == {"ICI"}


def test_without_a_machine_there_are_no_seconds():
    assert program_report(TEXT).entries[0].seconds is None


TEXT = """HloModule m, num_partitions=2

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0), metadata={op_name="x"}
  ROOT %r = f32[8]{0} all-reduce(%x), channel_id=1, replica_groups=[1,2]<=[2], to_apply=%add
}
"""


def test_a_program_without_gradients_is_all_forward():
    (entry,) = program_report(TEXT).entries
    assert (entry.phase, entry.argument, entry.all_bytes) == ("forward", "x", 32)


@pytest.mark.parametrize("operands", ["%g, %moved", "%moved, %g"])
def test_a_gradient_beside_what_is_made_of_it_is_not_the_optimizers(operands):
    """Whichever of them is looked at first: of one operand that holds both."""
    text = f"""HloModule jit_step, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

ENTRY %main (w: f32[8,8], x: f32[8,8]) -> f32[16,8] {{
  %w = f32[8,8]{{1,0}} parameter(0), metadata={{op_name="w"}}
  %x = f32[8,8]{{1,0}} parameter(1), metadata={{op_name="x"}}
  %g = f32[8,8]{{1,0}} dot(%x, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
metadata={{op_name="jit(step)/transpose(jvp())/dot_general"}}
  %h = f32[8,8]{{1,0}} dot(%w, %x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
metadata={{op_name="jit(step)/transpose(jvp())/dot_general"}}
  %moved = f32[8,8]{{1,0}} subtract(%w, %h), metadata={{op_name="jit(step)/sub"}}
  %own = f32[8,8]{{1,0}} all-reduce(%moved), channel_id=1, replica_groups=[1,2]<=[2], to_apply=%add, \
metadata={{op_name="jit(step)/sub"}}
  %bwd = f32[8,8]{{1,0}} all-reduce(%g), channel_id=2, replica_groups=[1,2]<=[2], to_apply=%add, \
metadata={{op_name="jit(step)/transpose(jvp())/dot_general"}}
  %both = f32[16,8]{{1,0}} concatenate({operands}), dimensions={{0}}
  ROOT %r = f32[16,8]{{1,0}} all-reduce(%both), channel_id=3, replica_groups=[1,2]<=[2], to_apply=%add, \
metadata={{op_name="jit(step)/concatenate"}}
}}
"""
    phases = {each.collective.name: each.phase for each in program_report(text).entries}
    assert phases == {"own": "optimizer", "bwd": "backward", "r": None}
