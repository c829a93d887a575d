"""Why collectives are there: programs that XLA and Shardy compile, and what avoids the collectives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

from shardviz.compiler.lowering import lower_program
from shardviz.reports.candidates import candidates
from shardviz.reports.entries import entries_of
from shardviz.reports.lowered_module import ExplicitReshards, Meeting, SplitArgument
from shardviz.reports.verdicts import ChangeSaving, dearest_reasons, verdicts
from shardviz.reports.why import TrainStep, alike_reasons
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.targets import parse_targets
from shardviz.units import human_bytes

MIB = 2**20
MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def array(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, P(*spec)))


def mlp(down):
    """Two matmuls, the second weight split as `down` says; it should be ("model", None)."""

    def program(x, w):
        h = jnp.sin(x @ w["up"])
        return jax.lax.with_sharding_constraint(h @ w["down"], NamedSharding(MESH, P("data")))

    weights = {"up": array((256, 1024), None, "model"), "down": array((1024, 256), *down)}
    return program, (array((512, 256), "data"), weights)


def ask(worker, program, arguments, target="cpu", changes=()):
    (asked,) = parse_targets(target)
    lowered = lower_program(program, arguments, {}, asked.platform)
    return worker.compile(lowered, asked, changes=changes).result()


def told(compiled):
    entries = entries_of(compiled.module)
    return [(each.collective, reason) for each, reason in zip(entries, compiled.reasons, strict=True)]


def test_a_contraction_over_a_split_dimension_is_one(worker):
    compiled = ask(worker, *mlp(("model", None)))
    ((collective, reason),) = told(compiled)
    assert (collective.op, collective.axes, reason.kind) == ("all-reduce", ("model",), "contraction")
    assert not reason.is_expected
    assert reason.meeting.producer == "dot_general"
    assert reason.meeting.shape == (512, 256)
    assert not compiled.rematerializations


def test_two_shardings_that_meet_are_named_and_the_right_spec_is_found(worker):
    program, arguments = mlp((None, "model"))
    compiled = ask(worker, program, arguments)
    reasons = [reason for _, reason in told(compiled) if reason.meeting and reason.meeting.kind == "reshard"]
    assert reasons
    assert {str(each.meeting.before) for each in reasons} == {"P(None, 'model')"}
    found = verdicts(lambda name, changes: ask(worker, program, arguments, name, changes), compiled)
    (one,) = found
    assert one.candidate.argument.name == "w['down']"
    assert one.candidate.spec.dims == (("model",), ())
    # XLA has tried it: a program that follows the advice sends as much less.
    assert one.target == "cpu"
    assert ask(worker, *mlp(("model", None))).bytes_sent == compiled.bytes_sent - one.saving.sent_bytes > 0
    assert one.candidate.memory_bytes == 0


def test_what_is_meant_is_said_to_be_and_nothing_is_advised(worker):
    def step(w, x):
        def loss(w):
            return jnp.mean(jnp.square(jnp.tanh(x @ w["in"]) @ w["out"]))

        gradients = jax.grad(loss)(w)
        return jax.tree.map(lambda p, g: p - 0.1 * g, w, gradients)

    weights = {"in": array((256, 512), "data", None), "out": array((512, 256), None, "data")}
    shardings = jax.tree.map(lambda each: each.sharding, weights)
    program = jax.jit(step, out_shardings=shardings)
    arguments = weights, array((4096, 256), ("data", "model"))
    compiled = ask(worker, program, arguments)
    kinds = {(collective.op, reason.kind) for collective, reason in told(compiled)}
    assert ("all-gather", "parameter") in kinds
    assert any(kind == "gradient" for _, kind in kinds)
    expected = [reason for reason in dearest_reasons(compiled) if reason.is_expected]
    step = TrainStep(compiled.explicit_reshards)
    assert expected
    assert not any(candidates(reason, step, Mesh(("data", "model"), (2, 4))) for reason in expected)
    assert compiled.warnings == ()


def updated(weights, gradients):
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def squares(w, x):
    return jnp.mean(jnp.square(jnp.tanh(x @ w["up"]) @ w["down"]))


def micro_batches(is_unrolled, *split):
    """Gradients of four micro-batches, summed over the devices in each of them."""

    def step(w, x):
        if is_unrolled:
            found = [jax.grad(squares)(w, x[number]) for number in range(4)]
            return updated(w, jax.tree.map(lambda *each: sum(each), *found))
        add = lambda total, one: (jax.tree.map(jnp.add, total, jax.grad(squares)(w, one)), None)  # noqa: E731
        return updated(w, jax.lax.scan(add, jax.tree.map(jnp.zeros_like, w), x)[0])

    weights = {"up": array((256, 512), *split), "down": array((512, 256), *split)}
    kept = jax.tree.map(lambda each: each.sharding, weights)
    return jax.jit(step, out_shardings=kept), (weights, array((4, 128, 256), None, "data"))


def one_batch(*split):
    _, (weights, _) = micro_batches(False, *split)
    kept = jax.tree.map(lambda each: each.sharding, weights)
    once = jax.jit(lambda w, x: updated(w, jax.grad(squares)(w, x)), out_shardings=kept)
    return once, (weights, array((4096, 256), ("data", "model")))


def sequence_parallel():
    """The sum of an activation's gradient over `model`, which splits the sequence outside of the layer."""
    rows, columns = (NamedSharding(MESH, spec) for spec in (P("data", "model"), P("data", None, "model")))

    def loss(w, x):
        for each in w:
            h = jax.lax.with_sharding_constraint(jnp.tanh(x @ each["up"]), columns)
            x = jax.lax.with_sharding_constraint(x + h @ each["down"], rows)
        return jnp.mean(jnp.square(x))

    weights = [{"up": array((128, 512), None, "model"), "down": array((512, 128), "model")}] * 2
    step = jax.jit(lambda w, x: updated(w, jax.grad(loss)(w, x)))
    return step, (weights, array((16, 256, 128), "data", "model"))


