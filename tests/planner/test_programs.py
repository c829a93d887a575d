"""Problems of programs: statements, arguments, sizes and specs; errors name
statement, dimension and sizes."""

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.planner.planner import plan
from shardviz.planner.problem import notices, statement_text
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Training, with_backward
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (2, 4))
SWIGLU = "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = (silu(H) * G) * W3[f,d]"
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


def problem(text, **options):
    return problem_from_text(text, mesh=MESH, **options)


def lines(text, **options):
    """Every statement as text."""
    return [
        f"{part.result.name} = {part.function} {part.einsum} {' '.join(each.name for each in part.operands)}"
        for part in problem(text, **options).parts
    ]


def test_swiglu():
    assert lines(SWIGLU) == [
        "H = multiply bd,df->bf X W1",
        "G = multiply bd,df->bf X W2",
        "Y_1 = silu bf->bf H",
        "Y_2 = multiply bf,bf->bf Y_1 G",
        "Y = multiply bf,fd->bd Y_2 W3",
    ]


def test_the_same_in_letters():
    assert lines("h=bd,df->bf; g=bd,df->bf; y=silu(h)*g,fd->bd") == [
        "h = multiply bd,df->bf A W1",
        "g = multiply bd,df->bf A W2",
        "y_1 = silu bf->bf h",
        "y_2 = multiply bf,bf->bf y_1 g",
        "y = multiply bf,fd->bd y_2 W3",
    ]


def test_attention_calls_the_sequence_of_the_keys_otherwise():
    assert lines(ATTENTION) == [
        "Q = multiply btd,dkgh->btkgh X WQ",
        "K = multiply bsd,dkh->bskh X WK",
        "V = multiply bsd,dkh->bskh X WV",
        "O = causal_attention btkgh,bskh,bskh->btkgh Q K V",
        "Y_1 = multiply btkgh,kghd->btd O WO",
        "Y = add btd,btd->btd X Y_1",
    ]
    found = problem(ATTENTION, sizes="t=64,d=16")
    keys = found.parts[1].operands[0]
    assert (keys.name, keys.dims, keys.shape) == ("X", ("b", "s", "d"), (8, 64, 16))
    assert found.parts[3].whole == ("s", "h")


def test_causal_attention_is_over_one_sequence():
    found = problem("Y = causal_attention(Q[b,t,h], K[b,s,h], V[b,s,h])", sizes="t=48")
    assert found.parts[0].operands[1].shape == found.parts[0].operands[0].shape == (8, 48, 16)


