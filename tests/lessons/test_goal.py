"""The sandbox against the goal: any equivalent sharding passes, of any other the first difference is said."""

from __future__ import annotations

import re

import pytest

from shardviz.forms.options import form_from_table
from shardviz.forms.resolve import resolve, resolve_first
from shardviz.lessons.course import course
from shardviz.lessons.goal import first_difference
from shardviz.lessons.lesson import Goal, Lesson
from shardviz.lessons.measures import compute
from shardviz.lessons.measures.subject import resolve_once
from tests.conftest import one_in

MATMUL = {
    "einsum": "A[I, J] * B[J, K] -> C[I, K]",
    "mesh": "X=2,Y=4",
    "sizes": "I=8,J=16,K=8",
    "specs": "X_,__->X_",
}
EVERYTHING = ("mesh", "device_order", "einsum", "specs", "sizes", "dtype", "axis_types")


def lesson_for(setup, **goal):
    draft = form_from_table(setup)
    goal.setdefault("may_change", EVERYTHING)
    return Lesson("x", 1, "X", "See.", "layout", draft, (), "So.", Goal("Do.", **goal), (), draft)


def difference(setup, changes, **goal):
    lesson = lesson_for(setup, **goal)
    return first_difference(lesson.goal, lesson, resolve(form_from_table(setup | changes)))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"specs": "X_,__"}, "device 0 holds rows 0:4 of A; the goal wants 0:8"),
        ({"specs": "_X,__"}, "device 0 holds columns 0:8 of A; the goal wants 0:4"),
        ({"specs": "_Y,__"}, None),
        ({"mesh": "a=2,b=2,c=2", "specs": "_ (bc), _ _"}, None),
        ({"mesh": "Y=4,X=2", "specs": "_Y,__"}, "device 1 holds columns 0:4 of A; the goal wants 4:8"),
        ({"mesh": "Y=4,X=2", "specs": "_Y,__", "device_order": "0,4,1,5,2,6,3,7"}, None),
        (
            {"device_order": "1,0,2,3,4,5,6,7", "specs": "_Y,__"},
            "device 0 holds columns 4:8 of A; the goal wants 0:4",
        ),
        ({"einsum": "Z[I, J] * B[J, K] -> C[I, K]"}, "There is no array 'A'"),
    ],
)
def test_who_holds_what(changes, found):
    for text in ("_Y", "P(None, 'Y')", "A[I, J_Y]", "I J/Y"):
        assert difference(MATMUL, changes, holds={"A": text}) == found


def test_other_ranks_and_partial_sums_are_said_in_their_words():
    one = {"einsum": "i->i", "mesh": "X=4", "specs": "X->X", "sizes": "i=8"}
    assert difference(one, {}, holds={"A": "_"}) == "device 0 holds elements 0:2 of A; the goal wants 0:8"
    three = {"einsum": "abc->abc", "mesh": "X=4", "specs": "__X->__X", "sizes": "a=8,b=8,c=8"}
    assert difference(three, {}, holds={"A": "_X_"}) == "device 0 holds b 0:8 of A; the goal wants 0:2"
    partial = MATMUL | {"specs": "_Y,Y_->__{U_Y}"}
    wants = "device 0 holds a partial sum of C; the goal wants the whole sum"
    assert difference(partial, {}, holds={"C": "__"}) == wants
    assert difference(partial, {"specs": "_Y,Y_->__"}, holds={"C": "__{U_Y}"}) == (
        "device 0 holds the whole sum of C; the goal wants a partial one"
    )
    assert difference(partial, {"specs": "_Y,Y_->__"}, holds={"C": "__"}) is None


def test_a_result_that_is_open_is_as_the_plan_leaves_it():
    assert difference(MATMUL, {"specs": "X_,__"}, holds={"C": "X_"}) is None
    assert difference(MATMUL, {"specs": "X_,__"}, holds={"C": "_X"}) is not None