def scatter():
    """Rows of activations at places that the program knows."""
    at = jnp.arange(0, 512, 2)
    return (lambda x, u: x.at[at].add(u) * 2), (array((512, 64), "data"), array((256, 64), "data"))


def convolution():
    """The channels of an activation, gathered for a convolution."""

    def loss(k, x):
        found = jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jnp.mean(jnp.square(found))

    step = jax.jit(lambda k, x: k - 0.1 * jax.grad(loss)(k, x))
    return step, (
        array((3, 3, 16, 32), None, None, None, "model"),
        array((8, 8, 8, 16), "data", None, None, "model"),
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (one_batch(), {("all-reduce", "gradient")}),
        (one_batch(("data", "model")), {("all-reduce", "gradient"), ("all-gather", "parameter")}),
        (micro_batches(False), set()),
        (micro_batches(True), set()),
        (sequence_parallel(), {("all-reduce", "gradient")}),
        (scatter(), set()),
        (convolution(), {("all-reduce", "gradient")}),
    ],
    ids=["data", "fsdp", "scanned", "unrolled", "sequence", "scatter", "convolution"],
)
def test_only_what_is_proved_is_expected(worker, program, expected):
    collectives = told(ask(worker, *program))
    assert collectives
    found = [(each, reason.kind) for each, reason in collectives if reason.is_expected]
    assert {(each.op, kind) for each, kind in found} == expected
    assert all("data" in each.axes for each, _ in found)


def embedding(constrain=lambda x: x):
    """A train step whose table is split over its features, by the axis that splits the batch: FSDP by specs
    that lose the batch at the lookup."""

    def loss(w, tokens):
        x = constrain(w["table"][tokens])
        for each in w["layers"]:
            x = x + jnp.tanh(x @ each["up"]) @ each["down"]
        return jnp.mean(jnp.square(x))

    def step(w, tokens):
        return updated(w, jax.grad(loss)(w, tokens))

    layer = {"up": array((64, 256), "data"), "down": array((256, 64), "data")}
    weights = {"table": array((512, 64), None, "data"), "layers": [layer] * 2}
    kept = jax.tree.map(lambda each: each.sharding, weights)
    tokens = jax.ShapeDtypeStruct((64, 128), jnp.int32, sharding=NamedSharding(MESH, P("data")))
    return jax.jit(step, out_shardings=kept), (weights, tokens)