def test_experts_have_places_for_every_token():
    assert lines(EXPERTS) == [
        "G_1 = multiply btd,de->bte X WR",
        "G_2 = max bte->bt G_1",
        "G_3 = sum_exp bte,bt->bt G_1 G_2",
        "G_4 = softmax bte,bt,bt->bte G_1 G_2 G_3",
        "G = top_k bte->bte G_4",
        "P = slots bte->btec G",
        "D = multiply btec,btd->ebcd P X",
        "H = multiply ebcd,edf->ebcf D W1",
        "O_1 = silu ebcf->ebcf H",
        "O = multiply ebcf,efd->ebcd O_1 W2",
        "Y_1 = multiply btec,bte->btec P G",
        "Y = multiply ebcd,btec->btd O Y_1",
    ]
    found = problem(EXPERTS, sizes="b=4,t=512,e=8,d=16,f=32")
    assert found.parts[5].result.shape == (4, 512, 8, 2 * 512 // 8)
    assert [(part.whole, part.number) for part in found.parts[3:6]] == [
        ((), None),
        (("e",), 2),
        (("t",), None),
    ]


def test_norms_are_a_mean_and_what_follows_from_it():
    assert lines("N = rms_norm(X[b,d], d, g[d])") == [
        "N_1 = mean_square bd->b X",
        "N_2 = normalize bd,b->bd X N_1",
        "N = multiply bd,d->bd N_2 g",
    ]
    assert lines("N = layer_norm(X[b,d], d, g[d], a[d])") == [
        "N_1 = mean bd->b X",
        "N_2 = subtract bd,b->bd X N_1",
        "N_3 = mean_square bd->b N_2",
        "N_4 = normalize bd,b->bd N_2 N_3",
        "N_5 = multiply bd,d->bd N_4 g",
        "N = add bd,d->bd N_5 a",
    ]


def test_an_embedding_and_logits():
    text = "E = take(W[v,d], T[b,t]); L = E * W"
    assert lines(text) == ["E = take vd,bt->btd W T", "L = multiply btd,vd->btv E W"]
    table, tokens = problem(text).arguments
    assert (table.dtype, tokens.dtype) == ("bf16", "s32")


@pytest.mark.parametrize("sizes", ["n=8,h=64", "q=512,n=8", "q=512,h=64"])
def test_reshapes(sizes):
    text = "P[b,q] = X[b,d] * W[d,q]; Q = reshape(P, q=nh); R = reshape(Q, q=nh)"
    found = problem(text, sizes=sizes)
    assert [part.result.shape for part in found.parts] == [(1024, 512), (1024, 8, 64), (1024, 512)]
    assert found.parts[1].merged == (("q", ("n", "h")),)


@pytest.mark.parametrize(
    ("text", "einsums"),
    [
        ("Y = A[b,d] * B[d,f] * C[f,g]", ["bd,df->bf", "bf,fg->bg"]),
        ("Y = A[b,d] * (B[d,f] * C[f,g])", ["df,fg->dg", "bd,dg->bg"]),
        ("Y[b,n,t,s] = Q[b,t,n,h] * K[b,s,n,h]", ["btnh,bsnh->bnts"]),
        ("Y = A[b,d] *_d B[d,b]", ["bd,db->b"]),
        ("Y[b,n,t,s] = 0.5 * Q[b,t,n,h] * K[b,s,n,h]", ["btnh,bsnh->bnts", "bnts->bnts"]),
        ("Y[b,n,t,s] = Q[b,t,n,h] * K[b,s,n,h] / 8", ["btnh,bsnh->bnts", "bnts->bnts"]),
        ("Y[b,n,t,s] = exp(Q[b,t,n,h] * K[b,s,n,h])", ["btnh,bsnh->btns", "btns->bnts"]),
        ("Y[b,n,t,s] = Q[b,t,n,h] * K[b,s,n,h] + M[t,s]", ["btnh,bsnh->btns", "btns,ts->bnts"]),
        ("Y[b] = A[b,d] * B[b,d] / 3", ["bd,bd->b", "b->b"]),
        ("Y[d,b] = A[b,d] / 2", ["bd->db"]),
        ("Y = A[b,d] * B[b,d]", ["bd,bd->bd"]),
        ("Y[b] = A[b,d] * B[b,d]", ["bd,bd->b"]),
        ("Y = scale(A[b,d], g[d])", ["bd,d->bd"]),
        ("Y[d,b] = A[b,d]", ["bd->db"]),
        ("Y = A[b,d] + c[d]", ["bd,d->bd"]),
        ("Y = sum(A[b,d], d)", ["bd->b"]),
        ("y = ab,bc,cd->ad", ["ab,bc,cd->ad"]),
    ],
)
def test_einsums(text, einsums):
    assert [str(part.einsum) for part in problem(text).parts] == einsums


def test_an_einsum_of_three_operands_needs_no_name():
    named = problem("Out=ab,bc,cd->ad", specs="W1=_Y,W2=Y_,Out=X_")
    assert problem("ab,bc,cd->ad", specs="__,_Y,Y_->X_") == named
    assert problem("ab, bc, cd -> ad", specs="W1=_Y,W2=Y_,Out=X_") == named
    chain = problem("ab,bc,cd->ad; ad,de->ae", specs="W1=_Y,W2=Y_")
    assert [len(part.operands) for part in chain.parts] == [3, 2]


def test_specs_by_name_and_in_brackets_are_the_same():
    named = problem(SWIGLU, specs="X=X_,W1=_Y,W2=_Y,W3=Y_,Y=X_")
    written = problem("H = X[b_X,d] * W1[d,f_Y]; G = X * W2[d,f_Y]; Y[b_X,d] = (silu(H) * G) * W3[f_Y,d]")
    assert named == written


def test_what_no_spec_names_is_not_split_and_results_are_open():
    found = problem(SWIGLU, specs="W1=_Y")
    specs = {
        each.name: each.spec and each.spec.dims
        for part in found.parts
        for each in (*part.operands, part.result)
    }
    assert specs == {"X": ((), ()), "W1": ((), ("Y",)), "W2": ((), ()), "W3": ((), ())} | dict.fromkeys(
        ("H", "G", "Y_1", "Y_2", "Y")
    )


def test_everything_is_open_where_nothing_is_said_and_a_ranking_is_asked_for():
    assert {each.spec for each in problem(SWIGLU, ranked=True).arguments} == {None}


def test_named_specs_of_an_einsum_and_a_chain():
    assert problem("bd,df->bf", specs="W=Y_,A=XY,Out=X_") == problem("bd,df->bf", specs="XY,Y_->X_")
    chain = "bd,df->bf; bf,fd->bd"
    assert problem(chain, specs="A=X_,W1=_Y,W2=Y_") == problem(chain, specs="X_,_Y->?; ?,Y_->?")


def test_a_result_is_constrained_where_it_is_made_or_used():
    found = problem("H[b_X,f] = X[b,d] * W[d,f]; Y = silu(H[b,f_Y])")
    assert found.parts[0].result.spec.dims == (("X",), ())
    assert found.parts[1].operands[0].spec.dims == ((), ("Y",))


def test_layers_and_results_that_nothing_takes():
    found = problem("H = X[b,d] * W[d,f]; G = X * V[d,f]; Y = silu(G) x 32")
    assert (found.layers, found.returned) == (32, ("H",))
    assert problem("bd,df->bf; bf,fd->bd × 32", specs="X_,_Y; ,Y_").layers == 32


@pytest.mark.parametrize(
    ("text", "sizes", "message", "piece"),
    [
        (
            "H = X[b,d]*W[d,f]; Y = H + X",
            "d=8,f=16",
            "Y adds H[b, f] and X[b, d], but d=8 of X is not f=16 of H,",
            "H + X",
        ),
        (
            "Y = softmax(X[b,d], M[e], Z[b])",
            "b=4,d=8,e=2",
            "Y takes the softmax of X[b, d] and M[e], but e=2 of M is not b=4 and d=8 of X,",
            "softmax(X[b,d], M[e], Z[b])",
        ),
        (
            "H = X[b,d]*W[d,f]; Y = H[b,c]*V[c,e]",
            "f=16,c=8",
            "Y takes H[b, c], but c=8 is f=16 in H[b, f],",
            "H[b,c]",
        ),
        (
            "H = X[b,d]*W[d,f]; Y = H[b,c,d]*V[c,e]",
            "",
            "Y takes H[b, c, d], but it is H[b, f]: 3 dimensions against 2,",
            "H[b,c,d]",
        ),
        (
            "Q = X[b,t,d]*WQ[d,n,h]; K = X*WK[d,k,h]; Y = causal_attention(Q, K, K)",
            "n=32,k=8",
            "Y attends along n=32 of Q[b, t, n, h] and k=8 of K[b, t, k, h], which must be one sequence in "
            "causal attention,",
            "Q",
        ),
        (
            "P = X[b,d]*W[d,q]; Q = reshape(P, q=nh)",
            "q=512,n=8,h=16",
            "q=512 of Q[b, n, h] is not n=8 · h=16 = 128,",
            "Q = reshape(P, q=nh)",
        ),
        (
            "Y[b,e] = silu(X[b,d]*W[d,f])",
            "",
            "Y[b, e] is made by silu, which leaves b=1024 and f=8192,",
            "Y[b,e]",
        ),
        ("X[b,d]*W[d,f]; Y[b,e] = X*W", "", "Y has the dimension e, which no factor has", "X*W"),
        ("Y = softmax(X[b,d], e)", "", "softmax is along 'e', which X[b, d] lacks,", "softmax(X[b,d], e)"),
        ("Y = Z * X[b,d]", "", "'Z' has no dimensions yet,", "Z"),
        ("Y = foo(X[b,d])", "", "'foo' is not a function,", "foo(X[b,d])"),
        (
            "D = dispatch(X[b,t,d], G[b,t,e], t, e)",
            "",
            "X[b, t, d] and G[b, t, e] are not of the same tokens,",
            "dispatch(X[b,t,d], G[b,t,e], t, e)",
        ),
        ("Y = where()", "", "where takes a mask, an array and an array or number,", "where()"),
        ("Y = where(M[b], X[d], 0)", "", r"Y takes the where of M[b] and X[d], but", "where(M[b], X[d], 0)"),
        ("Y = silu(X[b,d], W[d])", "", "silu takes 1 array, not 2,", "silu(X[b,d], W[d])"),
        ("Y = multiply(X[b,d])", "", "multiply takes 2 or more arrays, not 1,", "multiply(X[b,d])"),
        (
            "Y = sum_exp(X[b,d], M[b])",
            "",
            "sum_exp takes an array, what is taken from it and a dimension,",
            "sum_exp(X[b,d], M[b])",
        ),
        ("Y = pick(X[b,v], v)", "", "pick takes an array, places and a dimension,", "pick(X[b,v], v)"),
        ("Y = where(relu(X[b,d]), X, 0)", "", "Y_1 is not a mask,", "where(relu(X[b,d]), X, 0)"),
        ("Y = rotary(X[t,h], t)", "h=5", "rotary turns halves of h=5,", "X[t,h]"),
        ("Y = conv(X[b,t,d], W[d], t)", "", "the weights W[d] must have", "conv(X[b,t,d], W[d], t)"),
        ("Y = scan(A[b], X[b,t], t)", "", "scan is along 't', which A[b] lacks,", "scan(A[b], X[b,t], t)"),
        (
            "Y = slots(G[t,e], t)",
            "",
            "slots takes an array, a dimension, the dimension of places",
            "slots(G[t,e], t)",
        ),
        ("H = X[b,d]; H = H * W[d,f]", "", "'H' is made before,", "H"),
        ("silu = X[b,d]", "", "'silu' is a function,", "silu"),
        ("Y = X[b,d] + 1", "", "expected an array but found a number,", "1"),
        ("H = X[b,d]*W[d,f]; Y = take(W, H)", "", "H holds no whole numbers,", "take(W, H)"),
        (
            "Y = attention(Q[b,n,g,t,h], K[b,n,s,h], V[b,n,s,h])",
            "",
            "the queries Q[b, n, g, t, h] must have the dimensions of the keys K[b, n, s, h], another",
            "attention(Q[b,n,g,t,h], K[b,n,s,h], V[b,n,s,h])",
        ),
        ("y = bd,df->bg", "", "dimension 'g' of the result is in no operand,", "bd,df->bg"),
        (
            "Y = silu(H[b,f]) * W2[g,d]",
            "",
            "Y multiplies Y_1[b, f] by W2[g, d], which share no dimension,",
            "silu(H[b,f]) * W2[g,d]",
        ),
        (
            "Y[b,d] = silu(H[b,f]) * W2[g,d]",
            "",
            "Y multiplies Y_1[b, f] by W2[g, d], which share no dimension,",
            "silu(H[b,f]) * W2[g,d]",
        ),
    ],
)
def test_what_does_not_fit_shows_the_statement_the_dimension_and_the_sizes(text, sizes, message, piece):
    with pytest.raises(NotationError) as caught:
        problem(text, sizes=sizes)
    error = caught.value
    assert error.message.startswith(message)
    assert error.text[error.start : error.stop] == piece
    assert error.hint


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ("X_,_Y->X_", "a program's specs need array names"),
        ("Z=X_", "no array is called 'Z'"),
        ("X=X_", "the subscripts of X give its spec, but the specs do so as well,"),
    ],
)
def test_specs_that_do_not_fit(specs, message):
    with pytest.raises(QuestionError) as caught:
        problem("Y = silu(X[b_X,d])", specs=specs)
    assert caught.value.message.startswith(message)


