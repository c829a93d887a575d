"""The words of a diff are true of real programs, which JAX compiles before and after a change to them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import shardviz
from shardviz.reports.changes import broken_limits, parse_limits, report_changes

MESH = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)


def placed(x, *spec):
    return lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def given(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, P(*spec)))


def layers(gathered="inside", depth=4, width=64, scope="layer", unroll=False):
    """Layers whose weights are whole in each of them, or before all of them."""

    def layer(x, w):
        with jax.named_scope(scope):
            return jnp.tanh(x @ placed(w)), None

    def f(x, weights):
        if gathered == "before":
            weights = placed(weights)
        if unroll:
            for number in range(depth):
                x, _ = layer(x, weights[number])
            return x
        return lax.scan(layer, x, weights)[0]

    return shardviz.inspect(f, given((16, width), "X"), given((depth, width, width), None, "Y")).summary()


def carried(turns):
    """An argument that is gathered once, or what a loop hands on, in each turn of it."""

    def body(x, _=None):
        return placed(jnp.tanh(placed(x, "X") * 2), "X", "Y"), None

    def f(x):
        if turns == "many":
            return lax.while_loop(lambda x: x[0, 0] < 3, lambda x: body(x)[0], x)
        return body(x)[0] if turns == 1 else lax.scan(body, x, length=turns)[0]

    return shardviz.inspect(f, given((64, 512), "X", "Y")).summary()


def mlp(careless=False, hidden=128):
    def f(x, w_in, w_out):
        inner = jnp.tanh(x @ w_in)
        return placed((placed(inner, "X") if careless else inner) @ w_out, "X")

    shapes = given((16, 64), "X"), given((64, hidden), None, "Y"), given((hidden, 64), "Y", None)
    return shardviz.inspect(f, *shapes).summary()


def told(before, after):
    """The kinds of changes with their operations, and the bytes that they add up to."""
    found = report_changes(before, after)
    assert sum(each.wire_bytes for each in found.changes) == after.wire_bytes - before.wire_bytes
    return sorted((each.kind, (each.after or each.before).op) for each in found.changes)


@pytest.fixture(scope="module")
def plain():
    return layers()


def test_a_gather_that_leaves_its_loop_is_one_of_all_layers(plain):
    hoisted = layers("before")
    assert told(plain, hoisted) == [("out of a loop", "all-gather")]
    assert told(hoisted, plain) == [("into a loop", "all-gather")]
    (change,) = report_changes(plain, hoisted).changes
    assert (change.before.runs, change.after.runs) == (4, 1)
    # As many bytes in all: 3/4 of 4 matrices of 64 x 64 numbers of 4 bytes.
    assert change.wire_bytes == 0
    assert change.before.all_wire_bytes == 3 * 64 * 64 * 4


def test_what_a_loop_hands_on_is_known_without_a_name():
    once, six = carried(1), carried(6)
    assert told(once, six) == [("into a loop", "all-gather")]
    assert told(six, once) == [("out of a loop", "all-gather")]
    assert broken_limits(parse_limits("new-collective"), report_changes(once, six)) == ()


def test_a_loop_of_unknown_length_breaks_a_limit_of_bytes():
    found = report_changes(carried(6), carried("many"))
    assert ("other runs", "all-gather") in [(each.kind, each.after.op) for each in found.changes]
    (broken,) = broken_limits(parse_limits("bytes+900%"), found)
    assert broken.message.endswith(" is in a loop of unknown length")


def test_more_layers_run_more_often(plain):
    assert told(plain, layers(depth=6)) == [("more runs", "all-gather")]
    assert told(layers(depth=6), plain) == [("fewer runs", "all-gather")]


def test_another_size(plain):
    assert told(plain, layers(width=128)) == [("grown", "all-gather")]
    assert told(mlp(), mlp(hidden=256)) == []
    assert told(mlp(careless=True), mlp(careless=True, hidden=256)) == [("grown", "all-gather")]


def test_an_array_that_is_made_whole_is_new():
    assert told(mlp(), mlp(careless=True)) == [("added", "all-gather")]
    assert told(mlp(careless=True), mlp()) == [("removed", "all-gather")]


def test_other_names_and_an_unrolled_loop_cost_the_same(plain):
    for same in (layers(scope="block"), layers(unroll=True)):
        assert told(plain, same) == []
