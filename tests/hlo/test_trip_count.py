"""Counts of loops whose length is not written down, against XLA's own count and against unrolled programs."""

from __future__ import annotations

import os
import re
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo import HloModule, read_hlo
from shardviz.hlo.text.call_graph import parse_trip_counts, trips, with_trip_counts

os.environ.setdefault("JAX_PLATFORMS", "cpu")
WRITTEN = re.compile(r'"known_trip_count":\{"n":"\d+"\},?')


def traffic(module: HloModule) -> Counter[tuple[str, int]]:
    total: Counter[tuple[str, int]] = Counter()
    for each in module.collectives:
        assert each.count is not None
        total[each.op, each.bytes] += each.count
    return total


@given(st.sampled_from(["LT", "LE", "GT", "GE", "NE", "EQ"]), st.integers(-40, 40), st.integers(-9, 9))
def test_trips_are_what_a_loop_does(direction, start, step):
    compares = {
        "LT": int.__lt__,
        "LE": int.__le__,
        "GT": int.__gt__,
        "GE": int.__ge__,
        "NE": int.__ne__,
        "EQ": int.__eq__,
    }
    value, runs = start, 0
    while compares[direction](value, 0) and runs < 100:
        value, runs = value + step, runs + 1
    assert trips(direction, start, step) == (runs if runs < 100 else None)


LOOP = """HloModule m, num_partitions=8

%body (p: (s32[], f32[8], s32[])) -> (s32[], f32[8], s32[]) {{
  %p = (s32[], f32[8], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8] get-tuple-element(%p), index=1
  %n = s32[] get-tuple-element(%p), index=2
  %one = s32[] constant(1)
  {body}
  %r = f32[8] all-reduce(%x), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=%a
  ROOT %t = (s32[], f32[8], s32[]) tuple(%j, %r, %n)
}}

%condition (p: (s32[], f32[8], s32[])) -> pred[] {{
  %p.1 = (s32[], f32[8], s32[]) parameter(0)
  %i.1 = s32[] get-tuple-element(%p.1), index=0
  %n.1 = s32[] get-tuple-element(%p.1), index=2
  ROOT %c = pred[] compare({compared}), direction={direction}
}}

ENTRY %main (x: f32[8], k: s32[]) -> f32[8] {{
  %x = f32[8] parameter(0)
  %k = s32[] parameter(1)
  %zero = s32[] constant({start})
  %seven = s32[] constant({stop})
  %copied = s32[] copy(%zero)
  %t = (s32[], f32[8], s32[]) tuple({first}, %x, {bound})
  %w = (s32[], f32[8], s32[]) while(%t), condition=%condition, body=%body
  ROOT %y = f32[8] get-tuple-element(%w), index=1
}}
"""
UP = "%j = s32[] add(%i, %one)"


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 7),
        ({"direction": "LE"}, 8),
        ({"direction": "NE"}, 7),
        ({"direction": "EQ"}, 0),
        ({"direction": "GT"}, 0),
        ({"compared": "%n.1, %i.1", "direction": "GT"}, 7),
        ({"compared": "s32[] %i.1, s32[] %n.1"}, 7),
        ({"body": "%j = s32[] add(%one, %i)"}, 7),
        ({"body": "%k = s32[] add(%i, %one)\n  %j = s32[] add(%k, %one)"}, 4),
        ({"body": "%j = s32[] subtract(%i, %one)", "start": 9, "stop": 3, "direction": "GE"}, 7),
        ({"body": "%j = s32[] subtract(%i, %one)"}, None),
        ({"body": "%j = s32[] multiply(%i, %one)"}, None),
        ({"body": "%j = s32[] multiply(%i, %i)"}, None),
        ({"start": 2147483640, "stop": 2147483647}, 7),
        ({"start": 2147483640, "stop": 2147483647, "direction": "LE"}, None),
        ({"first": "%k"}, None),
        ({"bound": "%k"}, None),
        ({"bound": "%nowhere"}, None),
    ],
)
def test_loops_of_a_counter_and_a_bound(changed, count):
    usual = {
        "body": UP,
        "compared": "%i.1, %n.1",
        "direction": "LT",
        "start": 0,
        "stop": 7,
        "first": "%copied",
        "bound": "%seven",
    }
    text = LOOP.format(**(usual | changed))
    # What never runs is no collective of the program.
    counts = [] if count == 0 else [count]
    assert [one.count for one in read_hlo(text).collectives] == counts
    assert [one.count for one in read_hlo(text + text).collectives] == counts * 2


def test_a_power_of_the_counter_is_not_taken_for_a_counter():
    """The cubes of -1, 0 and 1 are as far from one another as the numbers, but that of 2 ends the loop."""
    usual = {"body": UP, "direction": "LT", "start": -1, "stop": 7, "first": "%copied", "bound": "%seven"}
    text = LOOP.format(**usual, compared="%cube, %n.1")
    cube = "%square = s32[] multiply(%i.1, %i.1)\n  %cube = s32[] multiply(%square, %i.1)\n  ROOT %c"
    assert [one.count for one in read_hlo(text.replace("ROOT %c", cube, 1)).collectives] == [None]


def test_a_loop_that_is_made_of_itself_has_no_count():
    text = LOOP.format(
        body="%j = s32[] copy(%j)",
        compared="%i.1, %n.1",
        direction="LT",
        start=0,
        stop=7,
        first="%t",
        bound="%t",
    )
    assert [one.count for one in read_hlo(text).collectives] == [None]


