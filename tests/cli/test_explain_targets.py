"""`shardviz explain` with several targets, their compilers really asked."""

from __future__ import annotations

import pytest

from shardviz.cli.group import run

BOOK = ("explain", "bd,df->bf", "--specs", "XY,_Y->XY", "--sizes", "b=1024,d=2048,f=8192")


def test_side_by_side_with_their_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BOOK, "--target", "shardy,cpu,v5e:2x4", "--hlo", "--width", "80", "-v"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    head = next(number for number, line in enumerate(lines) if line.startswith("target "))
    rows = [line.split() for line in lines[head : head + 4]]
    assert [row[0] for row in rows] == ["target", "shardy", "cpu", "v5e:2x4"]
    assert ["=" in row for row in rows] == [False, True, False, False]
    assert "  = as planned" in lines
    assert any(line.startswith("  ≠ promoted_dtype: cpu computes bf16 as f32") for line in lines)
    assert any(line.startswith("  ≠ collective_matmul: v5e:2x4 takes the plan's") for line in lines)
    assert any(line.startswith("  placed: X along ") for line in lines)
    programs = [line for line in lines if "'s program" in line]
    assert [line.partition("'s")[0] for line in programs] == ["Shardy", "cpu", "v5e:2x4"]
    start = lines.index(programs[0])
    assert any("sdy.all_gather" in line for line in lines[start:])
    assert any("collective-permute-start" in line for line in lines[lines.index(programs[2]) :])


def test_a_page_has_at_most_40_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BOOK, "--mesh", "X=16,Y=16", "--target", "shardy", "--width", "80"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_one_step_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BOOK, "--why", "1", "--width", "80"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "all_gather A over Y → A[b_X, d] 1.5 MiB sent" in text
    assert "2,097,152 bytes, 1,572,864 sent," in text
    assert "both directions" in text
    assert run([*BOOK, "--why", "9"]) == 2
    assert "error: step 9 does not exist: the plan has 2\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--specs",),
        ("--specs", "XY,Y_->X_", "--target", "none"),
        ("--specs", "XY,Y_->X_", "--step", "2"),
    ],
)
def test_a_program_needs_one_plan_and_a_compiler(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run(["explain", "bd,df->bf", *words, "--hlo"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("shardviz: error: --hlo shows what compilers make of one plan\nhint: ")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--specs", "XY,Y_", "--target", "none"), "hint: add a compiler, such as --target cpu\n"),
        (("--specs", "--target", "cpu"), "hint: give --specs 'XY,Y_->X_'\n"),
        (("--specs", "XY,Y_", "--step", "1", "--target", "cpu"), "hint: leave out --step\n"),
    ],
)
def test_the_hint_names_what_is_lacking(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], hint: str
) -> None:
    assert run(["explain", "bd,df->bf", *words, "--hlo"]) == 2
    assert capsys.readouterr().err.endswith(hint)


def test_a_target_that_fails_is_named_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardviz.targets.find_spec", lambda _: None)
    assert run([*BOOK, "--target", "h100:8"]) == 2
    assert capsys.readouterr().err.count("h100:8") == 1


def test_arrays_on_other_devices_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", "ab->ab", "--mesh", "x=2,y=2", "--device-order", "3,2,1,0"]
    assert run([*words, "--specs", "(x) _@(0 1 2 3)->(y x) _"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("shardviz: error: JAX runs a program on one mesh, and A is")
