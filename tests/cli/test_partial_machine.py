"""A machine's file that lacks the peak or the memory's bandwidth: unknown times are not 0."""

from __future__ import annotations

import pytest

from shardviz.cli.group import run

LINKS = 'chip = "cpu"\n[node]\ndevices = 4\nbandwidth = "2GB/s"\nlatency = "10us"\n'
MATMUL = ("bd,df->bf", "--sizes", "b=64,d=64,f=64")
SPLIT = ("--mesh", "X=2,Y=2", "--specs", "XY,Y_->X_", "--target", "none")
NEITHER = "no peak in bf16 and no HBM bandwidth are given for cpu"


@pytest.fixture
def asked(tmp_path, capsys):
    """The exit code and what is printed, in one line, of a command on a machine of `LINKS` and `figures`."""
    file = tmp_path / "ours.toml"

    def ask(figures, *words):
        file.write_text(LINKS + figures)
        code = run([*words, "--machine", str(file)])
        return code, " ".join("".join(capsys.readouterr()).split())

    return ask


def test_a_search_needs_the_time_of_work(asked):
    code, said = asked("", "search", *MATMUL)
    assert code == 2
    assert f"the compute time is unknown: {NEITHER} hint: use a --machine that has them" in said


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (
            '[device]\npeak.bf16 = "1TFLOP/s"',
            "The time of memory traffic is not counted: no HBM bandwidth is",
        ),
        ('[device]\nhbm_bandwidth = "10GB/s"', "The time of arithmetic is not counted: no peak in bf16 is"),
    ],
)
def test_a_search_says_what_it_does_not_count(asked, figures, words):
    code, said = asked(figures, "search", *MATMUL)
    assert code == 0
    assert f"{words} given for cpu." in said


def test_a_chart_over_sizes_names_what_would_do(asked):
    chart = ("sweep", "bd,df->bf", "b=1Ki:4Ki", *SPLIT[:-2])
    code, said = asked("", *chart)
    assert code == 2
    assert f"{NEITHER} hint: use a --machine with the figure; shardviz measure matmul,copy" in said
    code, said = asked('[device]\nhbm_bandwidth = "10GB/s"\npeak.f32 = "1TFLOP/s"', *chart)
    assert code == 0
    assert "compute is a lower bound: no peak in bf16 is given for cpu" in said


def test_a_models_phases_of_unknown_time_are_said_to_be(asked):
    code, said = asked("", "model", "gpt2", "--rules", "X=fsdp", "--mesh", "X=4", "--target", "none", "-v")
    assert code == 0
    assert "optimizer unknown" in said
    assert "no peak in f32 and no HBM bandwidth are given for cpu" in said
    assert " 0 ns" not in said
    assert " 0 s" not in said
