"""The search over meshes: its best sharding against all shardings, its limits, its order."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest

from shardviz.codegen.problem import problem_code
from shardviz.errors import QuestionError
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import named_machine
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.search.fastest_sharding import CLOSE, MeshSearch, TooLarge, side_by_side, step_time
from shardviz.planner.search.mesh_ranking import best_meshes, problem_of, search_meshes, with_smallest_machine
from shardviz.planner.search.meshes import mesh_shapes, with_order
from shardviz.planner.search.program_space import ProgramSpaces
from shardviz.planner.search.program_tables import PipelineStage, PlacedProgram, figures, priced
from shardviz.planner.search.question import SearchQuestion, question_from_text
from shardviz.planner.search.rules import ShardingRules, parse_axes
from shardviz.planner.states.moves import StateSpace
from shardviz.planner.states.paths import ArrayKind
from shardviz.planner.states.prices import Prices
from shardviz.planner.training import Optimizer, Training
from shardviz.render.palette import PLAIN
from shardviz.render.search_view import larger_machine_words, search_view
from shardviz.sharding import Mesh
from tests.conftest import covering
from tests.planner.dijkstra import least_costs

MLP = "btd,df->btf; btf,fd->btd"
SIZES = "b=64,t=256,d=1024,f=4096"
TRAINING = Training("none", Optimizer("adam"))


def asked(text=MLP, machine="v5e:4x4", axes="data,fsdp,tensor", sizes=SIZES, **more):
    return question_from_text(text, named_machine(machine), parse_axes(axes), sizes=sizes, **more)


def tables_of(question, mesh, microbatches=1):
    rules = ShardingRules(question.axes, mesh, question.roles)
    prices = Prices(place_mesh(question.machine, with_order(question.machine, mesh)))
    space = ProgramSpaces().of(question.step, rules, question.held)
    stage = PipelineStage("", 1, 1, microbatches)
    (tables,) = priced([PlacedProgram(space, rules, prices, question.held, stage, {})])
    return tables


def fastest_of(tables, overlap, layers, limit):
    *_, found = side_by_side([MeshSearch(tables, overlap, layers, 0.0, limit).best()])
    return found


def all_shardings(tables):
    """Every choice of a state for each array and of a split of each statement's work."""
    space = tables.space
    states = product(*map(range, map(len, space.states.values())))
    splits = [range(len(each.choices)) for each in space.statements]
    leaders, choices = (np.array(each) for each in zip(*product(states, [*product(*splits)]), strict=True))
    every = [tables] * len(leaders)
    yield from (each for each in figures(space, every, leaders, choices) if np.isfinite(sum(each.work)))


@pytest.mark.parametrize("overlap", ["none", "parameters", "all"])
@pytest.mark.parametrize("axes", ["fsdp,tensor", "X,data=2", "sequence,tensor"])
@pytest.mark.parametrize("text", ["bd,df->bf", "btd,df->btf"])
def test_no_sharding_of_the_rules_is_faster(text, axes, overlap):
    sizes = "b=64,d=1024,f=4096" if text.startswith("bd,") else SIZES
    question = asked(text, "v5e:2x4", axes, sizes, overlap=overlap)
    for mesh in mesh_shapes(question.axes, 8):
        tables = tables_of(question, mesh)
        found = fastest_of(tables, overlap, 1, None)
        fastest = min(step_time(each, overlap, 1).seconds for each in all_shardings(tables))
        assert fastest * (1 - 1e-9) <= found.time.seconds <= fastest * (1 + 2 * CLOSE)
        assert found.least <= fastest * (1 + 1e-9)


