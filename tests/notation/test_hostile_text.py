"""Whatever text comes in, a parser answers at once, with an object or with a `ShardvizError`."""

import random
import time

import pytest

from shardviz.errors import NotationError, ShardvizError
from shardviz.notation.book import parse_product
from shardviz.notation.einsum import parse_chain
from shardviz.notation.mesh import mesh_in_text, parse_axes, parse_mesh
from shardviz.notation.notations import NOTATIONS, read_sharding, write_all
from shardviz.notation.numbers import parse_numbers, parse_permutation, parse_send_sizes, parse_sizes
from shardviz.notation.reading import Context
from shardviz.notation.spec_string import parse_specs

MESH = parse_mesh("X=2,Y=4,data=2")
CONTEXT = Context(MESH)
SIZES = MESH.shape
VALID = {
    "mesh": ["X=2,Y=4", "X=2 Y=4", "Mesh('X': 2, 'Y': 4, axis_types=(Auto, Auto))"],
    "axes": ["X,Y", "data X", "Y"],
    "numbers": ["3,9,5,2", "[1 -2.5 1e3 inf nan]", "true, False", "1+2j,-3.5j"],
    "permutation": ["(0,1),(1,2)", "[(0, 1), (1, 0)]", "0->1, 1→2", "[]"],
    "send sizes": ["1,2,0;0,3,1;5 6 7", "0,0,0; 0 0 0; 0,0,0"],
    "sizes": ["b=8,d=2048,f=8192", "...=4x8,b=2"],
    "einsum": ["bd,df->bf", "...ij,jk", "ab->a"],
    "chain": ["bx,xy->by; by,yz->bz", "...a,ab;...b,bc->c..."],
    "specs": ["XY,Y_->X_", "data X, X _ -> data _", "(XY)_,?; ,X_{U_Y}", "( data )"],
    "product": [
        "A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]{U_Y}",
        r"Out[B<sub>X</sub>, F] { U<sub>Y</sub> } = In[B_{X}, D] \*<sub>D</sub> \mathbf{W}[D, F]",
        r"A[I, J_X] \cdot_\text{LOCAL} B[J_X, K] *_K C[K] \rightarrow D[I] \{\ U_X \}",
    ],
    "shardviz": [
        "XY",
        "(XY)_",
        "data _",
        "X_{U_Y}",
        "( data )",
        "__@3",
        "X@(15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0)",
    ],
    "jax": ["P('X', None)", "P(('X', 'Y'), None, unreduced={'data'}, unreduced_kind=sum)", '("X", None)'],
    "book": ["A[B_X, D_Y]", "Out[B_{X,data}, F]{U_Y}"],
    "typeof": ["bf16[8@X,2048@Y]", "~f32<host>[I@(X,Y),J]{U:data, R:Y}"],
    "shardlib": ["B/X D/Y", "I/X/Y J"],
    "einshard": ["b d -> b2 d8", "a b -> a2 b2* *", "a b -> b2* 4 a2"],
    "gspmd": [
        "{devices=[4,2,2]<=[2,4,2]T(1,0,2) last_tile_dim_replicate}",
        "{devices=[2,4,2]0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15 last_tile_dims={unreduced}}",
        "{mesh['a'=8,'b'=2], device_ids=([2,8]T(1,0)), [{'a':(1)4}, {'b', ?}], unreduced={'a':(4)2}}",
        "{mesh['x'=2,'y'=8], device_ids=(0,2,4,6,8,10,12,14,1,3,5,7,9,11,13,15), [{'x'}]}",
    ],
    "shardy": [
        '<@mesh, [{"X"}, {"Y", ?}p1], unreduced={"data"}>',
        '#sdy.sharding<mesh<["X"=2, "Y"=4, "data"=2], device_ids=[0, 1, 2, 3, 4, 5, 6, 7, 9, 8, 10, 11, '
        '12, 13, 14, 15]>, [{"X"}], replicated={"Y"}>',
    ],
    "parts of axes": [
        '<@mesh, [{"Y":(1)2}, {"X", "Y":(2)2, ?}], unreduced={"data"}>',
        '<mesh<["X"=2, "Y"=4, "data"=2]>, [{"Y":(2)2}]>',
        "{mesh['a'=2,'Y'=4,'b'=2], [{'Y':(1)2}, {'a'}]}",
    ],
    "any notation": [
        *("XY", "P('X')", "A[B_X, D]", "f32[8@X,4]", "B/X D", "b ... -> b16 ...", "{replicated}"),
        '<@mesh, [{"X"}, {}]>',
    ],
}


def read_with_parts(text):
    """The sharding that is read against the text's own mesh."""
    own = mesh_in_text(text)
    mesh = MESH if own is None else parse_mesh(own)
    return read_sharding(text, Context(mesh)), Context(mesh)


