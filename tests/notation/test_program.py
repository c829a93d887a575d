"""Programs as text: what is one, its statements, and errors that show the place."""

import pytest

from shardviz.errors import NotationError
from shardviz.notation.program import EinsumCall, FunctionCall, Literal, Mention, parse_program


def shape(value):
    """An expression as nested tuples."""
    if isinstance(value, Mention):
        return value.name if value.array is None else (value.name, *value.array.dims)
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, EinsumCall):
        return ("einsum", *map(shape, value.operands), "->", "".join(value.result))
    assert isinstance(value, FunctionCall)
    return (value.function, *map(shape, value.operands))


@pytest.mark.parametrize(
    ("text", "target", "value"),
    [
        ("H = X[b,d] * W1[d,f]", "H", ("multiply", ("X", "b", "d"), ("W1", "d", "f"))),
        ("Y = (silu(H) * G) * W", "Y", ("multiply", ("multiply", ("silu", "H"), "G"), "W")),
        ("Y = A * B * C", "Y", ("multiply", "A", "B", "C")),
        ("Y = A + B * C - D", "Y", ("subtract", ("add", "A", ("multiply", "B", "C")), "D")),
        ("Y = 0.5 * A / 8", "Y", ("divide", ("multiply", 0.5, "A"), 8.0)),
        ("Y = -A * B", "Y", ("multiply", ("negative", "A"), "B")),
        ("A + B -> C[b]", "C", ("add", "A", "B")),
        ("h = bd,df->bf", "h", ("einsum", "bd", "df", "->", "bf")),
        ("y=silu(h)*g,fd->bd", "y", ("einsum", ("multiply", ("silu", "h"), "g"), "fd", "->", "bd")),
        ("z = ab->", "z", ("einsum", "ab", "->", "")),
        ("P = softmax(S, s)", "P", ("softmax", "S", "s")),
    ],
)
def test_statements(text, target, value):
    (statement,) = parse_program(text).statements
    assert statement.target is not None
    assert (statement.target.name, shape(statement.value), statement.text) == (target, value, text)


@pytest.mark.parametrize("equation", ["q=nh", "q = n * h"])
def test_an_equation_of_dimensions(equation):
    (statement,) = parse_program(f"Q = reshape(P, {equation})").statements
    assert isinstance(statement.value, FunctionCall)
    assert statement.value.merges == (("q", ("n", "h")),)


def test_lines_and_comments():
    lines = "# a layer\nH = X[b,d] *\n    W1[d,f]  # columns\n\nG = H\n  + H\nY = add(\n  H,\n  G)\n"
    texts = [each.text for each in parse_program(lines).statements]
    assert [" ".join(text.split()) for text in texts] == [
        "H = X[b,d] * W1[d,f]",
        "G = H + H",
        "Y = add( H, G)",
    ]


@pytest.mark.parametrize(
    ("text", "problem", "piece"),
    [
        ("", "there is no statement", ""),
        ("H = ", "expected an array, a function or a number", ""),
        ("H = X[b,d] *; G = X", "expected an array", ";"),
        ("H = X[b,d] * W[d,f] -> Y[b,f]", "expected the end", "Y"),
        ("H = X[b,d], W[d,f]", "expected '->' and the letters of the result", ""),
        ("H = silu(X[b,d]", "expected ',' or ')'", ""),
        ("Q = reshape(P, q=n)", "'q' must stand for two dimensions or more", "q=n"),
        ("H = X[b,d] ! W", "expected an operation, ';' or the end", "!"),
        ("H = [b,d] * W", "an array without a name", "["),
        ("P = slots(G[b,t,e], t, c, 1e400)", "a number is too large", "1e400"),
    ],
)
def test_errors_show_the_place(text, problem, piece):
    with pytest.raises(NotationError) as caught:
        parse_program(text)
    error = caught.value
    assert problem in error.message
    assert error.text[error.start : error.stop].startswith(piece)
    assert error.hint


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "Y = " + "-" * 5000 + "X",
        "silu(" * 5000,
        "a=b;" * 3000,
        "Y = X" + "+X" * 5000,
        "Y = X" + "/X" * 5000,
    ],
)
def test_hostile_texts_are_refused(text):
    with pytest.raises(NotationError):
        parse_program(text)