@pytest.mark.slow
def test_within_memory_no_sharding_is_much_faster():
    """What fits only when parameters are split is found, and the time comes near the best that fits."""
    question = asked("btd,df->btf", "v5e:2x4", "X,Y")
    tables = tables_of(question, mesh_shapes(question.axes, 8)[1])
    every = [(each.memory, step_time(each, "none", 1).seconds) for each in all_shardings(tables)]
    memories = sorted({memory for memory, _ in every})
    for limit in memories[:: max(1, len(memories) // 8)]:
        found = fastest_of(tables, "none", 1, int(limit))
        fastest = min(seconds for memory, seconds in every if memory <= limit)
        assert found is not None
        assert found.sharding.memory <= limit
        assert found.time.seconds >= fastest * (1 - 1e-9)
        assert found.time.seconds <= fastest * 1.5
    too_large = fastest_of(tables, "none", 1, int(memories[0]) - 1)
    assert isinstance(too_large, TooLarge)
    assert too_large.smallest.memory >= memories[0]
    assert too_large.least <= min(seconds for _, seconds in every)


@pytest.mark.parametrize("microbatches", [1, 4])
def test_what_cannot_be_faster_is_left_early_and_what_can_is_found(microbatches):
    """With the seconds of another way to run the step, more or fewer than those that fit here."""
    question = asked("btd,df->btf; btf,fd->btd", "v5e:2x4", "X,Y", training=Training("none"))
    tables = tables_of(question, Mesh(("X", "Y"), (2, 4)), microbatches)
    smallest = fastest_of(tables, "parameters", 1, 1).smallest.memory
    for limit in range(int(smallest), int(smallest * 3), int(smallest * 0.4)):
        search = MeshSearch(tables, "parameters", 1, 0.0, limit)
        rounds, found = [*side_by_side([search.best()])], fastest_of(tables, "parameters", 1, limit)
        slower = replace(search, known=found.time.seconds * (1 + CLOSE))
        assert [*side_by_side([slower.best()])][-1].time == found.time
        early = [*side_by_side([replace(search, known=found.time.seconds / 2).best()])]
        assert len(early) <= len(rounds)
        assert early[-1].time.seconds >= found.time.seconds
        assert early[-1].sharding.memory <= limit


def test_every_mesh_is_found_or_said_to_be_impossible():
    answer = best_meshes(asked())
    meshes = {each.mesh for each in (*answer.found, *answer.infeasible)}
    assert meshes == set(mesh_shapes(answer.question.axes, 16))
    assert answer.is_complete
    assert [each.seconds for each in answer.found] == sorted(each.seconds for each in answer.found)
    assert all(each.seconds >= answer.least_seconds for each in answer.found)


@pytest.mark.parametrize(
    ("machine", "axes", "more", "folded"),
    [
        ("v5e:4x4", "X,Y,Z,W", {}, 8),
        ("2*v5e:4x4", "X,Y,Z", {}, 11),
        ("v5e:4x4", "X,data,Y", {"training": TRAINING}, 14),
        ("h100:8", "X,Y,Z", {"keep": "W1=X Y"}, 10),
        ("v5e:4x4", "X=fsdp,Y=fsdp", {"training": Training("none", Optimizer("adam", over=("X",)))}, 5),
    ],
)
def test_a_mesh_and_those_with_other_names_are_one(machine, axes, more, folded, monkeypatch):
    """No figure is lost beside all of them; axes that something names stay apart."""
    question = asked("bd,df->bf; bf,fd->bd", machine, axes, "b=512,d=4096,f=16384", **more)
    answer = best_meshes(question)
    monkeypatch.setattr(SearchQuestion, "named_axes", {axis.name for axis in question.axes})
    every = best_meshes(question)
    assert answer.meshes == folded <= every.meshes
    rows, others = (
        [(row.time.seconds, row.time.work, row.time.exposed, row.memory_bytes) for row, *_ in each.alike]
        for each in (answer, every)
    )
    assert rows == others


def test_of_four_axes_without_a_kind_one_of_a_single_device_changes_nothing():
    """Up to three that split one dimension stand in every order, four in the mesh's."""
    program, sizes = "bd,df->bf; bf,fd->bd", "b=512,d=4096,f=16384"
    meshes = "X=4,Y=2,Z=2", "X=4,Y=2,Z=2,W=1", "X=2,Y=2,Z=2,W=2"
    three, same, four = (best_meshes(asked(program, "v5e:4x4", axes, sizes)).found[0] for axes in meshes)
    assert same.seconds == pytest.approx(three.seconds, rel=2e-6)
    assert four.least_seconds <= four.seconds <= four.least_seconds * (1 + CLOSE)


def test_the_answer_is_the_same_on_every_run_and_goes_on_from_mesh_to_mesh():
    first, second = [*search_meshes(asked())], [*search_meshes(asked())]
    assert first[-1].found == second[-1].found
    assert [*dict.fromkeys(each.looked_at for each in first)] == [*range(first[-1].meshes + 1)]
    assert not any(each.is_complete for each in first[:-1])


def test_a_row_is_a_problem_with_its_shardings():
    question = asked(training=TRAINING)
    best = best_meshes(question).found[0]
    problem = problem_of(question, best)
    specs = dict(best.specs)
    assert problem.mesh.shape == best.mesh.shape
    assert {part.phase for part in problem.parts} == {"forward", "backward", "optimizer"}
    for part in problem.forward:
        assert part.result.spec == specs[part.result.name]
    assert {each.name: each.spec for each in problem.arguments if each.name in specs} == {
        each.name: specs[each.name] for each in question.problem.arguments
    }


ATTENTION = """
Q[b,t,k,g,h] = X[b,t,d] * WQ[d,k,g,h]
K = X[b,s,d] * WK[d,k,h]
V = X[b,s,d] * WV[d,k,h]
O = causal_attention(Q, K, V)
Y[b,t,d] = X + O * WO[k,g,h,d]
"""
EXPERTS = """
G = top_k(softmax(X[b,t,d] * WR[d,e], e), e, 2)
P = slots(G, t, c)
D[e,b,c,d] = P * X
H[e,b,c,f] = D * W1[e,d,f]
O[e,b,c,d] = silu(H) * W2[e,f,d]
Y[b,t,d] = O * scale(P, G)
"""


def test_tensor_parallelism_of_attention_splits_the_heads():
    sizes = "b=16,t=256,s=256,d=1024,k=8,g=2,h=64"
    question = asked(ATTENTION, "v5e:2x4", "data=2,tensor=4", sizes, training=Training("none", None))
    assert question.roles.positions == {"t", "s"}
    (found,) = best_meshes(question).found
    specs = dict(found.specs)
    assert specs["Q"].dims == (("data",), (), ("tensor",), (), ())
    assert specs["WQ"].dims[1] == specs["WO"].dims[0] == ("tensor",)


def test_the_scale_of_a_norm_has_no_experts():
    question = question_from_text(
        "N[b,d] = X[b,d] * S[d]; Y = N * W[d,f]",
        named_machine("v5e:2x4"),
        parse_axes("data,expert"),
        sizes="b=8,d=8,f=8",
    )
    assert question.roles.experts == set()


def test_an_expert_axis_splits_the_experts_and_brings_them_their_tokens():
    sizes = "b=16,t=64,d=512,e=8,f=2048,c=32"
    question = asked(EXPERTS, "v5e:2x4", "data=2,expert=4", sizes)
    assert question.roles.experts == {"e"}
    (found,) = best_meshes(question).found
    specs = dict(found.specs)
    assert specs["W1"].dims[0] == specs["H"].dims[0] == ("expert",)
    assert specs["X"].dims[0] == ("data", "expert")
    assert ("expert",) in [axes for axes, _ in found.time.communication]


def test_communication_over_a_set_of_axes_is_said_once_in_the_order_of_the_mesh():
    sizes = "b=16,t=64,d=512,e=8,f=2048,c=32"
    question = asked(EXPERTS, "v5e:4x4", "data=2,fsdp=4,expert=2", sizes, training=TRAINING)
    (found,) = best_meshes(question).found
    sets = [axes for axes, _ in found.time.communication]
    assert len({frozenset(axes) for axes in sets}) == len(sets)
    assert ("data", "fsdp") in sets


def test_a_sequence_axis_splits_the_positions():
    question = asked(axes="data=4,sequence=4")
    specs = dict(best_meshes(question).found[0].specs)
    assert specs["H1"].dims == (("data",), ("sequence",), ())


def test_what_is_kept_does_not_change():
    answer = best_meshes(asked(keep="W1=tensor _"))
    for found in answer.found:
        assert dict(found.specs)["W1"].dims[0] == (("tensor",) if found.mesh.axis_size("tensor") > 1 else ())


def test_a_batch_that_does_not_divide_is_a_reason():
    answer = best_meshes(asked(axes="data", sizes="b=8,t=256,d=1024,f=4096"))
    assert answer.found == ()
    assert answer.infeasible[0].reason == "b=8 of A is not divisible by data=16"


def test_too_little_memory_is_a_reason():
    answer = best_meshes(asked(f"{MLP} x 1000", training=TRAINING, axes="data"))
    assert answer.found == ()
    assert "each device would hold" in answer.infeasible[0].reason
    assert answer.infeasible[0].memory_bytes > answer.question.machine.device.limit_bytes


CACHES = "S[b,s] = Q[b,h] * K[b,s,h]; Y[b,h] = softmax(S, s) * V[b,s,h]"


def test_each_layer_has_its_own_caches():
    """80 layers with keys and values of 1 GiB each: 160 GiB, of which each of 4 chips has 40 at least."""
    sizes = "b=16,s=8192,h=4096"
    answer = best_meshes(asked(f"{CACHES} x 80", "v5e:2x2", sizes=sizes))
    assert answer.found == ()
    assert min(each.memory_bytes for each in answer.infeasible) > 40 * 2**30
    (first, *_) = best_meshes(asked(f"{CACHES} x 80", "v5e:4x4", sizes=sizes)).found
    assert 10 * 2**30 < first.memory_bytes < 11 * 2**30
    said = " ".join(line.plain for line in search_view(answer, 200, PLAIN, 5, verbose=True))
    assert "Memory: each of the 80 layers has its own K, V; Q passes through all." in said


@pytest.mark.parametrize(
    ("text", "own", "passed"),
    [
        ("H = X[b,d] * W1[d,f]; Y = X + silu(H) * W2[f,d] x 8", ("W1", "W2"), "X"),
        (f"{CACHES} x 8", ("K", "V"), "Q"),
        ("Y[b,d] = g[d] * X[b,d] x 8", ("g",), "X"),
        ("bd,df->bf; bf,fd->bd x 8", ("W1", "W2"), "A"),
        ("bd,df->bf x 8", ("A", "W"), None),
        ("bd,df->bf", (), None),
    ],
)
def test_an_argument_is_the_layers_own_or_passes_through(text, own, passed):
    question = asked(text, sizes="")
    problem = question.problem
    assert problem.own_arguments == own
    assert (problem.passed_on and problem.passed_on.name) == passed
    if problem.layers > 1:
        assert question.held == dict.fromkeys(own, 8.0) | ({passed: 1.0} if passed else {})


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("bdd,f->bf", ""),
        ("bx,xy->by; by,yzbz", ""),
        ("N = rms_norm(X[b,d], d, g[d]); Y = N * W[d,f]", "b=0,d=0"),
    ],
)
def test_a_train_step_of_diagonals_and_of_nothing_is_searched(text, sizes):
    """No axis splits a dimension that an array has twice, a gradient neither."""
    assert best_meshes(asked(text, "v5e:2x2", sizes=sizes, training=Training("none"))).looked_at


