"""Plans of programs whose arrays are used several times: what is gathered once, and what is pending."""

import math

import pytest

from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (4, 4))
SIZES = "b=16,t=4096,d=4096,f=14336"
HEADS = "k=8,g=4,h=128"
SWIGLU = "H = A[b,t,d] * W1[d,f]; G = A * W2[d,f]; Y[b,t,d] = (silu(H) * G) * W3[f,d]"
LAYER = """
N = rms_norm(A[b,t,d], d, g1[d])
Q = N * WQ[d,k,g,h]; K = N[b,s,d] * WK[d,k,h]; V = N[b,s,d] * WV[d,k,h]
O = causal_attention(Q, K, V)
R[b,t,d] = A + O * WO[k,g,h,d]
M = rms_norm(R, d, g2[d])
H = M * W1[d,f]; G = M * W2[d,f]
D[b,t,d] = (silu(H) * G) * W3[f,d]
Y[b,t,d] = R + D
"""
COLUMNS_THEN_ROWS = "WQ=_Y__,WK=_Y_,WV=_Y_,WO=Y___,W1=_Y,W2=_Y,W3=Y_,g1=_,g2=_"


def planned(text, specs, sizes=SIZES, planner=None, mesh=MESH):
    if text == LAYER:
        sizes = f"{sizes},{HEADS}"
    problem = problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes)
    return (planner or Planner(mesh)).plan(problem)


def collectives(plan):
    return [f"{step.op} {step.array} over {','.join(step.axes)}" for step in plan.collectives]


def test_a_swiglu_by_columns_then_rows_adds_its_sums_once():
    plan = planned(SWIGLU, "A=X__,W1=_Y,W2=_Y,W3=Y_")
    assert collectives(plan) == ["psum Y over Y"]


def test_a_plan_is_called_the_best_only_where_no_other_split_of_the_work_can_be_better():
    mesh = Mesh(("X", "Y"), (2, 3))
    weights = "WQ=(XY)___,WK=(XY)__,WV=(XY)__,WO=___(XY),W1=(XY)_,W2=(XY)_,W3=_(XY),g1=_,g2=_"
    sizes = "b=12,t=4096,d=6144,f=12288"
    best = planned(LAYER, f"A=(XY)__,{weights}", sizes, mesh=mesh)
    assert best.optimal
    assert best.at_most is None
    # Sequences over both axes would be quicker on links so much slower than the arithmetic.
    other = planned(LAYER, f"A=X__,{COLUMNS_THEN_ROWS}", sizes, mesh=mesh)
    assert not other.optimal
    assert other.at_most is not None
    assert 1 < other.at_most < 1.6


def test_pending_sums_of_arguments_count_among_all_plans():
    # The sum of W stays pending through the product, and is added into pieces behind it.
    text, specs = "P = A[b,d] * W[f,b]; Q = P + V[d,f]; Y[d,f] = Q + P", "A=__,W=__{U_X},V=__"
    mesh = Mesh(("X",), (4,))
    plan = planned(text, specs, "b=4096,d=64,f=1024", mesh=mesh)
    fastest = planned(text, specs, "b=4096,d=64,f=1024", Planner(mesh, anywhere=True), mesh)
    own, other = (price(each, Planner(mesh).placed).serial_seconds for each in (plan, fastest))
    assert other < own
    assert not plan.optimal
    assert plan.at_most >= own / other


def test_work_is_split_elsewhere_than_the_arrays_are_where_it_takes_half_as_long():
    text, specs, mesh = (
        "P = A[b,d] * W[d,f]; Y = (silu(P) * P) * V[f,g]",
        "A=__,W=__,V=_X",
        Mesh(("X",), (4,)),
    )
    sizes = "b=4096,d=4096,f=4096,g=64"
    own, elsewhere = (
        price(planned(text, specs, sizes, each, mesh), each.placed)
        for each in (Planner(mesh), Planner(mesh, anywhere=False))
    )
    assert elsewhere.serial_seconds > 2 * own.serial_seconds
    assert elsewhere.flops > 2 * own.flops


def test_the_fastest_plan_of_a_program_stands_beside_one_that_keeps_to_how_the_arrays_are_split():
    kept = price(planned(LAYER, f"A=X__,{COLUMNS_THEN_ROWS}"), Planner(MESH).placed)
    fastest = next(each for each in kept.alternatives if each.name == "fastest")
    assert kept.serial_seconds / 2 < fastest.cost.serial_seconds < 0.9 * kept.serial_seconds


def test_nothing_is_claimed_where_axes_could_be_cut_further_or_statements_could_be_several():
    specs = "A=X__,W1=_Y,W2=_Y,W3=Y_"
    plan = planned(SWIGLU, specs, mesh=Mesh(("X", "Y"), (8, 8)))
    assert not plan.optimal
    assert plan.at_most is None
    assert planned(SWIGLU, specs).optimal
    text = "P[b] = A[b,d] * W[b]; Y = P + W"
    plan = planned(text, "A=X_,W=_", "b=64,d=64", mesh=Mesh(("X",), (2,)))
    assert not plan.optimal
    assert plan.at_most is None