def test_the_place_where_the_batch_is_lost_is_told_and_mended(worker):
    program, arguments = embedding()
    compiled = ask(worker, program, arguments)
    (said,) = compiled.warnings
    assert said.startswith("FSDP does not happen: w['")
    assert "the batch stops being sharded over data at gather" in said
    found = verdicts(lambda name, changes: ask(worker, program, arguments, name, changes), compiled)
    (one,) = found
    assert one.candidate.code == "x = jax.lax.with_sharding_constraint(x, P('data', None, None))"
    assert one.candidate.made_by.endswith("gather")
    # JAX and XLA have the last word: a step that is written so.
    rows = NamedSharding(MESH, P("data"))
    mended = ask(worker, *embedding(lambda x: jax.lax.with_sharding_constraint(x, rows)))
    assert mended.warnings == ()
    assert mended.bytes_sent < compiled.bytes_sent / 2
    assert compiled.bytes_sent - one.saving.sent_bytes == pytest.approx(mended.bytes_sent, rel=0.1)


def tied_embedding():
    """The table makes the logits, too, and the labels have them split as the batch is."""
    mesh = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))

    def split(shape, dtype, *spec):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))

    def loss(w, tokens):
        x = w["table"][tokens]
        with jax.named_scope("mlp"):
            x = x + jnp.tanh(x @ w["up"]) @ w["down"]
        with jax.named_scope("logits"):
            logits = x @ w["table"].T
        wanted = jnp.take_along_axis(logits, tokens[..., None], axis=-1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - wanted)

    shapes = {"table": (512, 64), "up": (64, 256), "down": (256, 64)}
    weights = {name: split(shape, jnp.float32, None, "data") for name, shape in shapes.items()}
    kept = jax.tree.map(lambda each: each.sharding, weights)
    step = jax.jit(lambda w, tokens: updated(w, jax.grad(loss)(w, tokens)), out_shardings=kept)
    return step, (weights, split((64, 128), jnp.int32, "data"))


def test_a_sum_that_shardy_would_not_make_is_of_its_matmul_and_mended(worker):
    """Shardy gathers the table before it makes the logits; XLA sums them, which is most of what is sent."""
    program, arguments = tied_embedding()
    compiled = ask(worker, program, arguments)
    ((entry, reason),) = (
        (entry, reason)
        for entry, reason in zip(entries_of(compiled.module), compiled.reasons, strict=True)
        if entry.collective.op == "all-reduce" and entry.collective.result_shape == (64, 128, 512)
    )
    words = (
        "logits/dot_general sums over a dimension that is split over data: each device holds a partial sum"
    )
    assert (reason.kind, reason.words, reason.meeting) == ("contraction", words, None)
    (said,) = compiled.warnings
    assert said.endswith(f"of which a device sends {human_bytes(entry.all_wire_bytes)}")
    assert entry.all_wire_bytes == 2 * 3 * 64 * 128 * 512 * 4 // 4
    found = verdicts(lambda name, changes: ask(worker, program, arguments, name, changes), compiled)
    (one,) = (each for each in found if entry.collective.name in each.collectives)
    assert one.candidate.made_by.endswith("gather")
    assert one.saving.sent_bytes > entry.all_wire_bytes
    step, mesh = TrainStep(compiled.explicit_reshards), Mesh(("data",), (4,))
    assert len(candidates(reason, step, mesh, entry)) == 1
    assert candidates(reason, step, mesh) == ()


@pytest.mark.parametrize(
    ("saved", "memory", "is_worth"),
    [(12 * MIB, 445 * MIB, False), (500 * MIB, 445 * MIB, True), (500 * MIB, -MIB, True), (MIB, 0, False)],
)
def test_a_change_saves_more_bytes_than_it_takes_memory(saved, memory, is_worth):
    assert ChangeSaving(saved, memory).is_worth(7 * 1024 * MIB) == is_worth


def test_a_rematerialization_is_heard_and_its_route_is_free_of_it(worker):
    def swap(x, *specs):
        x = x * 2
        for spec in specs:
            x = jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))
        return jnp.sin(x)

    argument = array((64, 64, 64), "model", None, "data")
    after = (None, ("data", "model"), None)
    (found,) = ask(worker, lambda x: swap(x, after), (argument,)).rematerializations
    assert (str(found.before), str(found.after)) == (
        "P('model', None, 'data')",
        "P(None, ('data', 'model'), None)",
    )
    assert found.shape == (64, 64, 64)
    steps = [move.to_spec.dims for move in found.route]
    cured = ask(worker, lambda x: swap(x, *([axes or None for axes in dims] for dims in steps)), (argument,))
    assert cured.rematerializations == ()
    assert cured.bytes_sent < found.wire_bytes