@pytest.mark.slow
@pytest.mark.parametrize("text", [CACHES, "Y[b,h] = g[h] * K[b,h]"])
def test_xla_takes_as_many_bytes_of_arguments(text, printed_by):
    """The program of 4 layers that JAX runs has the arguments that the memory counts."""
    problem = problem_from_text(f"{text} x 4", mesh=Mesh(("X",), (2,)), sizes="b=8,h=32", dtype="f32")
    code = problem_code(problem) + "\nprint(compiled.memory_analysis().argument_size_in_bytes)\n"
    counts = dict.fromkeys(problem.own_arguments, 4)
    taken = sum(
        array.bytes_per_device(problem.mesh) * counts.get(array.name, 1) for array in problem.arguments
    )
    assert printed_by({"layers": code})["layers"].splitlines()[-1] == str(taken)


def test_the_smallest_machine_that_would_do_is_named():
    answer = best_meshes(
        asked(f"{MLP} x 500", training=TRAINING, machine="v5e:2x4", axes="fsdp,tensor", microbatches=1)
    )
    assert answer.found == ()
    named = with_smallest_machine(answer).smallest_machine
    assert best_meshes(replace(answer.question, machine=named_machine(named))).found
    half = {"v5e:4x8": "v5e:4x4", "v5e:8x8": "v5e:4x8", "v5e:4x4": "v5e:2x4"}[named]
    assert not best_meshes(replace(answer.question, machine=named_machine(half))).found
    assert with_smallest_machine(best_meshes(asked())).smallest_machine == ""


