"""Plans that are known: the tutorial's four cases, and the examples of the documents shardviz explains."""

from __future__ import annotations

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import Training
from shardviz.planner.states.moves import wire_bytes_of
from shardviz.planner.training import with_backward
from shardviz.sharding import PartitionSpec
from tests.planner.executor import prove

BOOK = "b=8,d=2048,f=8192"
LARGE = "b=4096,d=2048,f=8192"


def steps(text, mesh, specs=None, sizes="", dtype="bf16"):
    found = plan(problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=sizes, dtype=dtype))
    return [
        (step.op, step.array, " ".join(step.axes), step.bytes, step.wire_bytes)
        for step in found.steps
        if step.op not in ("einsum", "slice")
    ]


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ("XY,Y_->X_", [("psum", "Out", "Y", 65_536, 98_304)]),
        ("XY,Y_->X_{U_Y}", []),
        ("XY,Y_->XY", [("psum_scatter", "Out", "Y", 65_536, 49_152)]),
        ("XY,_Y->XY", [("all_gather", "A", "Y", 16_384, 12_288)]),
        ("X_,_Y->XY", []),
        ("X_,_X", [("all_gather", "A", "X", 32_768, 16_384)]),
        ("XY,Y_", [("psum", "Out", "Y", 65_536, 98_304)]),
        ("__,__->XY", []),
        ("Y_,__->_Y", [("all_gather", "A", "Y", 32_768, 24_576)]),
    ],
)
def test_the_tutorial_s_matmul(specs, expected):
    assert steps("bd,df->bf", "X=2,Y=4", specs, BOOK) == expected


def test_the_first_command_in_full():
    problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="XY,Y_->X_", sizes=BOOK)
    found = plan(problem)
    multiply, add = found.steps
    assert (multiply.op, multiply.operands, multiply.shape) == ("einsum", ("A", "W"), (4, 8192))
    assert multiply.to_spec == add.from_spec == PartitionSpec((("X",), ()), ("Y",))
    assert (add.op, add.axes, add.dim, add.shape, add.dtype) == ("psum", ("Y",), None, (4, 8192), "bf16")
    assert add.to_spec == found.result_spec == PartitionSpec((("X",), ()))
    assert (found.collectives, found.wire_bytes, found.cases) == ((add,), 98_304, ("case 3 over Y",))


def test_a_mesh_for_131_072_devices_is_planned_alike():
    found = steps(
        "bd,df->bf",
        "data=1024,model=16,x=8",
        "data model, model _",
        "b=1024,d=2048,f=8192",
    )
    assert found == [("psum", "Out", "model", 16_384, 30_720)]


def test_two_layer_mlp_of_the_einshard_document():
    """W1 by columns and W2 by rows over all eight devices: one sum at the end."""
    found = steps("bx,xy->by; by,yz->bz", "tp=8", "_ _, _ tp; ?, tp _", "b=16,x=128,y=256,z=64", dtype="f32")
    assert found == [("psum", "Out", "tp", 4_096, 7_168)]


def test_four_fully_sharded_layers_of_the_multi_chip_document():
    """Weights of 16,384 × 16,384 split by columns, activations by rows: each weight is gathered, whole."""
    text = "bi,ij->bj; bj,jk->bk; bk,kl->bl; bl,lm->bm"
    specs = "axis _, _ axis; ?, _ axis; ?, _ axis; ?, _ axis"
    sizes = ",".join(f"{dim}=16384" for dim in "bijklm")
    assert steps(text, "axis=4", specs, sizes) == [
        ("all_gather", f"W{layer}", "axis", 536_870_912, 402_653_184) for layer in (1, 2, 3, 4)
    ]