def programs():
    """What compiles a program for some devices as a mesh of two rows, and programs with a loop by name."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    def compiled(make, devices, *, scalar=False):
        mesh = Mesh(np.array(devices).reshape(2, -1), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)

        def split(*axes):
            return NamedSharding(mesh, PartitionSpec(*axes))

        def layer(x, w):
            return lax.with_sharding_constraint(jnp.tanh(x @ w), split("X", "Y"))

        arguments = [
            jax.ShapeDtypeStruct((64, 64), jnp.bfloat16, sharding=split("X", "Y")),
            jax.ShapeDtypeStruct((4, 64, 64), jnp.bfloat16, sharding=split(None, "X", "Y")),
        ]
        if scalar:
            arguments.append(jax.ShapeDtypeStruct((), jnp.int32, sharding=split()))
        return jax.jit(make(layer)).lower(*arguments).compile().as_text()

    def scanned(layer, unroll=1):
        return lambda x, ws: lax.scan(lambda c, w: (layer(c, w), None), x, ws, unroll=unroll)[0]

    def nested(layer):
        def twice(c, w):
            return lax.fori_loop(0, 3, lambda _, each: layer(each, w), c), None

        return lambda x, ws: lax.scan(twice, x, ws)[0]

    def counted(condition, step, start):
        def make(layer):
            def body(state):
                return state[0] + step, layer(state[1], state[2][0]), state[2]

            return lambda x, ws: lax.while_loop(lambda state: condition(state[0]), body, (start, x, ws))[1]

        return make

    def inherited(layer):
        """The inner loop's bound is carried through the outer one."""

        def outer(state):
            def inner(each):
                return each[0] + 1, layer(each[1], state[3][0]), each[2]

            _, x, n = lax.while_loop(
                lambda each: each[0] < each[2], inner, (jnp.int32(0), state[1], state[2])
            )
            return state[0] + 1, x, n, state[3]

        return lambda x, ws: lax.while_loop(
            lambda state: state[0] < 3, outer, (jnp.int32(0), x, jnp.int32(5), ws)
        )[1]

    def bounded(layer):
        return lambda x, ws, n: lax.fori_loop(0, n, lambda _, c: layer(c, ws[0]), x)

    def triangle(layer):
        def row(i, c):
            return lax.fori_loop(0, i, lambda _, each: layer(each, c[1][0]), c[0]), c[1]

        return lambda x, ws: lax.fori_loop(0, 4, row, (x, ws))[0]

    return compiled, {
        "scan": scanned,
        "unrolled": lambda layer: scanned(layer, 4),
        "gradient": lambda layer: jax.grad(lambda x, ws: scanned(layer)(x, ws).astype(jnp.float32).sum(), 1),
        "nested": nested,
        "down": counted(lambda i: i >= -3, -2, jnp.int32(11)),
        "not equal": counted(lambda i: i != 12, 3, jnp.int32(0)),
        "inherited bound": inherited,
        "asked bound": bounded,
        "triangle": triangle,
    }


@pytest.fixture(scope="module")
def cpu_texts():
    import jax

    compiled, makers = programs()
    devices = jax.devices("cpu")[:8]
    return {
        name: compiled(makers[name], devices, scalar=name == "asked bound")
        for name in ("gradient", "nested", "down", "not equal", "inherited bound", "asked bound", "triangle")
    }


def test_as_xla_counts_on_cpu(cpu_texts):
    """XLA writes its own count for CPU; taken out of the text it is found again."""
    unknown = set()
    for name, text in cpu_texts.items():
        bare = WRITTEN.sub("", text)
        assert "known_trip_count" not in bare
        counts = [one.count for one in read_hlo(text).collectives]
        assert [one.count for one in read_hlo(bare).collectives] == counts, name
        if None in counts:
            unknown.add(name)
    assert unknown == {"asked bound", "triangle"}


@pytest.mark.parametrize("topology", ["v5e:2x4", "v2:2x2"])
def test_a_scan_on_tpu_moves_what_its_unrolled_program_does(topology):
    from jax.experimental import topologies

    os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
    devices = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    compiled, makers = programs()
    once, whole = (read_hlo(compiled(makers[name], devices)) for name in ("scan", "unrolled"))
    assert len(once.collectives) < len(whole.collectives)
    assert traffic(once) == traffic(whole)


TOLD = """HloModule m

%body (s: f32[8]) -> f32[8] {
  %s = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} all-reduce(%s), replica_groups={{0,1}}
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %layers = f32[8]{0} while(%x), condition=%unknown, body=%body
}
"""


@pytest.mark.parametrize("name", ["layers", "body"])
def test_a_length_that_the_text_does_not_tell_is_told(name):
    module = read_hlo(TOLD)
    assert (module.collectives[0].count, module.unknown_loops) == (None, ("layers",))
    told = read_hlo(with_trip_counts(TOLD, parse_trip_counts(f"{name} = 32")))
    assert (told.collectives[0].count, told.unknown_loops) == (32, ())


@pytest.mark.parametrize("text", ["", "body", "body=", "body=x", "a=1,,b=2", "a=-1"])
def test_what_is_not_a_length(text):
    with pytest.raises(NotationError) as error:
        parse_trip_counts(text)
    assert "is not a loop with its runs" in error.value.message


def test_a_loop_that_is_not_there():
    with pytest.raises(QuestionError) as error:
        with_trip_counts(TOLD, {"layer": 3})
    assert error.value.message == "no loop is called 'layer'"
    assert error.value.hint == "did you mean layers? its loops are layers"