def test_where_no_machine_would_do_the_largest_that_was_tried_is_named():
    answer = best_meshes(asked(f"{MLP} x 50000", training=TRAINING, machine="v5e:8x8", axes="fsdp"))
    named = with_smallest_machine(answer)
    assert (named.smallest_machine, named.largest_machine_tried) == ("", "v5e:16x16")
    assert with_smallest_machine(best_meshes(asked())).largest_machine_tried == ""
    lines = " ".join(line.plain for line in search_view(named, 100, PLAIN, 10))
    assert "No larger machine fits either, up to v5e:16x16." in lines
    words = larger_machine_words(replace(named, fitting_options="--remat layer"))
    assert words.endswith("it fits on v5e:8x8. As asked, no larger machine fits either, up to v5e:16x16.")


@pytest.mark.parametrize("machine", ["h100:1024x8", "h100:2048x8", "32*v2:2x2"])
def test_a_machine_is_not_looked_for_among_those_that_nobody_can_ask_about(machine):
    answer = best_meshes(asked(f"{MLP} x 9000000", training=TRAINING, machine=machine, axes="fsdp"))
    named = with_smallest_machine(answer)
    assert named.smallest_machine == ""
    assert named.largest_machine_tried in ("", "h100:2048x8", "32*v2:16x16")