def test_with_sharding_constraint_on_the_intermediate():
    """Whole arrays, hidden activations constrained to ``P('X', 'Y')``: the second product sums over Y."""
    problem = problem_from_text(
        "bd,df->bf; bf,fd->bd", mesh=parse_mesh("X=4,Y=2"), specs="__,__; XY,__", sizes=LARGE
    )
    found = plan(problem)
    assert [(step.op, step.axes, step.bytes) for step in found.collectives] == [("psum", ("Y",), 4_194_304)]
    hidden = [step.to_spec for step in found.steps if step.array == "H1"]
    assert hidden == [PartitionSpec((("X",), ("Y",)))]


def test_the_book_s_transformer_block():
    text = "In[B_X, D_Y] *_D W_in[D, F_Y] *_F W_out[F_Y, D] -> Out[B_X, D_Y]"
    assert steps(text, "X=4,Y=2", sizes=LARGE.upper()) == [
        ("all_gather", "In", "Y", 4_194_304, 2_097_152),
        ("psum_scatter", "Out", "Y", 4_194_304, 2_097_152),
    ]


def test_a_small_batch_leaves_all_weights_in_place():
    """Both are cut over all devices, which exchange activations: the two-dimensional layout for inference of
    "How to Scale Your Model", and of Pope et al. 2022."""
    text = "In[B_X, D_Y] *_D W_in[D, F_Y] *_F W_out[F_Y, D] -> Out[B_X, D_Y]"
    assert steps(text, "X=4,Y=2", sizes="B=8,D=2048,F=8192") == [
        ("all_gather", "In", "X Y", 32_768, 28_672),
        ("psum_scatter", "Out", "X Y", 32_768, 28_672),
    ]


@pytest.mark.parametrize("result", ["", "->X__"])
def test_megatron_s_mlp_is_one_sum(result):
    """Columns, then rows; gathering both weights sends less, but every device multiplies four times as much
    (Shoeybi et al. 2019)."""
    specs = f"X__,_Y;?,Y_{result}"
    found = steps("btd,df->btf;btf,fd->btd", "X=2,Y=4", specs, "b=16,t=4096,d=4096,f=14336")
    assert found == [("psum", "Out", "Y", 268_435_456, 402_653_184)]


def test_a_product_in_the_book_s_notation_is_the_einsum():
    book = steps("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", "X=2,Y=4", sizes="B=8,D=2048,F=8192")
    assert book == steps("bd,df->bf", "X=2,Y=4", "XY,Y_->X_", BOOK)


