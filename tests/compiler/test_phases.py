"""Which collectives of a train step are the optimizer's: a step as lm1b has it, that compilers compile."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

from shardviz.compiler.lowering import lower_program
from shardviz.reports.entries import entries_of
from shardviz.targets import EXTRAS, parse_targets

MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
ROWS, LENGTH, WIDTH, WORDS = 16, 32, 256, 1024
needs_libtpu = pytest.mark.skipif(not EXTRAS["tpu"].installed, reason="the extra tpu is not installed")
TARGETS = ["cpu", pytest.param("v5e:2x4", marks=needs_libtpu)]


def array(shape, *spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*spec)))


PARAMS = {
    "embed": array((WORDS, WIDTH), "data", None),
    "up": array((WIDTH, 4 * WIDTH), "data", "model"),
    "down": array((4 * WIDTH, WIDTH), "model", "data"),
}
TOKENS = array((ROWS, LENGTH), ("data", "model"), dtype=jnp.int32)


def forward(params, tokens):
    x = params["embed"][tokens]
    x = x + jax.nn.gelu(x @ params["up"]) @ params["down"]
    return x @ params["embed"].T


def clipped(params, gradients):
    """Moved against the gradients, whose norm is 1 at most."""
    with jax.named_scope("norm"):
        norm = jnp.sqrt(sum(jnp.sum(each**2) for each in jax.tree.leaves(gradients)))
    return jax.tree.map(lambda p, g: p - 0.1 * g / jnp.maximum(norm, 1.0), params, gradients)


def metrics(logits, targets):
    """The sums that stand beside the optimizer."""
    with jax.named_scope("metrics"):
        weights = jnp.where(targets > 0, 1.0, 0.0)
        chances = jax.nn.log_softmax(logits)
        loss = -jnp.sum(jnp.take_along_axis(chances, targets[..., None], -1)[..., 0] * weights)
        accuracy = jnp.sum((jnp.argmax(logits, -1) == targets) * weights)
        return {"loss": loss, "accuracy": accuracy, "tokens": jnp.sum(weights)}


def compiled(worker, target, step):
    (asked,) = parse_targets(target)
    lowered = lower_program(step, (PARAMS, TOKENS, TOKENS), {}, asked.platform)
    found = worker.compile(lowered, asked).result()
    assert found.answer.status == "ok", found.answer.error
    return [each for each in entries_of(found.module) if each.collective.wire_bytes]


def phases(entries, scope):
    return {each.phase for each in entries if scope in each.scopes}


@pytest.mark.parametrize("target", TARGETS)
def test_metrics_beside_the_optimizer_are_of_no_phase(worker, target):
    def step(params, inputs, targets):
        def loss(params):
            logits = forward(params, inputs)
            chances = jax.nn.log_softmax(logits)
            return -jnp.mean(jnp.take_along_axis(chances, targets[..., None], -1)), logits

        gradients, logits = jax.grad(loss, has_aux=True)(params)
        return clipped(params, gradients), metrics(logits, targets)

    entries = compiled(worker, target, step)
    assert phases(entries, "metrics") == {None}
    # Compilers join sums of several kinds: XLA for CPU every norm here with a gradient.
    assert phases(entries, "norm") <= {"optimizer", None}
    assert target == "cpu" or "optimizer" in phases(entries, "norm")
    assert {"forward", "backward"} <= {each.phase for each in entries}


@needs_libtpu
def test_on_several_slices_collectives_stand_at_the_lines_on_their_sides(worker):
    """libtpu leaves them no names there."""

    def step(params, inputs, targets):
        def loss(params):
            return jnp.mean((forward(params, inputs) - targets[..., None]) ** 2)

        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))

    entries = compiled(worker, "2*v5e:2x2", step)
    assert any(each.collective.between_slices for each in entries)
    told = [each for each in entries if each.collective.source]
    assert sum(each.all_wire_bytes for each in told) > sum(each.all_wire_bytes for each in entries) / 2
    assert {"forward", "backward"} <= {each.phase for each in told}
    lines = {each.collective.source.rpartition(":")[0] for each in told}
    assert lines == {__file__}


def test_a_gradient_and_what_a_model_takes_are_not_the_optimizers(worker):
    """A gradient that XLA combines with a norm is the backward pass's own; an updated parameter that an
    evaluation in the same step multiplies is gathered for that."""

    def step(params, inputs, targets):
        def loss(params):
            return jnp.mean((forward(params, inputs)) ** 2)

        gradients = jax.grad(loss)(params)
        moved = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        with jax.named_scope("evaluation"):
            logits = forward(moved, targets)
        return clipped(params, gradients), logits

    entries = compiled(worker, "cpu", step)
    assert phases(entries, "evaluation") == {None}
    assert all(each.phase != "optimizer" for each in entries if each.gradient_of)