@pytest.mark.parametrize(
    ("specs", "wanted", "found"),
    [
        ("X_,__", (), None),
        ("_Y,Y_->__", ("psum C Y",), None),
        ("(XY)_,__->__", ("all_gather C Y,X",), None),
        ("_Y,__", (), "step 1 gathers A over Y; the goal wants nothing to be sent"),
        ("_Y,Y_->__", ("all_gather A Y",), "step 2 sums C over Y; the goal wants to gather A over Y"),
        ("X_,__", ("psum C Y",), "the plan sends nothing; the goal wants to sum C over Y"),
        (
            "_Y,Y_->__",
            ("psum C Y", "all_to_all C X"),
            "the plan sends nothing more; the goal wants to exchange parts of C over X",
        ),
        (
            "_Y,Y_->Y_",
            ("all_gather A Y",),
            "step 2 sums and scatters C over Y; the goal wants to gather A over Y",
        ),
    ],
)
def test_what_is_sent(specs, wanted, found):
    assert difference(MATMUL, {"specs": specs}, collectives=wanted) == found


SUM = {"mesh": "X=4", "collective": {"op": "psum", "data": "1,2,3,4,5,6,7,8"}}


def result_difference(changed, wanted, **mesh):
    ends = form_from_table(SUM | mesh | {"collective": SUM["collective"] | wanted})
    collective = SUM["collective"] | changed
    return difference(SUM, {"collective": collective}, ends=ends, may_change=("collective",))


def test_with_what_a_collective_ends():
    assert result_difference({}, {}) is None
    assert result_difference({"algorithm": "direct"}, {}) is None
    assert (
        result_difference({"data": "8,7,6,5,4,3,2,1"}, {}) == "device 0 begins with 8, 7; the goal keeps 1, 2"
    )
    assert result_difference({"op": "all_gather"}, {}) == (
        "device 0 ends with 1, 2, 3, 4, 5, 6, 7, 8; the goal wants 16, 20"
    )
    assert result_difference({"shape": "8x1"}, {}) == "each device ends with the shape 2×1; the goal wants 2"


def test_no_collective_where_one_is_wanted():
    lesson = lesson_for(SUM, ends=form_from_table(SUM), may_change=("collective",))
    without = resolve(form_from_table({"mesh": "X=4"}))
    assert first_difference(lesson.goal, lesson, without) == "No collective is set, and the goal wants one"


@pytest.mark.parametrize(
    ("goal", "changes", "found"),
    [
        (
            {"at_most": {"shard_bytes A": "64 B"}},
            {"dtype": "f32"},
            "each device holds 256 B of A; the goal allows 64 B",
        ),
        ({"at_most": {"shard_bytes A": "1 KiB"}}, {"dtype": "f32"}, None),
        ({"at_most": {"shard_bytes": "1 B"}}, {}, "each device holds 384 B; the goal allows 1 B"),
        (
            {"at_most": {"count psum": "0"}},
            {"specs": "_Y,Y_->__"},
            "the plan has 1 psum; the goal allows 0",
        ),
        ({"at_most": {"rounds": "1"}}, {}, "The plan has 0 collectives, and one is asked about"),
        ({"axis_types": "explicit"}, {}, "the axes are auto; the goal wants them explicit"),
        ({"axis_types": "explicit"}, {"axis_types": "explicit"}, None),
        ({"mesh": "X=4,Y=2"}, {}, "the mesh is X=2,Y=4; the goal wants its 8 devices arranged differently"),
        ({"mesh": "X=4,Y=2"}, {"mesh": "X=4,Z=1,Y=2"}, None),
    ],
)
def test_limits_axis_types_and_the_mesh(goal, changes, found):
    assert difference(MATMUL, changes, **goal) == found


