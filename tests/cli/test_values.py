"""`shardviz program --values`: each line's value on every device, against NumPy and JAX's own shards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shardviz.cli.group import run

FILE = Path(__file__).with_name("two_lines.py")
TEXT = FILE.read_text().splitlines()
Capture = pytest.CaptureFixture[str]


def document(capsys: Capture, function: str, *words: str) -> list[dict]:
    assert run(("program", f"{FILE}:{function}", "--mesh", "x=2,y=4", "--values", "--json", *words)) == 0
    lines = json.loads(capsys.readouterr().out)["lines"]
    assert all(TEXT[each["line"] - 1].strip() == each["text"] for each in lines)
    return lines


def parts(line: dict) -> np.ndarray:
    assert [each["id"] for each in line["devices"]] == [*range(8)]
    return np.array([each["values"] for each in line["devices"]])


def blocks(whole: np.ndarray, rows: int, columns: int) -> list[np.ndarray]:
    """The parts of devices 0 to 7 where x splits rows, and y columns, as often as given."""
    cut = [np.split(row, columns, axis=1) for row in np.split(whole, rows)]
    return [cut[place // 4 * (rows - 1) // 1][place % 4 * (columns > 1)] for place in range(8)]


def test_every_line_of_a_shard_map_body(capsys: Capture) -> None:
    found = document(capsys, "mapped")
    a, w = np.arange(32.0).reshape(4, 8), np.arange(16.0).reshape(8, 2)
    own_a = np.array(blocks(a, 2, 4))
    own_w = np.array([np.split(w, 4)[place % 4] for place in range(8)])
    h = own_a @ own_w
    s = np.array([h[place // 4 * 4 : place // 4 * 4 + 4].sum(0) for place in range(8)])
    expected = {"a": own_a, "w": own_w, "h = a @ w": h, 's = jax.lax.psum(h, "y")': s, "y = x * 2": 2 * s}
    for each in found:
        key = each["name"] or each["text"]
        if key in expected:
            np.testing.assert_array_equal(parts(each), expected.pop(key))
            assert each["spec"] is None
    assert not expected
    assert [each["text"] for each in found][-2:] == ["y = x * 2", "return y + 1"]
    np.testing.assert_array_equal(parts(found[-1]), 2 * s + 1)


def test_every_line_of_a_jit_with_the_shardings_that_it_was_given(capsys: Capture) -> None:
    found = {each["name"] or each["text"]: each for each in document(capsys, "jitted")}
    x, w1, w2 = (
        np.arange(size).reshape(shape) % 10.0 for size, shape in ((16, (4, 4)), (32, (4, 8)), (32, (8, 4)))
    )
    h = np.maximum(x @ w1 - 40, 0)
    assert found["h = jax.nn.relu("]["spec"] == "P('x', 'y')"
    np.testing.assert_array_equal(parts(found["h = jax.nn.relu("]), blocks(h, 2, 4))
    scan = next(each for each in found.values() if each["note"])
    assert scan["note"] == "a scan, which is not opened"
    np.testing.assert_array_equal(parts(scan), blocks(h + 3, 2, 4))
    np.testing.assert_array_equal(parts(found["return h @ w2"]), blocks((h + 3) @ w2, 2, 1))


def test_the_gradients_of_lines_are_marked(capsys: Capture) -> None:
    *_, last = document(capsys, "graded")
    assert (last["text"], last["note"]) == ("h = x @ w", "gradient")
    x, w = np.arange(16).reshape(4, 4) % 10.0, np.arange(32).reshape(4, 8) % 10.0
    whole = 2 * x.T @ (x @ w)
    wide = [whole[:, place % 4 * 2 : place % 4 * 2 + 2] for place in range(8)]
    assert parts(last).shape in ((8, 4, 2), (8, 4, 8))
    np.testing.assert_array_equal(parts(last), wide if parts(last).shape[2] == 2 else [whole] * 8)


def test_the_page_fits_its_width(capsys: Capture) -> None:
    assert run(("program", f"{FILE}:mapped", "--mesh", "x=2,y=4", "--values", "--width", "40")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert "  14  h = a @ w" in lines
    assert "8 simulated CPU devices" in " ".join(lines)


def test_of_a_large_array_the_first_numbers(capsys: Capture) -> None:
    *_, line = document(capsys, "large")
    assert (line["shape"], line["shard_shape"], line["is_cut"]) == ([1024, 1024], [512, 256], True)
    assert line["devices"] == [
        {"id": 0, "values": [[((row * 1024 + column) % 10) + 1 for column in range(4)] for row in range(4)]}
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("huge",), "the values of all lines take 2 GiB, more than 256 MiB"),
        (("wrong",), f"{FILE}:60: TypeError: dot_general requires contracting dimensions"),
        (("lowered",), "what is lowered has no lines to run"),
        (("mapped", "--why"), "--values and --why cannot be combined"),
        (("mapped", "--target", "v5e:2x4"), "--values and --target cannot be combined"),
    ],
)
def test_one_sentence_says_what_is_wrong(words: tuple[str, ...], said: str, capsys: Capture) -> None:
    function, *more = words
    assert run(("program", f"{FILE}:{function}", "--mesh", "x=2,y=4", "--values", *more)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err.splitlines()[0]
