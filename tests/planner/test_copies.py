"""The copies of an array, and the moves that make them."""

from shardviz.planner.planner import Planner
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.program_planner import StatementChoices
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.states.paths import ArrayKind
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (2, 4))
KIND = ArrayKind((64, 64), "bf16")
WHOLE, BY_X, BY_Y = (((), ()), ()), ((("X",), ()), ()), ((("Y",), ()), ())


def moves():
    problem = problem_from_text("bd,df->bf", mesh=MESH, specs="XY,Y_->X_", sizes="b=64,d=64,f=64")
    pool = AxisPool.of(problem)
    return StatementChoices(StatementWays(pool, MESH, Planner(MESH).prices))


def test_copies_that_are_alike_are_one_object():
    of = moves()
    assert of.copies(KIND, WHOLE, BY_X) is of.copies(KIND, WHOLE, BY_X)
    assert of.copies(KIND, WHOLE, BY_X) is of.with_copies(of.copies(KIND, WHOLE), [BY_X])
    assert of.copies(KIND, WHOLE) is not of.copies(ArrayKind((64, 64), "f32"), WHOLE)


def test_a_limit_hides_dearer_ways_and_no_others():
    of = moves()
    held, goal = of.copies(KIND, BY_X, BY_Y), of.copies(KIND, WHOLE)
    assert moves().nearest(held, WHOLE, 1) is None
    cost, start = of.nearest(held, WHOLE)
    assert cost == min(of.nearest(of.copies(KIND, each), WHOLE)[0] for each in (BY_X, BY_Y))
    assert start in (BY_X, BY_Y)
    assert moves().imitation(held, goal, cost) is None
    assert moves().imitation(held, goal, cost + 1) == of.imitation(held, goal) == cost