@pytest.mark.parametrize(
    ("axes", "text"),
    covering(
        ["data,fsdp,tensor", "X,Y", "fsdp,sequence"],
        [MLP, "H = X[b,t,d] * W1[d,f]; Y = X + silu(H) * W2[f,d]"],
    ),
)
def test_the_figures_of_a_row_are_those_of_its_plan(text, axes):
    """Forward; a plan may also be cheaper, by what the search leaves out. Its bound overlaps everything."""
    question = asked(text, axes=axes, overlap="all")
    for found in best_meshes(question).found[:3]:
        cost = price(plan(problem_of(question, found), found.placed), found.placed)
        assert cost.compute_seconds == pytest.approx(found.time.work, rel=1e-9)
        assert cost.communication_seconds == pytest.approx(
            found.time.communication_seconds, rel=1e-9, abs=1e-15
        )
        assert cost.peak_bytes == found.memory_bytes
        # The axes of the plan's step, in the order of the mesh.
        assert sorted(found.bound) == sorted(cost.bound.partition(" on ")[0])


def test_the_memory_of_a_train_step_is_nearly_that_of_its_plan():
    """Gradients of some layers and activations of the others are there at once, not both of all."""
    question = asked(f"{MLP} x 32", machine="v5e:2x4", training=TRAINING)
    for found in best_meshes(question).found[:2]:
        cost = price(plan(problem_of(question, found), found.placed), found.placed)
        assert found.memory_bytes == pytest.approx(cost.layers_peak_bytes, rel=0.05)


