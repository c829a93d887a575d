"""Verdicts: each planted waste is found, and gone with the printed change; clean programs have none."""

from __future__ import annotations

import jax
import pytest

from shardviz.compiler.lowering import lower_program
from shardviz.reports.verdicts import verdicts
from shardviz.targets import EXTRAS, parse_targets
from tests.compiler.wastes import ASYNCHRONOUS, CLEAN, WASTES, array, squares, updated
from tests.conftest import one_row_in

CODE = {
    "reduction in a loop": (
        "jax.shard_map(lambda *own: jax.lax.psum(loop(*own), ('data',)), axis_names={'data'}, …)"
    ),
    "gather then slice": "delete x = jax.lax.with_sharding_constraint(x, P('data', None, None))",
    "superfluous constraint": "delete x = jax.lax.with_sharding_constraint(x, P('data', None))",
    "small dimension": "k: P(('data', 'model'), None, None, None) in place of P('data', None, None, 'model')",
    "lookup": "x = jax.lax.with_sharding_constraint(x, P('data', None, None))",
    "lookup at places that are known": "u: P(None, None) in place of P('data', None)",
    "lost donation": (
        "out_shardings, result 0: P('data', None, 'model', None) in place of P('data', None, None, None)"
    ),
    "rematerialization": "x: P(None, ('data', 'model'), None) in place of P('model', None, 'data')",
    "reshaped batch": "x = jax.lax.with_sharding_constraint(x, P(None, 'data', None))",
    "convolution": "x: P(('data', 'model'), None, None, None) in place of P('data', None, None, 'model')",
    "padding": (
        "x = jax.lax.with_sharding_constraint(x, P(('data', 'model'), None, None, None)) "
        "in place of P('data', None, 'model', None)"
    ),
    "replicated argument": "w['up']: P(None, 'model') in place of P(None, None)",
    "no overlap": "delete jax.lax.optimization_barrier(…)",
    "no overlap at an option": f"jax.jit(…, compiler_options={dict.fromkeys(ASYNCHRONOUS, 'true')})",
}
TPU = "v5e:2x4"
needs_libtpu = pytest.mark.skipif(not EXTRAS["tpu"].installed, reason="the extra tpu is not installed")
MINUTES = {"convolution", "lookup", "replicated argument", "sequence_parallel"}


def compiled(worker, program, arguments, target):
    """The program on a target, and what asks for it with changes."""
    (asked,) = parse_targets(target)
    lowered = lower_program(program, arguments, {}, asked.platform)

    def ask(name, changes):
        (one,) = parse_targets(name)
        return worker.compile(lowered, one, changes=changes).result()

    return ask(target, ()), ask


def seconds(program):
    times = program.times().times
    return None if times is None else times.model.seconds


def on_both(names):
    """Each name with both targets, but for those that take the TPU's compiler a minute."""
    simulated = [name for name in names if not str(name).startswith("no overlap")]  # on CPUs nothing overlaps
    yield from one_row_in(2, ((name, "cpu") for name in simulated))
    for name in names:
        if getattr(name, "__name__", name) not in MINUTES:
            yield pytest.param(name, TPU, marks=needs_libtpu if name == "no overlap" else pytest.mark.slow)


@pytest.mark.parametrize(("name", "target"), [*on_both(WASTES)])
def test_a_planted_waste_is_found_and_gone_with_the_printed_change(worker, name, target):
    program, ask = compiled(worker, *WASTES[name](is_mended=False), target)
    mended, _ = compiled(worker, *WASTES[name](is_mended=True), target)
    found = verdicts(ask, program)
    if (name, target) == ("reduction in a loop", TPU):
        # XLA for TPUs takes this sum out of the loop by itself.
        assert mended.bytes_sent == program.bytes_sent
        assert name not in {each.kind for each in found}
        return
    (one,) = (each for each in found if each.code == CODE[name])
    assert one.kind == name.partition(" at ")[0]
    assert one.source.partition(":")[0].endswith("wastes.py") or one.array
    assert one.saving.sent_bytes == pytest.approx(program.bytes_sent - mended.bytes_sent, rel=0.05, abs=64)
    if one.target:
        freed = program.memory.peak_bytes - mended.memory.peak_bytes
        assert -one.saving.memory_bytes == pytest.approx(freed, rel=0.05, abs=2**20)
        if target == TPU:
            assert one.saving.seconds == pytest.approx(seconds(program) - seconds(mended), rel=0.05)
    ordered = [each.saving.seconds or 0.0 for each in found]
    assert ordered == sorted(ordered, reverse=True)


@pytest.mark.parametrize(("clean", "target"), [*on_both(CLEAN), *((each, "shardy") for each in CLEAN)])
def test_a_clean_program_has_no_verdict(worker, clean, target):
    program, ask = compiled(worker, *clean(), target)
    assert verdicts(ask, program) == ()


def test_no_change_loses_a_donation(worker):
    def step(w, x):
        return updated(w, jax.grad(squares)(w, x))

    weights = {"up": array((1024, 4096), None, None), "down": array((4096, 1024), None, None)}
    x = array((256, 1024), ("data", "model"), None)
    program, ask = compiled(worker, jax.jit(step, donate_argnums=0), (weights, x), "cpu")
    kept = [ask("cpu", (each.candidate,)) for each in verdicts(ask, program) if each.candidate]
    aliased = [one.answer.text.count("may-alias") for one in (program, *kept)]
    assert aliased[0] == 2
    assert {*aliased} == {2}
