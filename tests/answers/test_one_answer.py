"""One question, one answer: the command line, Python, exports and the application give the same numbers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
import pytest

import shardviz
from shardviz.cli.export import subject_of_words
from shardviz.cli.group import run
from shardviz.documents.fields import KINDS
from shardviz.documents.programs import explain_document
from shardviz.documents.rounds import step_document
from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.forms.options import form_from_options
from shardviz.forms.resolve import resolve
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import named_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.states.prices import Prices
from shardviz.render.plans_compared import specs_text
from shardviz.stepping.collective_run import pipelined, run_on

PROGRAMS = Path(__file__).parent.parent / "benchmarks" / "programs"
EXPLAINED = [
    ("bd,df->bf", {"specs": "XY,Y_->X_"}),
    ("bd,df->bf", {"specs": "XY,_Y"}),
    ("bd,df->bf", {"specs": "X_,X_->X_", "machine": "v5e:2x4"}),
    ("bd,df->bf", {"specs": "X_,_Y->XY", "sizes": "b=8,d=2048,f=8192", "dtype": "f32"}),
    ("bd,df->bf", {"specs": "XY,Y_", "mesh": "X=4,Y=2", "machine": "v5p:2x2x2"}),
    ("bd,df->bf", {"specs": "XY,Y_->X_", "objective": "bytes"}),
    ("bd,df->bf", {"specs": "XY,Y_->X_", "objective": "time"}),
    ("A[B_X, D] * W[D, F_Y]", {}),
    ("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", {"dtype": "s8"}),
    ("bd,df->bf; bf,fd->bd", {"specs": "X_,_Y; ?,Y_->X_"}),
    ("bd,df->bf; bf,fd->bd", {"specs": "X_,X_; ,_X->X_", "backward": True}),
    ("bd,df->bf; bf,fd->bd x 4", {"specs": "X_,X_; ,_X->X_", "backward": True, "optimizer": "adam"}),
    ("ab->ba", {"specs": "XY->XY"}),
    ("h=bd,df->bf; y=silu(h),fd->bd", {"specs": "W1=_Y,W2=Y_"}),
]
RANKED = [
    ("bd,df->bf", {"specs": "X_,?->X_"}),
    ("ab,bc->ac", {"mesh": "X=8", "machine": "v5e:2x4"}),
]
SWEPT = [
    ("bd,df->bf", "b=1Ki:64Ki", {"specs": "X_,X_->X_"}),
    ("bd,df->bf", "X=2:16", {"specs": "X_,X_->X_", "mesh": "X=2"}),
]
TEXTS = [
    ("four_layers", "v4:2x2x1"),
    ("gather_32MiB", "v5e:4x8"),
]
STEPPED = [
    ("psum", {"mesh": "i=4"}),
    ("all_gather", {"mesh": "X=2,Y=4", "axis": "Y", "data": "3,9,5,2,1,7,4,8"}),
    ("all_to_all", {"mesh": "i=4", "shape": "16x8", "spec": "i_"}),
    ("psum_scatter", {"mesh": "i=8", "machine": "v5e:2x4"}),
]
LAID_OUT = [
    ("16x16", "XY", {}),
    ("8x16", "X _", {"device-order": "1,0,2,3,4,5,6,7"}),
]
MODELS = [
    ("gpt2", {"rules": "fsdp", "mesh": "data=4", "machine": "v5e:2x2", "optimizer": "sgd"}),
]
SEARCHED = [
    ("bd,df->bf", {"machine": "v5e:2x2"}),
    (
        "btd,df->btf; btf,fd->btd",
        {"machine": "v5e:2x4", "sizes": "b=16,t=128,d=1024,f=4096", "backward": True, "optimizer": "adam"},
    ),
]


def words(options):
    given = [(f"--{name}", value) for name, value in options.items()]
    return [word for flag, value in given for word in ([flag] if value is True else [flag, value])]


@pytest.fixture
def printed(capsys):
    def document(*line):
        assert run([*line, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return document


def written(document):
    return json.loads(json.dumps(document))


def exported(line, part=None):
    return subject_of_words(click.Context(click.Command("export")), shlex.split(line), part)[0].shown


@pytest.mark.parametrize(("einsum", "options"), EXPLAINED)
def test_a_plan(einsum, options, printed):
    line = ["explain", einsum, *words(options)]
    asked = shardviz.explain(einsum, target="none", **options)
    assert printed(*line, "--target", "none") == written(asked.document())
    assert exported(shlex.join(line), "plan") == asked.plan
    form = {**options, "backward": "yes"} if "backward" in options else options
    shown = resolve(
        form_from_options(
            einsum,
            mesh=form.get("mesh", "X=2,Y=4"),
            targets="none",
            **{name: value for name, value in form.items() if name != "mesh"},
        )
    )
    assert written(explain_document(shown.cost)) == written(asked.document())


@pytest.mark.parametrize(("einsum", "options"), RANKED)
def test_a_ranking(einsum, options, printed):
    asked = written(shardviz.rank(einsum, **options).document())
    assert printed("rank", einsum, *words(options)) == asked
    if "specs" in options:
        assert printed("explain", einsum, *words(options)) == asked


def test_a_row_of_a_ranking_is_the_answer_to_its_specs(printed):
    """Copies that moves make are in memory as well: more than operands and result."""
    found = shardviz.rank("bd,df->bf")
    for row, candidate in list(zip(found.document()["candidates"], found.candidates, strict=True))[:12]:
        specs = specs_text(candidate.plan)
        cost = printed("explain", "bd,df->bf", "--specs", specs, "--target", "none")["cost"]
        assert row["memory_bytes_per_device"] == row["cost"]["peak_memory_bytes"] == cost["peak_memory_bytes"]
        assert row["cost"]["serial_seconds"] == cost["serial_seconds"]


@pytest.mark.parametrize(("einsum", "over", "options"), SWEPT)
def test_sizes(einsum, over, options, printed):
    found = shardviz.vary(einsum, over, **options)
    line = ["sweep", einsum, over, *words(options)]
    assert printed(*line) == written(found.document())
    assert printed("explain", einsum, *words({**options, "vary": over})) == written(found.document())
    assert exported(shlex.join(line)) == found.sweep


def test_two_plans(printed):
    first, second = "XY,Y_->X_", "X_,_Y->XY"
    asked = [
        written(shardviz.explain("bd,df->bf", specs=each, target="none").document())
        for each in (first, second)
    ]
    found = printed("versus", "bd,df->bf", first, second)
    assert found == printed("explain", "bd,df->bf", "--specs", first, "--versus", second)
    for side, whole in zip(("first", "second"), asked, strict=True):
        assert found[side]["plan"] == whole["plan"]
        assert found[side]["cost"].items() <= whole["cost"].items()


@pytest.mark.parametrize(("name", "machine"), TEXTS)
def test_a_text(name, machine, printed):
    path = str(PROGRAMS / f"{name}.txt")
    report = shardviz.read_hlo(Path(path).read_text("utf-8"))
    assert printed("hlo", path) == written(report.document())
    found = printed("hlo", path, "--machine", machine)
    assert found["timeline"]["seconds"] == report.timeline(machine).seconds
    (timeline,) = exported(f"hlo {shlex.quote(path)} --machine {machine}")
    assert timeline.seconds == found["timeline"]["seconds"]


@pytest.mark.parametrize(("operation", "options"), STEPPED)
def test_a_collective(operation, options, printed):
    line = ["step", operation, *words(options)]
    run = exported(shlex.join(line))
    assert printed(*line, "--on", "none") == written(step_document(run, None, None))
    own = {name: text for name, text in options.items() if name not in ("mesh", "machine")}
    fields = {"mesh": options["mesh"], "machine": options.get("machine", "")}
    shown = resolve(
        ProblemForm(**fields, specs=("__", "__", "__"), collective=CollectiveFields(operation, **own))
    )
    again = pipelined(run_on(shown.collective, shown.placed))
    assert written(step_document(again, None, None)) == written(step_document(run, None, None))


@pytest.mark.parametrize(("shape", "spec", "options"), LAID_OUT)
def test_a_layout(shape, spec, options, printed):
    line = ["layout", shape, "--spec", spec, *words(options)]
    assert printed(*line) == written(KINDS["layout"].document(exported(shlex.join(line))))


@pytest.mark.parametrize(("source", "options"), MODELS)
def test_a_model(source, options, printed):
    asked = shardviz.model(source, **options)
    assert printed("model", source, *words(options)) == written(asked.document())


def test_serving(printed):
    options = {"rules": "tensor", "mesh": "tensor=4", "sequence": 128, "cache": "int8"}
    asked = shardviz.serving("gpt2", **options)
    assert printed("model", "gpt2", "--serve", *words(options)) == written(asked.document())


@pytest.mark.parametrize(("program", "options"), SEARCHED)
def test_a_search(program, options, printed):
    asked = shardviz.search(program, **options)
    document = printed("search", program, *words(options))
    assert document == written(asked.document())
    assert asked.found[0].seconds == document["found"][0]["step_seconds"]
    assert "MFU" in repr(asked)


@pytest.mark.parametrize("machine", ["h100:8", "v5p:2x2x2"])
def test_a_collective_has_one_price(machine, printed, tmp_path):
    """An all-gather of 1 GiB of bf16 over eight devices: `step`, `explain`, `search`, the HLO's time and
    the application's form."""
    found = named_machine(machine)
    shown = resolve(form_from_options("ij->ij", mesh="X=8", targets="none", specs="X_->__",
                                      sizes="i=16384,j=32768", machine=machine))  # fmt: skip
    (gather,) = (step for step in shown.cost.steps if step.is_collective)
    price = gather.seconds
    placed = place_mesh(found, parse_mesh("X=8"))
    assert Prices(placed).collective_seconds("all_gather", ("X",), 2**30) == pytest.approx(price)
    stepped = printed("step", "all_gather", "--mesh", "X=8", "--shape", "16384x32768", "--dtype", "bf16",
                      "--machine", machine, "--on", "none")  # fmt: skip
    assert stepped["closed_form"]["seconds"] == pytest.approx(price)
    options = {"mesh": "X=8", "specs": "X_->__", "sizes": "i=16384,j=32768", "machine": machine}
    explained = printed("explain", "ij->ij", *words(options), "--target", "none")
    (step,) = (each for each in explained["cost"]["steps"] if each["op"] == "all_gather")
    assert step["seconds"] == pytest.approx(price)
    text = tmp_path / "gather.txt"
    text.write_text(
        "HloModule m, is_scheduled=true, num_partitions=8\n\n"
        "ENTRY %main (p: bf16[2048,32768]) -> bf16[16384,32768] {\n"
        "  %p = bf16[2048,32768]{1,0} parameter(0)\n"
        "  ROOT %g = bf16[16384,32768]{1,0} all-gather(%p), channel_id=1, dimensions={0}, "
        "replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true\n}\n"
    )
    read = printed("hlo", str(text), "--mesh", "X=8", "--machine", machine, "--time")
    (timed,) = (each for each in read["timeline"]["ops"] if each["op"] == "all-gather")
    # A program's collective waits for its hops before its bytes; a plan takes the longer, as the book does.
    assert timed["seconds"] == pytest.approx(price, rel=1e-9 if machine == "h100:8" else 2e-3)
