"""The parts of axes over which a problem's arrays may be split, and the states that specs say."""

from __future__ import annotations

from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.statements.axis_pool import MOST_CUT, AxisPool
from shardviz.sharding import Mesh, PartitionSpec


def pool(specs, shape, text="bd,df->bf", sizes="b=64,d=64,f=64", **more):
    mesh = Mesh(tuple(shape), tuple(shape.values()))
    return AxisPool.of(problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes), **more)


def test_axes_that_no_array_names_are_left_out():
    assert pool("X_,__->X_", {"X": 2, "Y": 4}).sizes == {"X": 2}


def test_axes_of_one_device_split_nothing():
    found = pool("(XY)_,__->X_", {"X": 2, "Y": 1})
    assert found.sizes == {"X": 2}
    assert found.state(PartitionSpec((("X", "Y"), ()))) == ((("X",), ()), ())


def test_an_axis_is_cut_where_a_spec_names_a_part_of_it():
    found = pool("A=P('X:(1)2', None), W=P(None, 'X')", {"X": 8})
    assert found.sizes == {"X:(1)2": 2, "X:(2)4": 4}
    assert found.state(PartitionSpec((("X",), ()))) == ((("X:(1)2", "X:(2)4"), ()), ())
    assert not found.is_finest


def test_axes_are_cut_into_primes_where_that_makes_few_parts():
    assert pool("X_,__", {"X": 4}).sizes == {"X": 4}
    fine = pool("X_,__", {"X": 4}, into_primes=True)
    assert fine.sizes == {"X:(1)2": 2, "X:(2)2": 2}
    assert fine.is_finest
    most = pool("XY,__", {"X": 16, "Y": 16}, into_primes=True)
    assert (len(most.sizes), most.is_finest) == (MOST_CUT, True)
    many = pool("XY,__", {"X": 32, "Y": 16}, into_primes=True)
    assert (many.sizes, many.is_finest) == ({"X": 32, "Y": 16}, False)


def test_the_splits_that_are_given():
    assert pool("X_,_Y->__", {"X": 2, "Y": 4}).splits == {("b", "X"), ("f", "Y")}


def test_an_open_result_is_split_as_some_array_is():
    mesh = Mesh(("X", "Y"), (2, 4))
    problem = problem_from_text("bd,df->bf", mesh=mesh, specs="X_,_Y", sizes="b=64,d=64,f=64")
    states = set(AxisPool.of(problem).open_states(problem.result))
    assert states == {((b, f), ()) for b in ((), ("X",)) for f in ((), ("Y",))}


def test_sums_pend_only_where_a_spec_wants_that():
    assert pool("X_,__->X_", {"X": 2, "Y": 4}).may_mask == frozenset()
    assert pool("X_,__->X_{U_Y}", {"X": 2, "Y": 4}).may_mask == {"Y"}