@pytest.mark.parametrize(
    ("may_change", "changes", "found"),
    [
        (("specs",), {"mesh": "X=4,Y=2"}, "the mesh is X=4,Y=2; the goal keeps X=2,Y=4"),
        (("specs",), {"mesh": "X=2,Z=1,Y=4"}, None),
        (
            ("specs",),
            {"device_order": "1,0,2,3,4,5,6,7"},
            "the order of the devices has changed; the goal keeps it",
        ),
        (
            ("specs",),
            {"einsum": "A[I, J] * D[J, K] -> C[I, K]"},
            "the einsum is A[I, J] D[J, K] -> C[I, K]; the goal keeps A[I, J] B[J, K] -> C[I, K]",
        ),
        (("specs",), {"sizes": "I=8,J=32,K=8"}, "A has the shape 8×32; the goal keeps 8×16"),
        (("specs",), {"dtype": "f32"}, "the dtype is f32; the goal keeps bf16"),
        (("specs",), {"axis_types": "explicit"}, "the axes are explicit; the goal keeps them auto"),
        (("mesh",), {"specs": "_X,__->X_"}, "device 0 holds rows 0:8 of A; the goal keeps 0:4"),
        (("mesh",), {"mesh": "X=4,Y=2"}, None),
        (("mesh",), {"specs": "X_,__"}, None),
    ],
)
def test_what_had_to_stay(may_change, changes, found):
    assert difference(MATMUL, changes, collectives=(), may_change=may_change) == found


def test_beside_a_collective_the_problem_may_be_any():
    assert result_difference({}, {}) is None
    other = {"mesh": "X=8", "collective": SUM["collective"]}
    lesson = lesson_for(SUM, collectives=(), may_change=("collective",))
    assert first_difference(lesson.goal, lesson, resolve(form_from_table(other))) == (
        "the mesh is X=8; the goal keeps X=4"
    )
    setup = MATMUL | {"mesh": "X=2,Y=4", "collective": {"op": "psum", "axis": "X", "data": "1,2,3,4,5,6,7,8"}}
    assert difference(setup, {"dtype": "f32"}, collectives=(), may_change=("collective",)) is None
    found = difference(setup, {"dtype": "f32"}, collectives=(), may_change=("specs",))
    assert found == "the dtype is f32; the goal keeps bf16"


def test_a_fault_comes_first():
    lesson = lesson_for(MATMUL, holds={"A": "_Y"})
    draft = form_from_table(MATMUL)
    faulty = type(draft)(**{**vars(draft), "specs": ("_Q", "__", "X_")})
    assert first_difference(lesson.goal, lesson, resolve_first(faulty)).startswith("Unknown mesh axis 'Q'")


def test_512_devices_are_compared_at_once():
    setup = MATMUL | {"mesh": "X=16,Y=32", "sizes": "I=512,J=512,K=512"}
    assert difference(setup, {"specs": "_Y,Y_->X_"}, holds={"A": "_Y", "B": "Y_", "C": "X_"}) is None
    assert difference(setup, {"specs": "_Y,Y_->X_"}, holds={"C": "Y_"}) == (
        "device 0 holds rows 0:32 of C; the goal wants 0:16"
    )


def test_too_many_devices_are_not_compared():
    # On so many that even a list of their numbers would not fit into memory.
    size = 2**20
    setup = {"einsum": "ij->ij", "mesh": f"X={size},Y={size}", "specs": "__", "sizes": f"i={size},j={size}"}
    found = difference(setup, {}, holds={"A": "XY"}, may_change=("specs",))
    assert found == f"{size**2:,} devices are too many to compare one by one"


def fields_of(draft):
    """What a learner types, by name: the specs one by one, a collective's fields as they are in its form.

    Not the types of the axes, of which there are two: a goal may say which it is about.
    """
    own = {} if draft.collective is None else vars(draft.collective)
    specs = {f"spec {number}": spec for number, spec in enumerate(draft.specs)}
    return {**vars(draft), **own, **specs, "collective": "", "specs": "", "axis_types": ""}