SECONDS = {
    MLP: SIZES,
    "H = X[b,t,d] * W1[d,f]; G = X * W2[d,f]; Y = X + (silu(H) * G) * W3[f,d]": SIZES,
    "N = rms_norm(X[b,t,d], d, g[d]); Y = X + gelu(N * W1[d,f]) * W2[f,d]": SIZES,
    "S = softmax(X[b,t,d] * W1[d,f], f); Y = S * W2[f,d]": SIZES,
    "E = take(W[v,d], T[b,t]); L = E * W": "b=64,t=256,d=1024,v=8192",
    "ab,bc,cd->ad": "a=4096,b=1024,c=4096,d=64",
    ATTENTION: "b=16,t=256,s=256,d=1024,k=8,g=2,h=64",
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "device"), covering([*SECONDS], [("v5e:2x4", "s8"), ("h100:1x8", "bf16")]))
def test_the_seconds_of_the_best_are_those_of_explain(text, device):
    """For the same mesh and specs, where nothing is hidden."""
    machine, dtype = device
    question = asked(text, machine, sizes=SECONDS[text], overlap="none", dtype=dtype)
    best = best_meshes(question).found[0]
    cost = price(plan(problem_of(question, best), best.placed), best.placed)
    assert cost.compute_seconds == pytest.approx(best.time.work, rel=1e-9)
    assert cost.serial_seconds == pytest.approx(best.seconds, rel=1e-9)


@pytest.mark.parametrize(
    ("remat", "text"), covering(["none", "layer"], [MLP, "H = X[b,t,d] * W1[d,f]; Y = X + silu(H) * W2[f,d]"])
)
def test_a_train_step_is_near_its_plan(text, remat):
    """A plan gathers what recomputation and gradients both take once, and holds it in between."""
    question = asked(f"{text} x 4", axes="fsdp,tensor", training=Training(remat, Optimizer("adam")))
    for found in best_meshes(question).found[:4]:
        cost = price(plan(problem_of(question, found), found.placed), found.placed)
        time = (found.time.work + found.time.communication_seconds) / 4
        assert cost.serial_seconds == pytest.approx(time, rel=0.1)
        assert 0.7 < found.memory_bytes / cost.training_memory.peak < 1.1


def test_layers_take_as_often_as_long_and_end_as_they_begin():
    one, many = best_meshes(asked()), best_meshes(asked(f"{MLP} x 10"))
    specs = dict(many.found[0].specs)
    assert specs["A"] == specs["Out"]
    assert many.found[0].seconds >= 10 * one.found[0].seconds * (1 - 1e-9)


def test_a_pipeline_waits():
    question = asked(f"{MLP} x 8", axes="pipeline=4,fsdp", microbatches=4, interleave=1)
    found = best_meshes(question).found[0]
    assert found.time.bubble == pytest.approx(found.seconds * 3 / 7)
    assert best_meshes(replace(question, microbatches=8)).found[0].time.bubble < found.time.bubble
    twice = best_meshes(replace(question, interleave=2)).found[0]
    assert twice.time.bubble / (twice.seconds - twice.time.bubble) == pytest.approx(3 / 8)
    sent, often = (dict(each.time.communication)[("pipeline",)] for each in (found, twice))
    assert often == pytest.approx(2 * sent)
    with pytest.raises(QuestionError, match="a pipeline needs several layers"):
        asked(axes="pipeline,fsdp")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data,data", "the axis data is given twice"),
        ("1x", "is not an axis name"),
        ("X=speed", "neither a kind of axis nor a size"),
        ("X=0", "neither a kind of axis nor a size"),
        ("a,b,c,d,e,f", "at most 5 axes"),
        ("a,b,c,d,e", "more than 4 axes have no kind"),
        ("pp,stage", "several pipeline axes"),
    ],
)
def test_axes_that_cannot_be_read(text, message):
    with pytest.raises(QuestionError, match=message):
        parse_axes(text)


def test_axes_have_the_kind_of_their_name():
    kinds = [(axis.name, axis.kind, axis.size) for axis in parse_axes("dp,X=fsdp,tensor=8,Y")]
    assert kinds == [("dp", "data", None), ("X", "fsdp", None), ("tensor", "tensor", 8), ("Y", "any", None)]