def test_sizes_that_do_not_fit():
    with pytest.raises(NotationError, match="no array has the dimension 'z' given a size"):
        problem(SWIGLU, sizes="z=4")


@pytest.mark.parametrize(
    "text",
    [
        SWIGLU,
        ATTENTION,
        EXPERTS,
        "N = layer_norm(X[b,d], d, g[d], a[d]); Y = 0.5 * N - X / 4; Z[b] = max(-Y, d)",
        "L = cross_entropy(X[b,d] * W[d,v], T[b], v); Y = L + log_sum_exp(X, d) * sum(softmax(X, d), d)",
        "P[b,q] = X[b,d] * W[d,q]; Q = reshape(P, q=nh); R = reshape(Q, q=nh)",
        "E = take(W[v,d], T[b,t]); L = E * W",
        "y = ab,bc,cd->ad; z = sum(y, a)",
        "Y = maximum(A[b,d], B[b,d]) * C[d,e] x 3",
    ],
)
def test_a_problem_says_its_text(text):
    found = problem(text)
    assert problem(found.text) == found


def test_multiply_by_its_name_is_a_product():
    assert problem("Y = multiply(X[b,d], W[d,f])") == problem("Y = X[b,d] * W[d,f]")


@pytest.mark.parametrize(
    "text",
    [
        "Y[b,f,g,d] = silu(H[b,f]) * W2[g,d]",
        "Y[b,d] = silu(H[b,f]) * g[d]",
        "Y = sum(H[b,f], b, f) * W[g,d]",
        "Y[i,k] = relu(A[i]) * B[j] * C[i,j,k]",
    ],
)
def test_an_outer_product_that_is_written_or_goes_on_is_no_error(text):
    assert problem(text).result.name == "Y"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SWIGLU, ()),
        (ATTENTION, ()),
        (EXPERTS, ()),
        ("Y[i,j] = A[i,j] + A[j,i]", ()),
        (
            "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = silu(H) * W3[f,d]",
            ("G is used by no statement: it is returned beside Y",),
        ),
        (
            "H = X[b,d] * W[d,f]; G = silu(H); L = exp(H); Y = H + X[b,f]",
            (
                "G and L are used by no statement: they are returned beside Y",
                "X[b, d] is also taken as X[b, f]: f is d, 2,048",
            ),
        ),
        (
            "F = X[b,d] * W[d,f]; G = X * V[d,f]; H = X[b,e] * U[e,f]; Y = X[b,e] * T[e,f]",
            (
                "F, G and H are used by no statement: they are returned beside Y",
                "X[b, d] is also taken as X[b, e]: e is d, 2,048",
            ),
        ),
    ],
)
def test_what_may_not_be_meant_is_said(text, found):
    assert notices(problem(text)) == found


def test_a_mask_with_a_number_is_shown_as_it_is_written():
    text = "Y[b,d] = where(M[b,d], X[b,d], -1e+09)"
    found = plan(problem_from_text(text, mesh=Mesh(("X",), (2,)), sizes="b=2,d=2"))
    assert (found.problem.text, found.steps[0].function) == (text, "where")


def test_a_sum_over_one_array_is_written_as_one_and_nothing_is_summed_where_no_dimension_goes():
    problem = problem_from_text("ij->j", mesh=Mesh(("X",), (2,)), specs="X_->_")
    assert statement_text(problem.parts[0]) == "Out[j] = sum(A[i,j], i)"
    problem = problem_from_text("ij->ji", mesh=Mesh(("X",), (2,)), specs="X_->X_")
    assert [
        statement_text(part, lambda array: array.name) for part in with_backward(problem, Training()).parts
    ] == [
        "Out = A",
        "dA = dOut",
    ]