@pytest.mark.parametrize("lesson", one_in(4, course()), ids=lambda lesson: lesson.name)
def test_no_solution_is_told_before_a_hint_is_asked_for(lesson):
    """Neither the goal nor what the sandbox lacks at its start has in it what is to be typed."""
    before, after = fields_of(lesson.setup), fields_of(lesson.solution)
    typed = [str(text) for name, text in after.items() if text and text != before.get(name)]
    assert typed
    said = f"{lesson.goal.text} {first_difference(lesson.goal, lesson, resolve_once(lesson.setup))}"
    assert [text for text in typed if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", said)] == []


TRAINED = {
    "mesh": "data=4",
    "einsum": "Y = X[b,d] * W[d,f]",
    "specs": "X=data _,Y=data _",
    "sizes": "b=256,d=1024,f=1024",
    "machine": "v5e:2x2",
    "backward": "yes",
    "optimizer": "adam",
}


def test_without_an_end_only_the_algorithm_of_a_collective_may_change():
    change = {"may_change": ("collective",), "at_most": {"rounds": "4"}}
    smaller = {"collective": SUM["collective"] | {"data": "1,2,3,4", "algorithm": "direct"}}
    said = "the collective has changed; only its algorithm may change"
    assert difference(SUM, smaller, **change) == said
    assert difference(SUM, {"collective": SUM["collective"] | {"algorithm": "direct"}}, **change) is None


SUMMED = {
    "mesh": "X=4",
    "einsum": "bd,df->bf",
    "specs": "_X,X_->__",
    "sizes": "b=256,d=8192,f=8192",
    "machine": "v5e:2x2",
}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, None),
        ({"specs": "X=data _,W=data _,Y=data _"}, None),
        ({"machine": "v4:2x2x1"}, "the machine is v4:2x2x1; the goal keeps v5e:2x2"),
        ({"backward": "no", "optimizer": "none"}, "the backward pass is no; the goal keeps yes"),
        ({"remat": "layer"}, "the rematerialization is layer; the goal keeps none"),
        ({"optimizer": "sgd"}, "the optimizer is sgd; the goal keeps adam"),
        ({"objective": "bytes"}, "the objective of the plan is bytes; the goal keeps given"),
        ({"dtype": "f32"}, "the dtype is f32; the goal keeps bf16"),
    ],
)
def test_machine_and_train_step_stay(changes, found):
    limit = {"peak": "1 TiB"}
    assert difference(TRAINED, changes, at_most=limit, may_change=("specs",)) == found
    every = (*EVERYTHING, "machine", "objective", "backward", "remat", "optimizer")
    assert difference(TRAINED, changes, at_most=limit, may_change=every) is None


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ({"seconds": "1 ms"}, None),
        ({"seconds": "10 µs"}, "it takes {}; the goal allows 10 µs"),
        ({"overlapped": "1 µs"}, "with perfect overlap it takes {}; the goal allows 1 µs"),
        ({"exposed": "1 ns"}, "{} of communication stays exposed with perfect overlap; the goal allows 1 ns"),
        ({"peak": "1 KiB"}, "the peak memory of a device is {}; the goal allows 1 KiB"),
        ({"seconds psum": "1 ns"}, "psum takes {}; the goal allows 1 ns"),
        ({"bubble X b": "0 %"}, "a stage is idle for {} of its time; the goal allows 0 %"),
        ({"ticks X b": "256"}, "the pipeline takes {} ticks; the goal allows 256"),
        ({"dropped b 300,20": "40"}, "{} choices are dropped; the goal allows 40"),
        ({"crossing X 2": "0"}, "{} groups along X cross hosts; the goal allows 0"),
    ],
)
def test_times_and_memory_have_limits(limit, found):
    (ask,) = limit
    shown = compute(ask, form_from_table(SUMMED)).text
    assert difference(SUMMED, {}, at_most=limit) == (found and found.format(shown))


def test_a_size_of_many_digits_is_said_in_the_unit_of_a_reader():
    changes = {"sizes": "b=255,d=8199,f=8201"}
    assert compute("peak", form_from_table(SUMMED | changes)).text.endswith(" B")
    found = difference(SUMMED, changes, at_most={"peak": "14 MiB"}, may_change=("specs", "sizes"))
    assert found == "the peak memory of a device is 37.1 MiB; the goal allows 14 MiB"