def test_weights_of_one_shape_are_told_apart_and_no_gather_of_one_is_made_whole(worker):
    """Names and sizes fit several meetings here: layers alike, and activations as large as a weight's part.
    A weight that is wanted whole is gathered, not made whole on its way to another split."""

    def step(w, x):
        def loss(w):
            h = x
            for each in w:
                h = h + jnp.tanh(h @ each["in"]) @ each["out"]
            return jnp.mean(jnp.square(h))

        return jax.tree.map(lambda p, g: p - 0.1 * g, w, jax.grad(loss)(w))

    weights = [{"in": array((256, 1024), "model"), "out": array((1024, 256), "model")}] * 2
    compiled = ask(worker, step, (weights, array((512, 256), "model")))
    entries = entries_of(compiled.module)
    moved = [
        (each, reason)
        for each, reason in zip(entries, compiled.reasons, strict=True)
        if reason.kind == "parameter"
    ]
    assert {each.argument for each, _ in moved} == {
        f"w[{i}]['{name}']" for i in (0, 1) for name in ("in", "out")
    }
    assert all(reason.meeting.argument == each.argument for each, reason in moved)
    assert all(each.collective.op == "all-gather" for each, _ in moved)
    assert compiled.rematerializations == ()
    # Layers that differ in their numbers alone are one reason.
    words = [each.name for each in alike_reasons(moved)]
    assert len(words) == 2
    assert all(each.startswith("w[*]['") for each in words)


def data_parallel(**specs):
    """A step whose weights every device holds whole, but for those with a spec; it returns them as they are
    split."""

    def step(w, x):
        gradients = jax.grad(lambda w: jnp.mean(jnp.square(jnp.tanh(x @ w["up"]) @ w["down"])))(w)
        return jax.tree.map(lambda w, g: w - 0.1 * g, w, gradients)

    shapes = {"up": (256, 1024), "down": (1024, 256)}
    weights = {name: array(shape, *specs.get(name, ())) for name, shape in shapes.items()}
    split = jax.tree.map(lambda weight: weight.sharding, weights)
    step = jax.jit(step, donate_argnums=0, out_shardings=split)
    return step, (weights, array((512, 256), ("data", "model")))


def test_an_argument_that_is_whole_on_every_device_is_split_as_the_mended_program_is(worker):
    program, arguments = data_parallel()
    compiled = ask(worker, program, arguments)

    def asked(target, changes):
        return ask(worker, program, arguments, target, changes)

    found = [one for one in verdicts(asked, compiled) if one.kind == "replicated argument"]
    assert "w['up']" in {one.array for one in found}
    for one in found:
        # The user writes what is printed.
        dims = [axes or None for axes in one.candidate.spec.dims]
        mended = ask(worker, *data_parallel(**{one.array[3:-2]: dims}))
        assert mended.memory.peak_bytes - compiled.memory.peak_bytes == one.saving.memory_bytes < 0
        assert compiled.bytes_sent - mended.bytes_sent == one.saving.sent_bytes
        assert -one.saving.memory_bytes > -one.saving.sent_bytes
    fully_split = data_parallel(up=(None, ("data", "model")), down=(("data", "model"), None))
    assert not any(one.array for one in verdicts(asked, ask(worker, *fully_split)))


def test_shapes_alone_tell_what_moves():
    from shardviz.api.inspecting import read_hlo

    text = """HloModule m, num_partitions=4

ENTRY main {
  p = f32[4,8] parameter(0)
  ROOT g = f32[16,8] all-gather(p), dimensions={0}, replica_groups=[1,4]<=[4], channel_id=1
}
"""
    (reason,) = read_hlo(text, "data=4").reasons
    assert (reason.kind, reason.meeting) == ("unknown", None)
    assert reason.words == "dimension 0 of the value is split over data, and is wanted whole"