def test_what_two_statements_need_is_gathered_once():
    plan = planned(SWIGLU, "A=X_Y,W1=_Y,W2=_Y,W3=Y_,Y=X_Y")
    assert collectives(plan) == ["all_gather A over Y", "psum_scatter Y over Y"]


def test_a_layer_by_columns_then_rows_adds_twice():
    plan = planned(LAYER, f"A=X__,{COLUMNS_THEN_ROWS}")
    assert [step.op for step in plan.collectives] == ["psum", "psum"]
    # Behind the statements that leave them, and not where they are needed.
    places = [plan.steps.index(step) for step in plan.collectives]
    assert all(plan.steps[place - 1].op == "einsum" for place in places)


def test_fully_sharded_weights_are_gathered_before_they_are_used():
    weights = "WQ=(XY)___,WK=(XY)__,WV=(XY)__,WO=___(XY),W1=(XY)_,W2=(XY)_,W3=_(XY),g1=_,g2=_"
    plan = planned(LAYER, f"A=(XY)__,{weights}")
    assert collectives(plan) == [
        f"all_gather {name} over X,Y" for name in ("WQ", "WK", "WV", "WO", "W1", "W2", "W3")
    ]


def test_the_priced_plan_costs_what_the_planner_counted():
    planner = Planner(MESH)
    plan = planned(LAYER, f"A=X__,{COLUMNS_THEN_ROWS}", planner=planner)
    cost = price(plan, planner.placed)
    assert not cost.unknown
    assert cost.flops > 0
    assert all(step.flops > 0 for step in cost.steps if step.step.op == "apply")


def test_of_several_layers_the_weights_are_gathered_again_for_the_backward_pass():
    from shardviz.planner.training import Training, with_backward

    text = "H = A[b,d] * W1[d,f]; Y[b,d] = A + H * W2[f,d]"
    specs, sizes = "A=(XY)_,W1=(XY)_,W2=_(XY)", "b=65536,d=4096,f=8192"
    for layers, gathers in ((1, 1), (4, 2)):
        words = f"{text} x {layers}" if layers > 1 else text
        problem = problem_from_text(words, mesh=MESH, specs=specs, sizes=sizes)
        plan = Planner(MESH).plan(with_backward(problem, Training()))
        assert collectives(plan).count("all_gather W2 over X,Y") == gathers


def test_all_layers_take_as_often_the_time_and_hold_their_own_weights():
    planner = Planner(MESH)
    one, many = (
        price(planned(SWIGLU + layers, "A=X__,W1=_Y,W2=_Y,W3=Y_,Y=X__", planner=planner), planner.placed)
        for layers in ("", " x 32")
    )
    assert many.serial_seconds == one.serial_seconds
    assert many.layers_seconds == pytest.approx(32 * one.serial_seconds)
    weights = 3 * 4096 * 14336 * 2 // 4
    assert many.layers_peak_bytes == one.peak_bytes + 31 * weights


def test_other_names_of_a_dimension_are_split_alike():
    plan = planned("Q = A[b,t,d] * WQ[d,h]; K = A[b,s,d] * WK[d,h]; S = Q * K", "A=XY_,WQ=__,WK=__", "h=128")
    made = {step.array: step.to_spec.dims for step in plan.steps if step.op == "einsum"}
    assert made["K"][1] == ("Y",)


@pytest.mark.parametrize(
    ("text", "specs", "sizes"),
    [
        ("bd,df->bf; bf,fd->bd", "XY,Y_->?;?,_Y->XY", "b=64,d=128,f=256"),
        ("bd,df->bf; bf,fd->bd", "X_,_Y->?;?,Y_->X_", "b=64,d=128,f=256"),
        ("bd,df->bf", "_X,XY->_Y", "b=64,d=128,f=256"),
    ],
)
def test_a_chain_costs_as_little_as_with_the_planner_of_trees(text, specs, sizes):
    from shardviz.planner.program_planner import StatementChoices, planned_program
    from shardviz.planner.statements.axis_pool import AxisPool
    from shardviz.planner.statements.statement_ways import StatementWays

    planner = Planner(MESH)
    problem = problem_from_text(text, mesh=MESH, specs=specs, sizes=sizes)
    pool = AxisPool.of(problem)
    choices = StatementChoices(StatementWays(pool, MESH, planner.prices, pool.splits))
    cost, _ = planned_program(choices, problem)
    steps = price(planner.plan(problem), planner.placed).steps
    nanoseconds = sum(math.ceil(1e9 * step.seconds - 1e-6) for step in steps)
    assert planner.prices.figure(cost, "time") == pytest.approx(nanoseconds)
