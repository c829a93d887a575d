"""A short page of any command ends with what `-v` adds, and a long one does not."""

import pytest

from shardviz.cli.group import run

MATMUL = ("bd,df->bf", "--specs", "XY,Y_->X_", "--target")
COMMANDS = [
    ("explain", *MATMUL, "none"),
    ("rank", "bd,df->bf", "--specs", "X_,?", "--limit", "3"),
    ("search", "bd,df->bf", "--machine", "v5e:2x2"),
    ("passes", *MATMUL, "shardy"),
    ("step", "psum", "--mesh", "i=4", "--on", "none"),
    ("machine", "h100:8"),
    ("targets",),
    ("hlo", "mlp.txt"),
    ("hlo", "mlp.txt", "--time"),
    ("profile", "step.xplane.pb", "--mesh", "X=2,Y=4"),
    ("model", "gpt2", "--rules", "fsdp", "--mesh", "X=2"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_short_page_ends_with_what_more_there_is(words, capsys):
    assert run([*words, "--width", "80"]) == 0
    short = capsys.readouterr().out.rstrip().splitlines()
    assert "-v shows " in " ".join(short[-2:])
    assert len(short) <= 45
    assert run([*words, "--width", "80", "-v"]) == 0
    long = capsys.readouterr().out
    assert "-v shows" not in long
    assert len(long) > len("\n".join(short))
