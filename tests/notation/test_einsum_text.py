import random
import warnings

import numpy as np
import pytest

from shardviz.errors import NotationError
from shardviz.notation.einsum import Einsum, has_words, parse_chain

SIZES = dict(zip("abcdXY~", (2, 3, 4, 5, 6, 7, 8), strict=True))


@pytest.mark.parametrize(
    ("text", "operands", "result"),
    [
        ("bd,df->bf", ("bd", "df"), "bf"),
        ("bd,df", ("bd", "df"), "bf"),
        (" b d , d f -> b f ", ("bd", "df"), "bf"),
        ("ba,ac", ("ba", "ac"), "bc"),
        ("ca,ab", ("ca", "ab"), "bc"),
        ("aB,Bc", ("aB", "Bc"), "ac"),
        ("bsd,bdf->bsf", ("bsd", "bdf"), "bsf"),
        ("ii->i", ("ii",), "i"),
        ("ii", ("ii",), ""),
        ("ij->ji", ("ij",), "ji"),
        ("ij->", ("ij",), ""),
        ("ab,->ab", ("ab", ""), "ab"),
        (",", ("", ""), ""),
    ],
)
def test_reads(text, operands, result):
    assert parse_chain(text)[0] == Einsum(tuple(map(tuple, operands)), tuple(result))


@pytest.mark.parametrize(
    ("text", "rank", "einsum"),
    [
        ("...d,df->...f", 2, Einsum((("...0", "...1", "d"), ("d", "f")), ("...0", "...1", "f"))),
        ("...ij,...jk", 1, Einsum((("...0", "i", "j"), ("...0", "j", "k")), ("...0", "i", "k"))),
        ("i...->...", 0, Einsum((("i",),), ())),
        ("ij->...ij", 2, Einsum((("i", "j"),), ("i", "j"))),
    ],
)
def test_expands_an_ellipsis(text, rank, einsum):
    assert parse_chain(text, rank)[0] == einsum


@pytest.mark.parametrize(
    "text", ["bd,df->bf", "ii->i", "ab,->ab", "...d,df->...f", "i...j->ji...", "bx,xy->by"]
)
def test_prints_what_it_read(text):
    assert str(parse_chain(text, 2)[0]) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("batch d, d f -> batch f", ["batch d,d f->batch f"]),
        ("batch, batch d_model -> d_model", ["batch,batch d_model->d_model"]),
        ("...batch d,d ff->...batch ff", ["... batch d,d ff->... batch ff"]),
        ("batch d, d ff", ["batch d,d ff->batch ff"]),
        ("b d, d f -> b f; b f, f out -> b out", ["bd,df->bf", "b f,f out->b out"]),
        ("ab,bc->ac ; ac,cd->ad", ["ab,bc->ac", "ac,cd->ad"]),
    ],
)
def test_words_apart_by_spaces_are_dimensions(text, parts):
    assert [str(part) for part in parse_chain(text, 1)] == parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bd df->bf", "dimension 'bf' is in no operand, at character 8 of 'bd df->bf'"),
        ("batch d->batch batch", "dimension 'batch' occurs twice in the result, at character 16 of"),
    ],
)
def test_refuses_words(text, message):
    with pytest.raises(NotationError) as caught:
        parse_chain(text)
    assert str(caught.value).startswith(message)


def test_prints_long_names_apart():
    assert str(Einsum((("batch", "d"), ("d", "ff")), ("batch", "ff"))) == "batch d,d ff->batch ff"


def numpy_result(text):
    """The result's shape by NumPy, or None where NumPy refuses; an ellipsis stands for one dimension."""
    operands = text.partition("->")[0].split(",")
    try:
        shapes = [
            [SIZES[c] for c in operand.replace("...", "~") if c.isalpha() or c == "~"] for operand in operands
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.einsum(text, *map(np.zeros, shapes)).shape
    except (ValueError, KeyError):
        return None


def random_text(rng):
    def letters(count):
        dims = rng.choices("abcdXY", k=count)
        if rng.random() < 0.2:
            dims.insert(rng.randrange(count + 1), "...")
        return "".join(dims)

    text = ",".join(letters(rng.randrange(4)) for _ in range(rng.choice((1, 2))))
    if rng.random() < 0.7:
        text += "->" + "".join(dict.fromkeys(letters(rng.randrange(4)).replace("...", "~"))).replace(
            "~", "..."
        )
    if rng.random() < 0.2:
        place = rng.randrange(len(text) + 1)
        text = text[:place] + rng.choice(" ,->a.1") + text[place:]
    return text


def test_agrees_with_numpy():
    rng = random.Random(0)
    accepted = 0
    for _ in range(1000):
        text = random_text(rng)
        if not text.strip() or text.count(",") > 1 or has_words(text):
            continue
        expected = numpy_result(text)
        try:
            found = tuple(SIZES[dim.replace("...0", "~")] for dim in parse_chain(text, 1)[0].result)
        except NotationError:
            found = None
        assert found == expected, text
        accepted += found is not None
    assert accepted > 200


def test_reads_chains():
    first, second = parse_chain("bx,xy->by; by,yz->bz")
    assert str(first) == "bx,xy->by"
    assert str(second) == "by,yz->bz"
    assert parse_chain("ab->a") == (Einsum((("a", "b"),), ("a",)),)
    assert [str(part) for part in parse_chain("...d,df; ...f,fg", 1)] == ["...d,df->...f", "...f,fg->...g"]


JOIN = "the first operand of each part is the result of the part before it, letter by letter"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "there is no einsum in an empty text", "write letters for dimensions: bd,df->bf"),
        (
            "ab,bc,cd->ad",
            "a third operand begins at character 6 of 'ab,bc,cd->ad'",
            "join contractions of two operands by ';', as in ab,bc->ac; ac,cd->ad; or write the result to "
            "have their order chosen: ab,bc,cd->ad",
        ),
        (
            "ab->c",
            "dimension 'c' is in no operand, at character 5 of 'ab->c'",
            "name letters of the operands, each once",
        ),
        (
            "ab->aba",
            "dimension 'a' occurs twice in the result, at character 7 of 'ab->aba'",
            "name letters of the operands, each once",
        ),
        (
            "bd,dé->b",
            "expected a letter, ',', '->' or '...' but found 'é' at character 5 of 'bd,dé->b'",
            "write letters for dimensions: bd,df->bf",
        ),
        ("ab->a,b", "a second result begins at character 6 of 'ab->a,b'", "an einsum has one result"),
        (
            "...a...",
            "a second '...' in one operand at character 5 of '...a...'",
            "an operand has at most one",
        ),
        (
            "...a,a->",
            "the result leaves out the dimensions of '...' at the end of '...a,a->'",
            "write '...' in the result as well",
        ),
        (
            "ab,bc->ac; ca,ad->cd",
            "a part begins with 'ca' but the part before it makes 'ac', "
            "at character 12 of 'ab,bc->ac; ca,ad->cd'",
            JOIN,
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        parse_chain(text, 1)
    assert str(caught.value) == message
    assert caught.value.hint == hint


def test_refuses_long_texts():
    with pytest.raises(NotationError, match="more than 64 dimensions at character 65"):
        parse_chain("a" * 10_000)
    with pytest.raises(NotationError, match="more than 1024 parts"):
        parse_chain("a;" * 5_000)
