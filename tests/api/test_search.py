"""What `shardviz.search` refuses; its answers are those of the command, which tests/answers asks too."""

from __future__ import annotations

import json

import pytest

import shardviz
from shardviz.cli.group import run
from shardviz.errors import QuestionError

MLP = "btd,df->btf; btf,fd->btd"
SIZES = {"b": 16, "t": 128, "d": 1024, "f": 4096}


def test_a_machine_is_needed():
    with pytest.raises(QuestionError, match="a search needs a machine"):
        shardviz.search(MLP, machine=None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"overlap": "some"}, "'some' is not an overlap policy"),
        ({"microbatches": 0}, "a step has at least 1 microbatch, not 0"),
        ({"batch": 0}, "a step has at least 1 sequence of 1 token"),
        ({"microbatches": 2}, "microbatches are those of a train step or a pipeline"),
        ({"interleave": 2}, "an interleave is that of a pipeline"),
        ({"offload": "weights"}, "'weights' cannot be offloaded"),
        ({"offload": "optimizer"}, "the state of an optimizer is offloaded, but this step has none"),
        (
            {"offload": "optimizer", "backward": True, "optimizer": "adam", "machine": "trn2:16"},
            "no bandwidth to the host is published for trn2",
        ),
    ],
)
def test_what_is_refused(words, message):
    with pytest.raises(QuestionError, match=message):
        shardviz.search(MLP, **{"machine": "v5e:2x4", "sizes": SIZES, **words})


def test_a_load_is_a_number_or_a_text():
    words = {"machine": "v5e:2x2", "axes": "expert=4", "batch": 4, "sequence": 512}
    by_number, by_text = (shardviz.search("gpt-oss-20b", load=load, **words) for load in (1.5, "1.5"))
    assert by_number.document() == by_text.document()
    with pytest.raises(QuestionError, match="is not a load of experts"):
        shardviz.search("gpt-oss-20b", load=(1.5, 1.25), **words)


def test_an_offloaded_optimizer_is_counted_and_said(capsys):
    """60 layers of 67,108,864 parameters per device; 12 bytes of each over PCIe 5 twice, at 64 GB/s."""
    mlp, sizes = "H = X[b,d] * W1[d,f]; Y = gelu(H) * W2[f,d] x 60", "b=4Ki,d=8Ki,f=32Ki"
    words = ["search", mlp, "--machine", "h100:8", "--axes", "fsdp", "--sizes", sizes, "--backward"]
    words += ["--remat", "layer", "--optimizer", "adam", "--offload", "optimizer"]
    assert run([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (row,) = printed["found"]
    assert (row["moments"], row["is_offloaded"], row["bound"]) == ("f32", True, "host")
    sent = next(each["seconds"] for each in row["communication"] if not each["axes"])
    assert sent == pytest.approx(2 * 12 * 60 * 67_108_864 / 6.4e10)
    assert run(words) == 0
    page = capsys.readouterr().out
    assert "\n1  fsdp=8; offload optimizer " in page
    assert "host 1.51 s" in page
    assert "This command keeps the optimizer's state on the devices." in page