@pytest.mark.parametrize(
    ("dtype", "size"), [("s4", 16_384), ("s8", 32_768), ("f32", 131_072), ("c128", 524_288)]
)
def test_bytes_follow_the_dtype(dtype, size):
    assert steps("bd,df->bf", "X=2,Y=4", "XY,Y_->X_", BOOK, dtype) == [
        ("psum", "Out", "Y", size, size * 3 // 2)
    ]


def test_axes_of_one_device_cost_nothing():
    assert steps("bd,df->bf", "X=2,Y=1", "XY,Y_->X_", BOOK) == []


def test_an_intermediate_is_made_as_the_next_product_wants_it():
    """Cutting W1 first, for nothing, leaves each device a quarter of the first product's work."""
    problem = problem_from_text(
        "bx,xy->by; by,yz->bz", mesh=parse_mesh("Y=4"), specs="__,__; ,Y_", sizes="b=4096,x=4096,y=4096,z=64"
    )
    found = plan(problem)
    assert [(step.op, step.array) for step in found.steps] == [
        ("slice", "W1"),
        ("einsum", "H1"),
        ("einsum", "Out"),
        ("psum", "Out"),
    ]
    assert found.steps[1].shape == (4096, 1024)


def test_the_smallest_copy_becomes_the_pending_sum():
    """Zeros in one operand are enough: they need not be written to the product."""
    found = plan(
        problem_from_text("a,b->ab", mesh=parse_mesh("X=2"), specs="_,_->__{U_X}", sizes="a=64,b=4096")
    )
    assert [(step.op, step.array) for step in found.steps] == [("mask", "A"), ("einsum", "Out")]
    assert found.optimal


@pytest.mark.parametrize(
    ("mesh", "specs", "is_known"),
    [
        ("X=4,Y=4", "XY,Y_->X_", True),
        ("X=4,Y=4", "XY,XY->XY", True),
        ("X=4,Y=4", "X_,Y_->?", True),
        ("X=8,Y=8", "X_,_Y->XY", True),
        ("X=8,Y=8", "X_,_Y->?", False),
        ("X=32,Y=16", "X_,_Y->XY", False),
    ],
)
def test_what_a_plan_over_long_axes_claims(mesh, specs, is_known):
    """Over more than five primes not every open result is looked at; of more than eight no axis is cut."""
    asked = {"mesh": parse_mesh(mesh), "specs": specs, "sizes": "b=1024,d=2048,f=8192"}
    assert plan(problem_from_text("bd,df->bf", **asked)).optimal == is_known


def test_shards_become_a_pending_sum_without_a_byte():
    """Every device pads its rows with zeros, as in Shardy's `sharded_to_unreduced`."""
    problem = problem_from_text(
        "bd->bd", mesh=parse_mesh("X=4,Y=4"), specs="(XY)_->X_{U_Y}", sizes="b=64,d=64"
    )
    found = plan(problem)
    assert [(step.op, step.axes) for step in found.steps] == [("einsum", ()), ("pad", ("Y",))]
    assert (found.wire_bytes, found.optimal) == (0, True)


def test_of_plans_that_take_equally_long_the_one_that_sends_less_is_chosen():
    """An all-to-all of A first would save 35 picoseconds of the sum, which nobody could measure."""
    found = steps("xsyd->xy", "X=4,Y=2", "_X_Y->XY", "x=4,s=128,y=2,d=4", "f32")
    assert [(op, array, axes, sent) for op, array, axes, _, sent in found] == [
        ("psum_scatter", "Out", "X Y", 28)
    ]


def proved(text, mesh, sizes, backward=False):
    """The steps of a plan that gives the numbers of the program, as above."""
    problem = problem_from_text(text, mesh=parse_mesh(mesh), sizes=sizes)
    found = plan(with_backward(problem, Training()) if backward else problem)
    prove(found)
    ops = [step for step in found.steps if step.op not in ("einsum", "apply", "slice")]
    return [(step.op, step.array, " ".join(step.axes), step.wire_bytes) for step in ops]


def test_a_convolution_takes_the_positions_before_a_shard_from_the_neighbour():
    """Of 4 taps 3 positions of 2 × 256 elements of bf16; gradients of as many go back."""
    text, sizes = "O[b,t_Y,d] = conv(X[b,t_Y,d], W[k,d], t)", "b=2,t=512,d=256,k=4"
    one = 3 * 2 * 256 * 2
    assert proved(text, "X=1,Y=4", sizes) == [("ppermute", "X", "Y", one)]
    assert proved(text, "X=1,Y=4", sizes, backward=True) == [
        ("ppermute", "X", "Y", one),
        ("ppermute", "dX", "Y", one),
        ("ppermute", "X", "Y", one),
        ("psum", "dW", "Y", 2 * 3 * 4 * 256 * 2 // 4),
    ]


@pytest.mark.parametrize(("window", "op"), [(9, "ppermute"), (33, "ppermute"), (34, "all_gather")])
def test_local_attention_takes_a_halo_where_a_shard_is_as_long(window, op):
    """Shards of 32 positions of 4 × 128 elements of bf16; a gather sends 3/4 of all."""
    text = f"O[b,t_Y,n,h] = window_attention(Q[b,t_Y,n,h], K[b,s_Y,n,h], V[b,s_Y,n,h], {window})"
    rows = window - 1 if op == "ppermute" else 3 * 32
    found = proved(text, "Y=4", "b=1,t=128,n=4,h=128")
    assert found == [(op, name, "Y", rows * 4 * 128 * 2) for name in "KV"]


def test_gradients_of_local_attention_send_halos_alone():
    text = "O[b,t_Y,n,h] = window_attention(Q[b,t_Y,n,h], K[b,s_Y,n,h], V[b,s_Y,n,h], 5)"
    found = proved(text, "Y=4", "b=1,t=512,n=4,h=128", backward=True)
    names = ["K", "V", "K", "V", "dK", "dV"]
    assert found == [("ppermute", name, "Y", 4 * 4 * 128 * 2) for name in names]


def test_a_query_of_a_split_cache_reduces_its_parts_of_the_softmax():
    """Flash decoding: the sums of 2 × 16 rows of each of 4 shards, f32, then the sums of the values."""
    text = "O[b,t,n,h] = attention(Q[b,t,n,h], K[b,s_Y,n,h], V[b,s_Y,n,h])"
    assert proved(text, "Y=4", "b=2,t=1,s=512,n=16,h=128") == [
        ("all_gather", "O", "Y", 3 * 2 * 16 * 4),
        ("psum", "O", "Y", 2 * 3 * 2 * 16 * 128 * 2 // 4),
    ]


@pytest.mark.parametrize("function", ["attention", "causal_attention"])
def test_any_attention_may_split_its_keys(function):
    text = f"O[b_X,t,n,d] = {function}(Q[b_X,t,n,h], K[b_X,s_Y,n,h], V[b_X,s_Y,n,d])"
    problem = problem_from_text(text, mesh=parse_mesh("X=2,Y=4"), sizes="b=2,t=8,s=8,n=1,h=64,d=32")
    found = plan(problem, objective="bytes")
    assert [step.array for step in found.steps if step.is_beside] == ["O"]
    prove(found)


def test_gradients_of_split_keys_send_what_rows_weigh_and_keep_their_keys():
    """One f32 for each of 2 × 16 rows of each of 4 shards, as the sums of the forward pass; XLA's program of
    the exported code has one all-gather, one reduce-scatter and the sums of O and dQ as well."""
    text = "O[b,t,n,h] = attention(Q[b,t,n,h], K[b,s_Y,n,h], V[b,s_Y,n,h])"
    rows, values = 3 * 2 * 16 * 4, 2 * 3 * 2 * 16 * 128 * 2 // 4
    assert proved(text, "Y=4", "b=2,t=1,s=512,n=16,h=128", backward=True) == [
        ("all_gather", "O", "Y", rows),
        ("psum", "O", "Y", values),
        ("psum_scatter", "dQ", "Y", rows),
        ("psum", "dQ", "Y", values),
    ]


@pytest.mark.parametrize("more", ["", ", S[n]", ", Q2[t,n,r], K2[s_Y,n,r]", ", S[n], 50"])
@pytest.mark.parametrize("function", ["attention", "causal_attention"])
def test_gradients_of_any_attention_may_split_its_keys(monkeypatch, function, more):
    def dear(op, size, devices):
        """Where keys and values cost a hundred times as much to bring together."""
        is_moved = op in ("all_gather", "all_to_all") and size > 8 * 4 * 4
        return wire_bytes_of(op, size, devices) * (100 if is_moved else 1)

    monkeypatch.setattr("shardviz.planner.states.prices.wire_bytes_of", dear)
    text = f"O[t,n,d] = {function}(Q[t,n,h], K[s_Y,n,h], V[s_Y,n,d]{more})"
    sizes = "t=8,s=8,n=1,h=64,d=32" + ",r=32" * ("Q2" in more)
    problem = problem_from_text(text, mesh=parse_mesh("Y=4"), sizes=sizes)
    found = plan(with_backward(problem, Training("none")), objective="bytes")
    assert [step.array for step in found.steps if step.is_beside] == ["O", "dQ"]
    prove(found)
