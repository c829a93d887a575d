"""Every example can be read, and shows what it claims."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives.frames import Frames
from shardviz.forms.examples import examples
from shardviz.forms.resolve import resolve
from shardviz.planner.problem.functions import statement_code
from shardviz.sharding import Layout
from shardviz.stepping.plan_run import small_run
from tests.conftest import one_in

EXAMPLES = examples()
LAYERS = [example for example in EXAMPLES if example.name]
CLAIMS = ("collectives", "shard_shape", "holders", "result", "rounds")


def array_named(scene, name):
    """The array as the plan has it: a result that is open is split as the plan decides."""
    parts = scene.problem.parts
    array = next(each for part in parts for each in (*part.operands, part.result) if each.name == name)
    if array.spec is not None:
        return array
    steps = [step for step in scene.plan.steps if step.array == name]
    return array.with_spec(steps[-1].to_spec)


def holders(layout):
    """The devices of each part of the array, in order of the parts."""
    found: dict[int, list[int]] = {}
    for device in layout:
        found.setdefault(device.shard, []).append(device.id)
    return [",".join(map(str, sorted(found[shard]))) for shard in sorted(found)]


@pytest.mark.parametrize("example", one_in(3, EXAMPLES), ids=lambda example: example.title)
def test_it_shows_what_it_claims(example):
    scene = resolve(example.draft)
    claims = example.expect
    assert scene.faults == ()
    assert claims
    assert set(claims) <= set(CLAIMS)
    if "collectives" in claims:
        found = [f"{step.op} {step.array} {','.join(step.axes)}" for step in scene.plan.collectives]
        assert found == claims["collectives"]
    for name, shape in claims.get("shard_shape", {}).items():
        found = array_named(scene, name).shard_shape(scene.problem.mesh)
        assert "x".join(map(str, found)) == shape
    for name, devices in claims.get("holders", {}).items():
        assert holders(Layout(array_named(scene, name), scene.problem.mesh)) == devices
    if "result" in claims:
        question = scene.collective
        frames = Frames(question.schedule, question.operation, question.layout.mesh, question.shards)
        after = frames.after
        found = np.concatenate([after[position] for position in question.final_positions])
        assert found.tolist() == claims["result"]
    if "rounds" in claims:
        assert scene.collective.schedule.rounds == claims["rounds"]


@pytest.mark.parametrize("example", one_in(3, LAYERS), ids=lambda example: example.name)
def test_a_layer_has_the_values_that_jax_computes_on_one_device(example):
    import jax
    import jax.numpy as jnp

    run = small_run(resolve(example.draft).plan)
    problem = run.plan.problem
    values = [whole.sum(axis=0, dtype=whole.dtype) for whole in run.whole_arguments]

    @jax.jit
    def computed(values):
        made = {array.name: one for array, one in zip(problem.arguments, values, strict=True)}
        for part in problem.parts:
            code = statement_code(part, [f"made[{operand.name!r}]" for operand in part.operands])
            made[part.result.name] = eval(code, {"jax": jax, "jnp": jnp, "made": made})
        return made

    with jax.enable_x64():
        made = computed([jnp.asarray(one) for one in values])
        for found, array in zip(run.results, problem.returned_arrays, strict=True):
            np.testing.assert_allclose(found, made[array.name], rtol=1e-6, atol=1e-9)


def test_titles_tell_examples_apart_and_fit_a_small_terminal():
    titles = [example.title for example in EXAMPLES]
    assert len({*titles}) == len(titles)
    assert max(map(len, titles)) <= 36
    assert max(len(example.look) for example in EXAMPLES) <= 104


def test_a_collective_of_its_own_opens_in_the_player():
    assert all(example.screen == "step" for example in EXAMPLES if example.draft.collective is not None)


@pytest.mark.slow
def test_all_cases_and_collectives_of_the_textbook_are_there():
    plans = [resolve(example.draft).plan for example in EXAMPLES]
    told = {case for plan in plans for case in plan.cases}
    cases = {case.split()[1] for case in told if case.startswith("case ")}
    operations = {example.draft.collective.op for example in EXAMPLES if example.draft.collective}
    planned = {step.op for plan in plans for step in plan.collectives}
    assert cases >= {"1", "2", "3", "4"}
    assert operations >= {"all_gather", "psum", "psum_scatter", "all_to_all", "ppermute", "pmean"}
    assert planned >= {"all_gather", "psum", "psum_scatter", "all_to_all"}
