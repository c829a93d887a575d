"""Wrong questions: one sentence with the piece and its place, one hint, exit code 2, nothing on stdout."""

from __future__ import annotations

import time

import pytest

from shardviz.cli.group import run

EXPLAIN = ("explain", "bd,df->bf", "--target", "none")
LAYOUT = ("layout", "8x8")

CASES = [
    (
        ("passes", "bd,df->bf", "--specs", "XY,YX?->X_"),
        "the spec 'YX?' has 3 entries, but W has the 2 dimensions 'df', at character 4",
        "one entry for each dimension",
    ),
    (("translate", "{replicated}", "--rank", "65"), "at most 64 dimensions, not 65", "fewer dimensions"),
    (
        ("layout", "x".join(["1"] * 65_000), "--spec", "{replicated}"),
        "at most 64 dimensions, not 65,000",
        "fewer dimensions",
    ),
    (
        (
            "explain",
            f"Y = A[b,{','.join(f'd{n}' for n in range(40))}] * B[b,{','.join(f'f{n}' for n in range(40))}]",
        ),
        "Y has 80 dimensions, and an array has at most 64, at character 1",
        "use fewer dimensions",
    ),
    ((*EXPLAIN, "--specs", "XZ,Y_"), "unknown mesh axis 'Z' at character 2 of 'XZ,Y_'", "X, Y"),
    ((*EXPLAIN, "--specs", "X,Y_"), "1 entry", "one entry for each dimension"),
    ((*EXPLAIN, "--specs", "XY,Y_", "--mesh", "X=2,X=4"), "X", ""),
    (
        (*EXPLAIN, "--specs", "XY,Y_", "--device-order", "0,x"),
        "'x' is not a device id at character 3",
        "0,1,3,2",
    ),
    ((*EXPLAIN, "--backward"), "not a ranking", "give --specs"),
    (
        (*EXPLAIN, "--specs", "XY,Y_", "--backward", "--optimizer", "adam,over=Z"),
        "'Z' is not an axis of the mesh, at character 6 of 'adam,over=Z'",
        "over=X",
    ),
    (
        (*EXPLAIN, "--specs", "XY,Y_", "--backward", "--dtype", "s8"),
        "no result of 'bd,df->bf' depends on an argument of floating point",
        "leave out --backward",
    ),
    (("explain", "bd,df->bq", "--target", "none"), "q", ""),
    (("explain", "bd,\x1b[31mdf->bf", "--target", "none"), "\\x1b", ""),
    (("explain", "[" * 10_000, "--target", "none"), "", ""),
    (
        (*EXPLAIN, "--specs", "XY,Y_", "--mesh", "X=1048576,Y=1024", "--device-order", "row-major"),
        "an order of 1,073,741,824 devices is too long",
        "at most 1,048,576",
    ),
    (
        ("explain", "bd,df->bf", "--target", "cpu,v5ee:2x4"),
        "'v5ee' at character 5 of 'cpu,v5ee:2x4'",
        "did you mean v5e",
    ),
    (("explain", "--example", "swigluu"), "there is no example 'swigluu'", "choose one of swiglu, residual"),
    (
        ("explain", "ab,bc->ac", "--example", "swiglu"),
        "'ab,bc->ac' and --example cannot be combined",
        "one of them",
    ),
    (("explain", "bd,%f->bf", "--no-layout"), "found '%' at character 4 of 'bd,%f->bf'", "bd,df->bf"),
    (
        (*EXPLAIN, "--versus", "X_,__", "--vary", "b=1:4"),
        "--versus and --vary cannot be combined",
        "leave out --vary",
    ),
    (
        (*EXPLAIN, "--specs", "X?,?_", "--step", "1"),
        "a ranking and --step cannot be combined",
        "give --specs 'XY,Y_->X_'",
    ),
    (
        ("explain", "bd,df->bf", "--specs", "__,__", "--mesh", "X=1024,Y=1024", "--target", "cpu"),
        "the mesh X=1024,Y=1024 has 1,048,576 devices",
        "shardy",
    ),
    ((*LAYOUT, "--spec", "bf16[8@X,16@Y]"), "has the shape 8x16, not 8x8", "without sizes"),
    (("layout", "8x8", "--spec", "__", "--mesh", "X=2097152", "--json"), "lists every device", "--json"),
    (("translate", "XY", "--to", "latin"), "unknown notation 'latin'", "book"),
    (("translate", "A[I_X, J_X]"), "X", ""),
    (
        ("translate", "NamedSharding(Mesh('a': 2, 'b': 4), P('a'))", "--mesh", "a=4,b=2"),
        "the text is on the mesh a=2,b=4, not a=4,b=2",
        "leave out --mesh",
    ),
    (("laiout",), "unknown command 'laiout'", "did you mean layout?"),
    (("zzz",), "unknown command 'zzz'", "search, model, checkpoint, machine, program, hlo"),
    (("explain", "bd,df->bf", "--meesh", "X=2"), "no such option", "did you mean --mesh?"),
    (("explain",), "missing argument 'EINSUM'", "shardviz explain --help"),
    (("explain", "bd,df->bf", "more"), "more", "--help"),
    (("layout", "8x8"), "missing option '--spec'", "shardviz layout --help"),
    ((*EXPLAIN, "--width", "3"), "3 is not in the range", "--help"),
    ((*EXPLAIN, "--color", "a" * 300), "invalid value for '--color': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaa…aaa", ""),
    (
        (*EXPLAIN, "--device-order", "0"),
        "names 1 device, but the mesh X=2,Y=4 has 8",
        "name each device once",
    ),
    (("lesson", "7", "--watch", "ring"), "'ring' is not a Python file", "ends in .py"),
    (("lesson", "4", "--grade", "a" * 300), "there is no folder 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaa…a", "name"),
    ((*EXPLAIN, "--limit", "1.5"), "'--limit': '1.5' is not a valid whole number", "--help"),
    ((*EXPLAIN, "--timeout", "nan"), "'--timeout': 'nan' is not a valid number of seconds", "--help"),
    ((*EXPLAIN, "--timeout", "0"), "0.0 is not in the range", "--help"),
    ((*EXPLAIN, "--specs", ""), "--specs is empty", "--specs without a value"),
    (
        (*EXPLAIN, "--specs", "(XY,Y)->X_"),
        "the spec 'Y' has 1 entry, but W has the 2 dimensions 'df', at character 5",
        "write one entry",
    ),
    (
        (*EXPLAIN, "--specs", "NamedSharding(Mesh('X': 4, 'Y': 4), P('X')),P()"),
        "the specs are on the mesh X=4,Y=4, not X=2,Y=4",
        "give the mesh X=4,Y=4",
    ),
    (
        ("explain", "bd,df->bf", "--specs", "XY", "Y_", "X_"),
        "unexpected extra arguments (Y_ X_)",
        "quote a value",
    ),
    (("explain", "bd,df", "->", "bf"), "no such option '->'", "quote a value"),
    (("explain", "bd,df-"), "found '-' at character 6", "otherwise the shell writes to a file"),
    (("explain", "bd,df->bf", "--spec", "XY"), "no such option '--spec'", "did you mean --specs?"),
    (("export",), "missing argument 'FORMAT'. Choose from: python, notebook, svg, html, trace", "--help"),
    (("help",), "unknown command 'help'", "did you mean --help?"),
    (
        ("tui", "--plain"),
        "no such option '--plain'",
        "it is an option of explain, rank, sweep, versus, step, layout",
    ),
    (
        ("layout", "-8x8", "--spec", "XY"),
        "unknown option -8; a number cannot be negative",
        "16384x16384",
    ),
    (
        ("translate", "XY,Y_->X_", "--rank", "3"),
        "--rank is 3, but 'XY,Y_->X_' has an array of rank 2",
        "leave",
    ),
    (("translate", "{devices=[3,4]<=[8]}"), "3·4 = 12 tiles do not fit 8 devices", "{devices=[2,4]<=[8]}"),
]


@pytest.mark.parametrize(("words", "said", "hint"), CASES, ids=[" ".join(case[0])[:60] for case in CASES])
def test_one_sentence_and_one_hint(
    words: tuple[str, ...], said: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.process_time()
    assert run(words) == 2
    assert time.process_time() - started < 20
    out, err = capsys.readouterr()
    assert out == ""
    first, *rest = err.splitlines()
    assert first.startswith("shardviz: error: ")
    assert said in first
    assert len(rest) == 1
    assert rest[0].startswith("hint: ")
    assert hint in rest[0]
    assert "\x1b" not in err
    assert len(err) < 600


def test_errors_go_to_stderr_with_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run((*EXPLAIN, "--specs", "XZ,Y_", "--json")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("shardviz: error: unknown mesh axis")