def test_a_gradient_that_is_summed_in_steps_is_not_its_parameter():
    """The TPU's compiler sends both in permutes, which have one name and one size."""
    from shardviz.hlo import read_hlo
    from shardviz.reports.why import reasons

    name = "jit(step)/transpose(jvp())/dot_general"
    pairs = "{{0,1},{1,2},{2,3},{3,0}}"
    sent = f'channel_id=1, source_target_pairs={pairs}, metadata={{op_name="{name}"}}'
    text = f"""HloModule m, num_partitions=4

ENTRY main {{
  w = f32[4,8] parameter(0), metadata={{op_name="w"}}
  g = f32[4,8] multiply(w, w)
  p = f32[4,8] collective-permute(w), {sent}
  q = f32[4,8] collective-permute(g), {sent}
  ROOT r = f32[4,8] add(p, q)
}}
"""
    mesh = Mesh(("data",), (4,))
    split, whole = PartitionSpec((("data",), ())), PartitionSpec(((), ()))
    parameter = Meeting(
        "reshard", ("data",), split, whole, (16, 8), "f32", "argument", "dot_general", "w", name, name, "w"
    )
    gradient = Meeting(
        "sum", ("data",), whole, whole, (16, 8), "f32", "dot_general", "reshard", name, name, name
    )
    entries = entries_of(read_hlo(text, mesh, origins=True))
    assert [each.argument for each in entries] == ["w", ""]
    arguments = (
        SplitArgument(0, "w", (16, 8), "f32", split, is_returned=True),
        SplitArgument(1, "x", (32, 16), "f32", split),
    )
    found = reasons(entries, mesh, ExplicitReshards((parameter, gradient), arguments))
    assert [(each.kind, each.is_expected) for each in found] == [("parameter", True), ("gradient", True)]


def test_dimensions_are_not_layers():
    """Without the shardings that met, the number of a dimension is the reason."""
    from shardviz.api.inspecting import read_hlo

    text = """HloModule m, num_partitions=4

ENTRY main {
  p = f32[4,16] parameter(0)
  g = f32[16,16] all-gather(p), dimensions={0}, replica_groups=[1,4]<=[4], channel_id=1
  q = f32[16,4] parameter(1)
  h = f32[16,16] all-gather(q), dimensions={1}, replica_groups=[1,4]<=[4], channel_id=2
  ROOT r = f32[16,16] add(g, h)
}
"""
    report = read_hlo(text, "data=4")
    found = alike_reasons(zip(entries_of(report.module), report.reasons, strict=True))
    assert [each.name[:11] for each in found] == ["dimension 0", "dimension 1"]


def test_a_release_whose_shardy_would_crash_is_not_asked_about_loops(monkeypatch):
    from shardviz.compiler.child import answer

    def read(program):
        traced = jax.jit(program).trace(array((64, 64), "data", "model"))
        text = traced.lower(lowering_platforms=("tpu",)).as_text()
        return answer.explicit_reshards.__wrapped__(text.encode())

    monkeypatch.setattr(jax, "__version_info__", answer.CRASHING_JAX)
    assert read(lambda x: x @ x).meetings
    assert read(lambda x: jax.lax.fori_loop(0, 4, lambda _, y: y @ y, x)) is None


def test_of_meetings_that_fit_alike_none_is_claimed(worker):
    """Gradients on their way to momentum that is split otherwise: as large as the updates, and not these."""

    def train(params, momentum, x):
        grads = jax.grad(lambda p: jnp.mean((jnp.tanh(x @ p["w1"]) @ p["w2"]) ** 2))(params)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum

    params = {"w1": array((512, 512), "data", None), "w2": array((512, 512), None, "model")}
    momentum = {"w1": array((512, 512), "model", None), "w2": array((512, 512), None, "data")}
    x = array((64, 512), "data", None)
    shardings = jax.tree.map(lambda each: each.sharding, (params, momentum))
    compiled = ask(worker, jax.jit(train, out_shardings=shardings), (params, momentum, x))
    kinds = {
        (collective.op, collective.op_name.rpartition("/")[2]): reason.kind
        for collective, reason in told(compiled)
    }
    assert kinds["collective-permute", "dot_general"] == "unknown"
    assert kinds["all-reduce", "dot_general"] in ("contraction", "gradient")


def test_parameters_that_are_gathered_alike_are_all_named(worker):
    """Within a loop it is not known which argument a value comes from."""

    def program(x, w):
        def layer(x, own):
            return jnp.sin(x @ own["up"]) @ own["down"], None

        return jax.lax.scan(layer, x, w)[0]

    weights = {
        "up": array((4, 512, 256), None, "data", "model"),
        "down": array((4, 256, 512), None, "model", "data"),
    }
    compiled = ask(worker, program, (array((8192, 512), "data"), weights), target="shardy")
    words = {reason.words for _, reason in told(compiled) if reason.kind == "parameter"}
    assert words == {"w['up'] or w['down'] is stored split over data, and is wanted whole"}