@pytest.mark.parametrize("axes", ["data,fsdp,tensor", "X,Y"])
def test_no_way_of_a_search_takes_less_than_the_cheapest_moves(axes):
    """Its collectives are moves that a plan can have, at its prices, which are rounded up to nanoseconds."""
    question = asked(ATTENTION, axes=axes, sizes="b=16,t=64,s=64,d=64,k=8,g=2,h=64")
    mesh = next(each for each in mesh_shapes(question.axes, 16) if min(each.axis_sizes) > 1)
    tables = tables_of(question, mesh)
    prices, compared = tables.program.prices, 0
    space = StateSpace({axis: mesh.axis_size(axis) for axis in tables.space.ways.wide}, mesh.shape)
    for number, statement in enumerate(tables.space.statements):
        array, name = statement.part.result, statement.variables[-1]
        afters, first = tables.space.states[name], tables.space.state_rows[tables.space.names.index(name)]
        place = next(edge[3] for edge in tables.space.edges.T[::-1] if edge[0] == number)
        start = tables.space.split_starts[number]
        befores = [*dict.fromkeys(choice.states[-1] for choice in statement.choices)]
        divide = [at for at in range(len(statement.choices)) if tables.work[start + at] < inf]
        for before in {statement.choices[at].states[-1] for at in divide}:
            cheapest = least_costs(space, ArrayKind(array.shape, array.dtype), prices, {before: 0})
            row = tables.moves[place + befores.index(before) * len(afters) :][: len(afters)]
            row = np.where(tables.even[first:][: len(afters)], row, inf)
            for after, own in zip(afters, row, strict=True):
                if own < inf:
                    assert own > prices.figure(cheapest[after], "time") / 1e9 - 1e-8
                    compared += own > 0
    assert compared > 10


@pytest.mark.parametrize("machine", ["v5e:4x4", "h100:8"])
@pytest.mark.parametrize(("batch", "is_sent"), [(2048, True), (16384, False)])
def test_a_step_as_published_runs_go_is_one_figure_of_search_and_plan(machine, batch, is_sent):
    """A pass that communication bounds takes no longer where its work reaches less than the peak."""
    question = asked(f"{MLP} x 8", machine, "fsdp", f"b={batch},t=16,d=1024,f=4096", training=TRAINING)
    found = best_meshes(question).found[0]
    cost = price(plan(problem_of(question, found), found.placed), found.placed)
    assert cost.published_seconds * cost.layers == pytest.approx(found.published_seconds, rel=1e-9)
    share = question.machine.reached
    assert (cost.published_seconds < cost.overlapped_seconds / share * (1 - 1e-9)) == is_sent
    assert cost.published_seconds >= max(cost.compute_seconds / share, cost.communication_seconds) * 0.999


def test_a_row_that_may_not_fit_says_so():
    answer = best_meshes(
        asked(f"{MLP} x 20", "v5e:4x4", "fsdp", "b=64,t=4Ki,d=4Ki,f=14Ki", training=TRAINING)
    )
    (row,) = answer.found
    assert (
        row.memory_bytes
        <= answer.question.machine.device.limit_bytes
        < row.allocated_bytes
        == round(row.memory_bytes * 1.38)
    )
    lines = [line.plain for line in search_view(answer, 100, PLAIN, 10)]
    assert any(" ? 1" in line for line in lines)
    assert "? may not fit: compilers were seen to allocate up to 38 % more than an estimate." in lines


def test_experts_go_to_their_devices_beside_norms_and_fsdp():
    """The weight of a norm has a dimension that its product keeps, as experts are, and no experts. Of a batch
    over fsdp and expert axes the tokens of experts go by one all-to-all: the minor axis leaves the batch."""
    moe = (
        "N = rms_norm(X[b,t,d], d, G[d]); S = top_k(softmax(N * R[e,d], e), e, 2); "
        "T[e,b,c,d] = dispatch(N, S, t, c); H[e,b,c,f] = T * W1[e,d,f]; M[e,b,c,d] = H * W2[e,f,d]; "
        "Y[b,t,d] = combine(M, S, t, c)"
    )
    question = asked(moe, axes="fsdp=4,expert=4", sizes="b=64,t=2Ki,d=4Ki,f=16Ki,e=16,c=256")
    assert question.roles.experts == {"e"}
    (row,) = best_meshes(question).found
    specs = dict(row.specs)
    assert specs["X"].dims[0] == ("fsdp", "expert")
    assert specs["H"].dims[:2] == (("expert",), ("fsdp",))