PARSERS = {
    "mesh": parse_mesh,
    "axes": lambda text: parse_axes(text, MESH),
    "numbers": parse_numbers,
    "permutation": lambda text: parse_permutation(text, 3),
    "send sizes": lambda text: parse_send_sizes(text, 3),
    "sizes": parse_sizes,
    "chain": lambda text: parse_chain(text, 2),
    "specs": lambda text: (parse_specs(text, SIZES), parse_specs(text)),
    "product": lambda text: (parse_product(text, SIZES).chain, parse_product(text).chain),
    "any notation": lambda text: read_sharding(text, Context(MESH, 2)),
    "parts of axes": lambda text: write_all(*read_with_parts(text)),
    **{known.key: lambda text, read=known.read: read(text, CONTEXT) for known in NOTATIONS},
}
ALPHABET = "XYZabDU_0123456789 ,;:=()[]{}<>*/@'\"|-.?\\#~^T\n\t\r\0\x1b\x7f"
ALPHABET += "\u00a0éßΩ²٣Ⅷ\u200b\u2028\u202e\ud800\U0001f600"


def mutated(rng, text):
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(len(text) + 1)
        stop = min(len(text), start + rng.randrange(4))
        piece = rng.choice(
            (
                "",
                rng.choice(ALPHABET),
                text[start:stop] * 2,
                "".join(rng.choices(ALPHABET, k=3)),
                str(rng.randrange(10**6)),
                text[rng.randrange(len(text) + 1) :],
            )
        )
        text = text[:start] + piece + text[stop:]
    return text


def answer(name, text):
    """Whether the parser reads the text; its error must be whole."""
    try:
        PARSERS[name](text)
    except ShardvizError as caught:
        error = caught
    else:
        return True
    assert error.message
    assert error.hint
    assert error.message.isprintable(), error.message
    assert len(error.message) < 500
    if isinstance(error, NotationError):
        assert error.text == text or name == "parts of axes"
        assert 0 <= error.start <= error.stop
        assert error.start <= len(error.text)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_random_and_mutated_text(name):
    rng = random.Random(name)
    assert [text for text in VALID[name] if not answer(name, text)] == []
    read = 0
    for _ in range(1000):
        read += answer(name, mutated(rng, rng.choice(VALID[name])))
    for _ in range(400):
        answer(name, "".join(rng.choices(ALPHABET, k=rng.randrange(30))))
    assert read > 8, "mutations that never leave anything to read test little"


@pytest.mark.parametrize("known", NOTATIONS, ids=lambda known: known.key)
def test_what_a_mutation_leaves_readable_reads_back(known):
    rng = random.Random(known.key)
    for _ in range(500):
        try:
            reading = known.read(mutated(rng, rng.choice(VALID[known.key])), CONTEXT)
        except ShardvizError:
            continue
        again = known.read(known.write(reading, CONTEXT), Context(MESH, reading.spec.rank))
        assert again.spec == reading.spec
        assert set(write_all(reading, CONTEXT)) == {other.key for other in NOTATIONS}


PIECES = [
    *(
        "a",
        "X",
        "_",
        "X_",
        ",",
        ";",
        " ",
        "(",
        "[",
        "{",
        "<",
        "'",
        '"',
        "*",
        "->",
        "...",
        "?",
        "=",
        "9",
        "\0",
    ),
    *(
        "a,",
        "a;",
        "ab->a;",
        "X,",
        "X;",
        "a=1,",
        "'X',",
        "A[I]*",
        "[I,",
        "A[I_X,",
        "{'a'},",
        '{"X"},',
        "a/",
        "a2 ",
        "1,",
    ),
    *("{U_", "a->", "(X", "None,", "P(", "'a'=2,", "\\", "<sub>", "a b ", "U:X,", "T(", "e1_"),
]
OPENINGS = [
    "",
    "A[",
    "A[I_",
    "{devices=[",
    "{devices=[1]<=[",
    "{devices=[16]",
    "{mesh[",
    "{mesh['a'=16], [",
    "P(",
    "P((",
]
OPENINGS += [
    "<@mesh, [",
    "<@mesh, [{",
    "<mesh<[",
    "f32[",
    "f32[]{",
    "a -> ",
    "Mesh(",
    "X{U_",
    "...=",
    "P(unreduced={",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_long_text_is_answered_at_once(name):
    slowest = (0.0, "")

    for opening in OPENINGS:
        for piece in PIECES:
            text = (opening + piece * (10_000 // len(piece)))[:10_000]
            started = time.process_time()
            answer(name, text)
            took = time.process_time() - started
            if took > 0.05:
                started = time.process_time()
                answer(name, text)
                took = min(took, time.process_time() - started)
            slowest = max(slowest, (took, f"{opening}{piece}"))
    assert slowest[0] < 0.5, slowest


@pytest.mark.parametrize("name", PARSERS)
def test_300_000_characters_take_a_second_at_most(name):
    for opening, piece in (("P(", "'X',"), ("", "[1,"), ("", "1,"), ("", "X "), ("", "A/"), ("A[I_", "X")):
        started = time.process_time()
        answer(name, opening + piece * (300_000 // len(piece)))
        assert time.process_time() - started < 1.5, f"{opening}{piece}"


@pytest.mark.parametrize("name", PARSERS)
def test_huge_numbers(name):
    for text in VALID[name]:
        for i, char in enumerate(text):
            if char.isdigit():
                assert not answer(name, text[:i] + "7" * 20_000 + text[i + 1 :])
