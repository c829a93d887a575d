"""`--time` on `hlo` and `explain`: when each operation runs, at any width, with what is missing named."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardviz.cli.group import run

PROGRAMS = Path(__file__).parent.parent / "benchmarks" / "programs"
LAYERS = str(PROGRAMS / "four_layers.txt")
PLAN = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--sizes", "b=1024,d=2048,f=8192")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]):
    def answer(*words: str, code: int = 0) -> str:
        assert run([*words]) == code
        out, err = capsys.readouterr()
        return out if code == 0 else err

    return answer


@pytest.mark.parametrize(("width", "plain"), [("40", ()), ("200", ("--plain",))])
def test_a_program_is_drawn_at_any_width(printed, width: str, plain: tuple[str, ...]) -> None:
    out = printed(
        "hlo", LAYERS, "--machine", "v4:2x2x1", "--mesh", "axis=4", "--time", "-v", "--width", width, *plain
    )
    assert all(len(line) <= int(width) for line in out.splitlines())
    assert out.isascii() == bool(plain)
    words = " ".join(out.split())
    assert "jit_four_layers on v4:2x2x1: " in words
    for said in ("largest savings", "critical path", "peak memory", "measured_programs.py:86"):
        assert said in words
    chart = [line for line in out.splitlines() if line.startswith(("compute", "axis"))]
    assert len(chart) == 2
    assert (":" if plain else "░") in chart[0]


def test_the_total_without_the_chart_is_beside_the_collectives(printed) -> None:
    plain = printed("hlo", LAYERS)
    priced = printed("hlo", LAYERS, "--machine", "v4:2x2x1")
    (row,) = (line for line in priced.splitlines() if " all-gather " in line)
    (bare,) = (line for line in plain.splitlines() if " all-gather " in line)
    assert " 17.9 ms " in row
    assert " ms " not in bare
    assert " ×4  1.5 GiB  all-gather axis_1 " in row
    assert " ×4  1.5 GiB  all-gather axis_1 " in bare
    (busy,) = (line for line in priced.splitlines() if line.startswith("  axis_1 "))
    assert busy.split()[1:3] == ["17.9", "ms"]
    assert "jit_four_layers on v4:2x2x1: " in priced
    assert "█all-gather" not in priced


def test_a_machine_that_nobody_names_is_said_to_be_assumed(printed) -> None:
    assert "no machine was named: v5e chips are assumed" in printed("hlo", LAYERS, "--time")


def test_what_is_not_scheduled_is_answered_with_a_warning(printed, tmp_path: Path) -> None:
    path = tmp_path / "step.txt"
    text = Path(LAYERS).read_text(encoding="utf-8")
    path.write_text(text.replace("is_scheduled=true, ", ""), encoding="utf-8")
    out = " ".join(printed("hlo", str(path), "--machine", "v4:2x2x1", "--time").split())
    assert "this module is not scheduled" in out
    assert "critical path" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("hlo", LAYERS, "--time", "--picture"), "--picture and --time cannot be combined"),
        (("hlo", LAYERS, "--machine", "v4:2x2x1", "--picture"), "--picture and --machine cannot be combined"),
        (("hlo", LAYERS, "--time", "--machine", "v9:2x2"), "unknown chip 'v9'"),
        (("hlo", LAYERS, "--time", "--machine", "v4:2x2x4"), "v4:2x2x4 has 16 devices"),
        ((*PLAN[:2], "--specs", "--time"), "--time shows when each operation of one plan runs"),
        ((*PLAN, "--step", "2", "--time"), "--time shows when each operation of one plan runs"),
    ],
)
def test_a_bad_question_is_one_sentence(printed, words: tuple[str, ...], message: str) -> None:
    err = printed(*words, code=2)
    assert message in err
    assert err.count("\n") == 2


def test_what_is_not_compiled_has_no_times(printed, tmp_path: Path) -> None:
    path = tmp_path / "lowered.mlir"
    path.write_text("module @m {\n  func.func public @main() {\n    return\n  }\n}\n", encoding="utf-8")
    for option in (("--time",), ("--machine", "v5e:2x4")):
        assert "is about a compiled program, and this is not compiled yet" in printed(
            "hlo", str(path), *option, code=2
        )


def test_a_plan_without_targets_has_its_own_times(printed) -> None:
    out = printed(*PLAN, "--target", "none", "--width", "100", "--time")
    without = printed(*PLAN, "--target", "none", "--width", "100")
    # Its last line says what else there is.
    answer = without[: without.rindex("\n\n")]
    assert out.startswith(answer)
    chart = out.removeprefix(answer)
    assert "█einsum" in chart
    assert "█psum Out" in chart
