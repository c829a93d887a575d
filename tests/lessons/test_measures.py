"""What predictions ask for: answers that the engine computes, and texts that say the same."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings, strategies as st

from shardviz.cli.target_session import started_worker
from shardviz.errors import QuestionError
from shardviz.forms.options import form_from_table
from shardviz.forms.resolve import resolve
from shardviz.lessons.course import find
from shardviz.lessons.lesson import Prediction
from shardviz.lessons.measures import MEASURES, answer_location, choices, compute
from shardviz.lessons.measures.shipped import compiled_timeline
from shardviz.timeline.of_program import timed_program

MATMUL = form_from_table(
    {
        "einsum": "A[I_X, J_Y] * B[J, K] -> C[I_X, K]",
        "mesh": "X=2,Y=4",
        "sizes": "I=8,J=8,K=8",
        "dtype": "f32",
    }
)
TURNED = form_from_table(
    {"einsum": "ij->ij", "specs": "X_->X_", "mesh": "X=4", "device_order": "3,2,1,0", "sizes": "i=8,j=2"}
)
CHAIN = form_from_table(
    {
        "einsum": "bx,xy->by; by,yz->bz",
        "specs": "_Y,Y_; ?,_Y->_Y",
        "mesh": "X=2,Y=4",
        "sizes": "b=8,x=8,y=8,z=8",
    }
)
SUM = form_from_table(
    {"mesh": "i=4", "collective": {"op": "psum", "data": "3,1,4,1,5,9,2,6,5,3,5,8,9,7,1,2"}}
)
GATHER = form_from_table(
    {
        "mesh": "X=4",
        "device_order": "3,2,1,0",
        "collective": {"op": "all_gather", "data": "3,9,5,2", "algorithm": "ring"},
    }
)
BOOK = {"mesh": "X=2,Y=4", "sizes": "B=1024,D=2048,F=8192"}
GATHERED = "A[B_X, D_Y] * W[D, F_Y] -> Out[B_X, F_Y]"
SUMMED = {"mesh": "X=4", "einsum": "bd,df->bf", "specs": "_X,X_->__", "machine": "v5e:2x2"}
SUMMED_256 = form_from_table(SUMMED | {"sizes": "b=256,d=8192,f=8192"})
SPLIT = form_from_table(SUMMED | {"sizes": "b=4096,d=8192,f=8192", "specs": "__,_X->_X"})
F64 = form_from_table(SUMMED | {"dtype": "f64"})
TRAINED = form_from_table(
    {
        "mesh": "data=8",
        "einsum": "H = X[b,d] * W1[d,f]; Y = X + silu(H) * W2[f,d] x 16",
        "specs": "X=data _,Y=data _",
        "sizes": "b=65536,d=4096,f=16384",
        "machine": "v5e:2x4",
        "backward": "yes",
        "optimizer": "adam",
    }
)
FOUR_LAYERS = find("overlap").predictions[1].draft
BOTH_AXES = form_from_table(
    {
        "mesh": "data=64,tensor=1",
        "einsum": "H = X[b,d] * W1[d,f]; Y = X + silu(H) * W2[f,d]",
        "specs": "X=data _,W1=data tensor,W2=tensor data,Y=data _",
        "sizes": "b=32768,d=8192,f=32768",
        "machine": "v5p:4x4x4",
        "backward": "yes",
    }
)


ROUTED = form_from_table(
    {
        "mesh": "X=2",
        "einsum": "G = top_k(X[b,t,e], e, 2); P = slots(G, t, c); D[e,b,c] = P * X",
        "sizes": "b=2,t=8,e=4",
    }
)
SCATTERED = form_from_table({"mesh": "X=2,Y=4", "einsum": "ij->ij", "specs": "(YX)_", "sizes": "i=8,j=2"})
TWO_SLICES = form_from_table({"mesh": "data=2,model=16", "einsum": "ij->ij", "machine": "2*v5e:4x4"})


@pytest.mark.parametrize(
    ("ask", "draft", "answer"),
    [
        ("devices", MATMUL, "8"),
        ("device X=1,Y=2", MATMUL, "6"),
        ("device X=0", TURNED, "3"),
        ("coordinates 6", MATMUL, "X=1, Y=2"),
        ("shard_shape A", MATMUL, "4×2"),
        ("slices A 5", MATMUL, "4:8, 2:4"),
        ("slices A 0", TURNED, "6:8, 0:2"),
        ("holders C 5", MATMUL, "4, 5, 6, 7"),
        ("holders A 3", TURNED, "3"),
        ("replicas C", MATMUL, "4"),
        ("bytes A", MATMUL, "256 B"),
        ("shard_bytes", MATMUL, "288 B"),
        ("spelled A book", MATMUL, "A[I_X, J_Y]"),
        ("spelled A shardlib", MATMUL, "I/X J/Y"),
        ("result_spec", CHAIN, "_Y"),
        ("result_spec book", MATMUL, "C[I_X, K]"),
        ("collectives", MATMUL, "all_gather A over Y"),
        ("collectives", CHAIN, "psum H1 over Y"),
        ("collectives", SUM, "nothing"),
        ("count all_gather", MATMUL, "1"),
        ("case", MATMUL, "2"),
        ("line psum", CHAIN, "1"),
        ("sent", MATMUL, "96 B"),
        ("sent", SUM, "24 B"),
        ("longer 1e9 1e12", MATMUL, "multiplying"),
        ("seconds", SUMMED_256, "120 µs"),
        ("seconds einsum", SUMMED_256, "47.3 µs"),
        ("seconds psum", SUMMED_256, "72.9 µs"),
        ("seconds", TRAINED, "857 ms"),
        ("seconds optimizer", TRAINED, "120 ms"),
        ("seconds", GATHER, "3 µs"),
        ("flops", TRAINED, "106 TFLOP"),
        ("overlapped", SUMMED_256, "72.9 µs"),
        ("exposed", SUMMED_256, "25.6 µs"),
        ("bound", SUMMED_256, "network"),
        ("threshold b", SPLIT, "282"),
        ("fastest data=64,tensor=1 data=16,tensor=4", BOTH_AXES, "data=16, tensor=4"),
        ("step", BOTH_AXES, "4.41 ms"),
        ("compiled four-layers total", FOUR_LAYERS, "3.31 ms"),
        ("compiled four-layers sending", FOUR_LAYERS, "2.3 ms"),
        ("compiled four-layers exposed", FOUR_LAYERS, "383 µs"),
        ("peak", TRAINED, "37.625 GiB"),
        ("memory optimizer", TRAINED, "24 GiB"),
        ("size J", MATMUL, "8"),
        ("size c", ROUTED, "4"),
        ("dropped c 9,3,2,2", ROUTED, "5"),
        ("ticks X I", MATMUL, "9"),
        ("bubble Y I", MATMUL, "27 %"),
        ("kept X I 0", MATMUL, "2"),
        ("model llama-3-70b parameters", SPLIT, "70.6 billion"),
        # 240.2 for each of four replicas.
        ("model llama-3-70b critical rules=data batch=4 sequence=64", SPLIT, "961"),
        ("carried mlp all-reduce", MATMUL, "9 MiB"),
        ("along [4,2]<=[2,4]T(1,0)", MATMUL, "X"),
        ("along {{0,1,2,3},{4,5,6,7}}", MATMUL, "Y"),
        ("ran step last all-reduce.5", MATMUL, "1"),
        ("ran step longest all-reduce.4", MATMUL, "7.24 ms"),
        ("links data", TWO_SLICES, "DCN"),
        ("crossing X 4", MATMUL, "4"),
        ("loads A 1 4", MATMUL, "4:8, 0:8"),
        ("rounds", SUM, "6"),
        ("hops", SUM, "1"),
        ("held 2 0", SUM, "5, 3, 5, 8"),
        ("held 2 4", SUM, "20, 12"),
        ("held 3 0", GATHER, "3"),
        ("result 2", SUM, "22, 20, 12, 17"),
    ],
)
def test_the_answer_is_computed(ask, draft, answer):
    found = compute(ask, draft)
    assert found.text == answer
    assert found.is_same(answer)
    assert found.shown(answer) == answer


def test_a_compiled_program_is_seen_by_its_target():
    asked = find("overlap").predictions
    assert [answer_location(each).target for each in asked] == ["", "v5e:2x2", ""]


@pytest.mark.slow
def test_the_programs_are_what_the_compiler_makes_of_their_lessons():
    """As far as times are concerned: the names in a text depend on the release."""
    pytest.importorskip("libtpu")
    lesson = resolve(FOUR_LAYERS)
    with closing(started_worker(120.0)) as worker:
        answer = worker.submit(lesson.problem, lesson.targets[0]).result()
    assert answer.status == "ok"
    own = compiled_timeline("four-layers", lesson.machine, lesson.problem.mesh)
    other = timed_program(answer.text, lesson.machine, mesh=lesson.problem.mesh)[1]
    assert own.seconds == pytest.approx(other.seconds, rel=0.01)
    assert dict(own.exposed_seconds) == pytest.approx(dict(other.exposed_seconds), rel=0.01)


def test_every_measure_is_computed_here():
    table = next(m for m in test_the_answer_is_computed.pytestmark if m.name == "parametrize").args[1]
    assert {ask.split()[0] for ask, _, _ in table} == MEASURES.keys()


@pytest.mark.parametrize(
    ("ask", "draft", "same", "other"),
    [
        ("coordinates 6", MATMUL, ["Y=2 X=1", "X=1,Y=2"], ["X=2, Y=1"]),
        ("shard_shape A", MATMUL, ["4x2", "4, 2", "(4, 2)"], ["2x4", "4x2x1"]),
        ("slices A 5", MATMUL, ["4:8,2:4", "[4:8, 2:4]"], ["4:8"]),
        ("holders C 5", MATMUL, ["7,6,5,4", "4, 5, 6 and 7"], ["5"]),
        ("bytes B", TURNED, [], []),
        ("shard_bytes A", MATMUL, ["32", "32 bytes", "0.03125 KiB"], ["32 KiB", "32 kB"]),
        ("spelled A book", MATMUL, ["XY", "P('X','Y')", "I/X J/Y", "I J -> I2 J4"], ["YX", "A[I_XY, J]"]),
        (
            "collectives",
            MATMUL,
            ["all_gather A Y", "all_gather A over Y"],
            [
                "nothing",
                "all_gather A X",
                "all_gather A Y; psum C Y",
                "all_gather A over Y, then psum C over Y",
            ],
        ),
        ("seconds einsum", SUMMED_256, ["47.3 µs", "47.3us", "0.0473 ms", "47.29 µs"], ["47.4 µs", "47 µs"]),
        ("bound", SUMMED_256, ["network", "Network "], ["compute", "memory", "latency"]),
    ],
)
def test_texts_that_mean_the_same_are_the_same_answer(ask, draft, same, other):
    if not same:
        with pytest.raises(QuestionError, match="there is no array 'B'"):
            compute(ask, draft)
        return
    answer = compute(ask, draft)
    assert {answer.shown(text) for text in same} == {answer.text}
    assert [text for text in other if answer.is_same(text)] == []


@pytest.mark.parametrize(
    ("ask", "draft", "message", "hint"),
    [
        ("", MATMUL, "there is no measure ''", "there are devices"),
        ("shard_shap A", MATMUL, "there is no measure 'shard_shap'", "did you mean shard_shape?"),
        ("slices A", MATMUL, "slices does not take 'A'", "write for example slices A 5"),
        ("devices 3", MATMUL, "devices does not take '3'", "write for example devices"),
        ("slices A 8", MATMUL, "there is no device 8", "they go from 0 to 7"),
        ("slices A five", MATMUL, "'five' is not a whole number", "write for example 8"),
        ("slices Z 0", MATMUL, "there is no array 'Z'", "there are A, B, C"),
        ("device X=1", MATMUL, "a device has a place on every axis", "name X, Y"),
        ("device X=1,Y=9", MATMUL, "there is no Y=9", "Y has 4 places"),
        ("spelled A jax", MATMUL, "there is no notation 'jax'", "there are book"),
        ("count gather", MATMUL, "no plan has 'gather'", "did you mean all_gather?"),
        ("case", CHAIN, "this is not one case alone, but case 3 over Y; case 1", "take one einsum"),
        ("line psum", MATMUL, "the plan has no psum", "ask for another operation"),
        ("rounds", TURNED, "the plan has 0 collectives, and one is asked about", "give the setup"),
        ("seconds gather", SUMMED_256, "a plan has no steps 'gather'", "did you mean all_gather?"),
        ("threshold x", SUMMED_256, "dimension 'x' has no threshold", "there are b, d, f"),
        ("threshold b", SUMMED_256, "the plan is not compute-bound at any size of b", "take another"),
        ("fastest X=4", SUMMED_256, "fastest compares meshes", "write for example fastest X=4,Y=2"),
        ("fastest X=4 X=4", SUMMED_256, "several meshes take the same time", "take other meshes"),
        ("compiled layers total", FOUR_LAYERS, "there is no program 'layers'", "did you mean four-layers?"),
        ("compiled four-layers idle", FOUR_LAYERS, "a program has no figure 'idle'", "there are total"),
        ("memory weights", TRAINED, "no memory is for 'weights'", "there are parameters"),
        ("memory gradients", SPLIT, "only a train step has this memory", 'write backward = "yes"'),
        ("bound", F64, "no peak in f64 is published for v5e", "take another machine"),
        ("size z", MATMUL, "there is no dimension 'z'", "there are"),
        ("dropped c 9", ROUTED, "'9' is one load", "write one for each expert"),
        ("links Z", MATMUL, "unknown mesh axis 'Z'", "this mesh has the axes X, Y"),
        (
            "crossing X 3",
            MATMUL,
            "8 devices are not a whole number of processes with 3 each",
            "write a number that",
        ),
        ("loads A 4 2", MATMUL, "there is no process 4", "there are 4 processes"),
        ("loads A 0 4", SCATTERED, "the parts of A on the devices of process 0 are apart", "take another"),
        ("held 2 7", SUM, "round 7 does not exist: ring has 6 rounds here", "rounds are 1 to 6"),
    ],
)
def test_what_cannot_be_asked_is_said(ask, draft, message, hint):
    with pytest.raises(QuestionError) as caught:
        compute(ask, draft)
    assert caught.value.message == message
    assert caught.value.hint.startswith(hint)


def test_texts_of_another_kind_are_refused():
    for ask, draft in (
        ("devices", MATMUL),
        ("slices A 5", MATMUL),
        ("bytes A", MATMUL),
        ("collectives", MATMUL),
        ("seconds", SUMMED_256),
        ("bound", SUMMED_256),
        ("fastest data=64,tensor=1 data=16,tensor=4", BOTH_AXES),
    ):
        for text in ("", "many", "1e3", "-1", "٣", "9" * 1000 + " parsecs"):
            with pytest.raises(QuestionError):
                compute(ask, draft).read(text)


@pytest.mark.parametrize(
    ("ask", "draft", "wrong", "order"),
    [
        ("shard_shape A", MATMUL, ["8x8", "4x8"], ["4×2", "4x8", "8x8"]),
        ("bytes A", MATMUL, ["1 KiB", "32"], ["32", "256 B", "1 KiB"]),
        ("collectives", MATMUL, ["psum C Y", "nothing"], ["nothing", "all_gather A over Y", "psum C Y"]),
    ],
)
def test_the_order_of_the_choices_does_not_depend_on_which_is_right(ask, draft, wrong, order):
    for texts in (wrong, wrong[::-1]):
        prediction = Prediction("?", ask, dict.fromkeys(texts, "no"), draft, "", "layout")
        assert choices(prediction) == tuple(order)


def test_a_large_mesh_is_no_matter():
    draft = form_from_table(
        {"mesh": "X=64,Y=64", "einsum": "ij->ij", "specs": "XY", "sizes": "i=4096,j=4096"}
    )
    assert compute("slices A 4095", draft).text == "4032:4096, 4032:4096"


@pytest.mark.parametrize(
    ("einsum", "specs", "split"),
    [
        (GATHERED, None, 8),
        ("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", None, 8),
        ("A[B_X, D] * W[D, F] -> Out[B_X, F]", None, 2),
        ("BD,DF->BF", "__,__", 1),
    ],
    ids=["gathered first", "summed in parts", "one axis idle", "everyone does all"],
)
def test_flops_are_those_of_one_device(einsum, specs, split):
    options = BOOK | {"einsum": einsum} | ({"specs": specs} if specs else {})
    found = compute("flops einsum", form_from_table(options))
    assert found.is_same(f"{2 * 1024 * 2048 * 8192 // split} FLOP")


def test_flops_of_a_chain_add_up():
    chain = {"mesh": "X=4", "einsum": "bd,df->bf; bf,fg->bg", "specs": "X_,__; ?,__"}
    draft = form_from_table(chain | {"sizes": "b=8,d=2,f=3,g=5"})
    assert compute("flops", draft).text == f"{2 * 2 * (2 * 3 + 3 * 5)} FLOP"


@pytest.mark.parametrize(
    ("flops", "bandwidth", "answer"),
    [
        ("197e12", "45e9", "sending"),
        ("197e12", "180e9", "multiplying"),
        (str(2**32), "1572864", "both the same"),
    ],
)
def test_what_takes_longer(flops, bandwidth, answer):
    draft = form_from_table(BOOK | {"einsum": GATHERED})
    found = compute(f"longer {flops} {bandwidth}", draft)
    assert found.text == answer
    assert found.is_same(f" {answer.upper()}")
    with pytest.raises(QuestionError):
        found.read("neither")


@pytest.mark.parametrize("speed", ["0", "-1", "inf", "nan", "fast"])
def test_a_speed_is_a_positive_number(speed):
    draft = form_from_table(BOOK | {"einsum": GATHERED})
    with pytest.raises(QuestionError, match="not a number per second"):
        compute(f"longer {speed} 1", draft)


@pytest.mark.parametrize(
    ("algorithm", "hops"),
    [("ring", "1"), ("bidirectional-ring", "1"), ("recursive-doubling", "4"), ("direct", "4")],
)
def test_how_far_messages_go(algorithm, hops):
    collective = {"op": "all_gather", "data": "0,1,2,3,4,5,6,7", "algorithm": algorithm}
    draft = form_from_table({"mesh": "i=8", "collective": collective})
    assert compute("hops", draft).text == hops


def seconds_of(ask, draft):
    answer = compute(ask, draft)
    return float(answer.read(answer.text))


def test_times_are_those_of_the_roofline():
    """By hand: 197 TFLOP/s, 819.2 GB/s and links of 45 GB/s one way, of which a 2×2 slice has two, and 3 µs
    to start."""
    b, d, f = 4096, 8192, 8192
    assert seconds_of("seconds", SPLIT) == pytest.approx(2 * b * d * f / 4 / 197e12, rel=5e-3)
    moved = 2 * (256 * d / 4 + d / 4 * f + 256 * f)
    assert seconds_of("seconds einsum", SUMMED_256) == pytest.approx(moved / 819.2e9, rel=5e-3)
    summed = 2 * (3 / 4) * 2 * 256 * f
    assert seconds_of("seconds psum", SUMMED_256) == pytest.approx(summed / 90e9 + 3e-6, rel=5e-3)


def test_memory_of_adam_is_that_which_is_published():
    """A parameter in bf16 takes 2 bytes, its gradient 4, its copy and the two moments 12."""
    count = 2 * 4096 * 16384 * 16
    for purpose, each in {"parameters": 2, "gradients": 4, "optimizer": 12}.items():
        assert compute(f"memory {purpose}", TRAINED).is_same(f"{count * each} B")


def test_phases_make_up_the_whole_step():
    phases = ("forward", "recomputed", "backward", "optimizer")
    parts = sum(seconds_of(f"seconds {phase}", TRAINED) for phase in phases)
    assert parts == pytest.approx(seconds_of("seconds", TRAINED), rel=5e-3)


@settings(max_examples=30)
@given(stages=st.integers(1, 6), count=st.integers(1, 12))
def test_a_pipeline_takes_as_long_as_its_stages_need(stages, count):
    """Each stage begins a micro-batch when it is free, and when the stage before has made it."""
    free, made = [0] * stages, [0] * count
    for each in range(count):
        for stage in range(stages):
            made[each] = free[stage] = max(free[stage], made[each]) + 1
    draft = form_from_table({"mesh": f"s={stages}", "einsum": "ij->ij", "sizes": f"i={count},j=1"})
    ticks = int(compute("ticks s i", draft).text)
    assert ticks == made[-1]
    assert compute("bubble s i", draft).text == f"{1 - count / ticks:.0%}".replace("%", " %")
