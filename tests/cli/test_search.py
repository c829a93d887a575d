"""`shardviz search`: its page, its JSON, what is refused, and an interrupt."""

from __future__ import annotations

import json
import re
import shlex
import signal
from contextlib import nullcontext
from dataclasses import replace

import pytest
import yaml

from shardviz.answers.search import search_question, served_meshes
from shardviz.cli.group import run
from shardviz.compiler import CompilerRequest
from shardviz.errors import CompilerError
from shardviz.hardware.machine_file import named_machine
from shardviz.planner.search.least_sum import TooWideError, least_of_stars
from shardviz.planner.search.mesh_ranking import best_meshes

MLP = ("search", "btd,df->btf; btf,fd->btd", "--machine", "v5e:2x4", "--sizes", "b=16,t=128,d=1024,f=4096")


def test_the_page_has_the_meshes_and_the_best_shardings(capsys):
    assert run([*MLP, "--width", "120"]) == 0
    page = capsys.readouterr().out
    assert page.splitlines()[2].split() == [
        *("mesh", "step", "compute", "exposed", "memory", "bound", "MFU", "communication")
    ]
    assert "data=8" in page
    assert "W1[d, f]" in page
    assert "All 10 meshes" in page


def test_a_train_step_has_a_command_that_explains_it(capsys):
    assert run([*MLP, "--axes", "fsdp=8", "--backward"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "--backward" in page.partition("shardviz explain ")[2]


def test_times_without_a_peak_are_lower_bounds(capsys):
    assert run(["search", "bd,df->bf", "--machine", "v5e:2x4", "--dtype", "f64"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "1 tensor=8 ≥ 51.2 µs ≥ 51.2 µs 0 s 40 MiB" in page
    assert "no peak in f64 is published for v5e" in page


def test_a_model_is_searched_and_its_command_prices_it_as_well(capsys):
    """`shardviz model` plans the same parts: embedding, layers, logits and loss."""
    asked = ["search", "gpt2", "--machine", "v5e:2x2", "--batch", "8", "--sequence", "256", "--backward"]
    assert run(asked) == 0
    page = capsys.readouterr().out
    assert page.startswith("gpt2, 8 × 256 tokens, a train step")
    line = re.search(r"^ +shardviz (model .*?)\n\n", page, re.DOTALL | re.MULTILINE)[1]
    assert run([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    best = document["found"][0]
    assert document["model"] == "gpt2, 8 × 256 tokens"
    assert run([*shlex.split(line.replace("\\\n", "")), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert best["overlapped_seconds"] == pytest.approx(whole["step"]["overlapped_seconds"], rel=0.02)
    assert best["memory_bytes"] == pytest.approx(whole["device_memory"]["training_bytes"], rel=0.15)


def test_the_command_of_a_mesh_that_jax_does_not_place_has_the_order_of_its_devices(capsys):
    asked = ["search", "gpt2", "--machine", "v5p:4x4x8", "--batch", "64", "--sequence", "64"]
    assert run([*asked, "--axes", "data=64,tensor=2"]) == 0
    line = re.search(r"^ +shardviz (model .*?)\n\n", capsys.readouterr().out, re.DOTALL | re.MULTILINE)[1]
    assert run(shlex.split(line.replace("\\\n", ""))) == 0


def test_the_best_specs_are_written_as_rules_that_a_model_reads(capsys, tmp_path, monkeypatch):
    """Those of logical axes are MaxText's own: the width over fsdp, heads and the hidden dimension over
    tensor."""
    monkeypatch.chdir(tmp_path)
    asked = ["search", "llama-3-8b", "--machine", "v5e:2x4", "--batch", "8", "--axes", "fsdp=4,tensor=2"]
    steps = []
    for more in ([], ["-o", "rules.toml"], ["-o", "rules.yml"], ["-o", "rules.py"]):
        assert run([*asked, *more]) == 0
        page = capsys.readouterr().out
        line = re.search(r"^ +shardviz (model .*?)\n\n", page, re.DOTALL | re.MULTILINE)[1]
        assert ("--change" in line) == (not more)
        assert run([*shlex.split(line.replace("\\\n", "")), "--json"]) == 0
        steps.append(json.loads(capsys.readouterr().out)["step"])
    assert steps[0] == steps[1] == steps[2] == steps[3]
    rules = yaml.safe_load((tmp_path / "rules.yml").read_text())["logical_axis_rules"]
    assert ["embed", ["fsdp"]] in rules
    for name in ("heads", "q_heads", "kv_heads", "mlp"):
        assert [name, ["tensor"]] in rules
    assert ["activation_batch", ["fsdp"]] in rules


def test_a_row_that_serves_has_the_seconds_of_its_command(capsys):
    """Llama 3 70B in int8 on a v5e 4×2, of "How to Scale Your Model", part 7; all of it in bf16 needs 4×4."""
    asked = ["search", "llama-3-70b", "--batch", "32", "--sequence", "8192", "--serve", "--machine"]
    small = [*asked, "v5e:2x4", "--dtype", "int8", "--cache", "int8"]
    assert run(small) == 0
    page = capsys.readouterr().out
    line = re.search(r"^ +shardviz (model .*?)\n\n", page, re.DOTALL | re.MULTILINE)[1]
    assert run([*small, "--json"]) == 0
    served = json.loads(capsys.readouterr().out)["served"]
    assert run([*shlex.split(line.replace("\\\n", "")), "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert served[0]["decode"] == alone["decode"]
    assert served[0]["prefill"] == alone["prefill"]
    assert alone["decode"]["step"]["overlapped_seconds"] == pytest.approx(0.017, rel=0.1)
    assert run([*small, "--limit", "1", "-v"]) == 0
    assumed = " ".join(capsys.readouterr().out.split())
    assert "Times are those of shardviz model --serve, without overlap." in assumed
    assert "is assumed to overlap" not in assumed
    assert run([*asked, "v5e:2x2", "--batch", "8"]) == 1
    assert "The smallest machine that fits is v5e:4x4." in capsys.readouterr().out


def test_overlap_that_no_row_has_is_refused(capsys):
    asked = ["search", "llama-3-70b", "--serve", "--machine", "v5e:4x4", "--overlap", "all"]
    assert run(asked) == 2
    assert "a step that decodes is priced without overlap" in capsys.readouterr().err


def test_the_first_row_that_serves_is_the_first_of_all():
    """Whatever rows are shown; by the command of a row Llama 3 8B takes 5.45 ms with tensor=16, and 5.76 ms
    with data=2,tensor=8, which is the first by the search's own seconds."""
    asked = {"batch": 32, "sequence": 8192, "serve": True}
    found = best_meshes(search_question("llama-3-8b", named_machine("v5e:4x4"), "", **asked))
    shown = [list(served_meshes(found, "llama-3-8b", limit))[-1][1] for limit in (5, 1)]
    rows = [[(one.found.mesh, one.answer.decode.step.seconds) for one in served] for served in shown]
    assert len(rows[0]) >= 3
    assert rows[1] == rows[0][:1]
    assert [seconds for _, seconds in rows[0]] == sorted(seconds for _, seconds in rows[0])


def test_a_mesh_that_cannot_serve_a_whole_model_is_ruled_out(capsys):
    """The search splits the eight heads of the cache over 16 devices, which the rules of a model do not."""
    asked = ["search", "llama-3-8b", "--serve", "--machine", "v5e:4x4", "--batch", "32", "--axes", "X=16"]
    assert run(asked) == 1
    page = " ".join(capsys.readouterr().out.split())
    words = "shardviz model --serve would hold 17.9 GiB of 15.8 GiB on each device"
    assert f"1 mesh is ruled out: X=16: {words}." in page
    assert run([*asked, "--json"]) == 1
    assert words in json.loads(capsys.readouterr().out)["infeasible"][0]["reason"]


def test_meshes_that_serve_alike_are_one_row(capsys):
    """Beside all of them, each priced alone: a row stands for every other order and other names of its axes,
    none of which is faster."""
    asked = {"batch": 8, "sequence": 1024, "serve": True}
    found = best_meshes(search_question("gpt2", named_machine("v5e:2x4"), "X,Y,Z", **asked))
    *_, (ranking, served, left) = served_meshes(found, "gpt2", 10)
    assert left == 0
    alone = {}
    for row in found.found:
        *_, (_, [one], _) = served_meshes(replace(found, found=(row,)), "gpt2", 1)
        alone[str(row.mesh)] = one.answer.decode.step.seconds, one.answer.decode.memory
    rows = [[str(row.mesh) for row in (one.found, *one.copies)] for one in served]
    assert sorted(name for row in rows for name in row) == sorted(alone)
    assert [str(row.mesh) for row in ranking.found] == [name for row in rows for name in row]
    for one, names in zip(served, rows, strict=True):
        told = one.answer.decode.step.seconds, one.answer.decode.memory
        assert told == min(alone[name] for name in names)
    assert len(served) < len(alone)
    words = "--serve --batch 32 --sequence 1024 --limit 1"
    assert run(["search", "llama-3-8b", "--machine", "v5e:4x4", "--axes", "X,Y", *words.split()]) == 0
    page = capsys.readouterr().out
    assert "\n2  " not in page
    assert re.search(r"\n(\d) more meshes: --limit \d shows all.\n", page)
    small = ["search", "gpt2", "--machine", "v5e:2x4", "--axes", "X,Y,Z", *words.split()]
    assert run([*small, "--batch", "8"]) == 0
    assert "\nthe same: row 1 as X=2, Y=4 or X=4, Y=2 or X=2, Y=2, Z=2\n" in capsys.readouterr().out


@pytest.mark.parametrize("serve", [(), ("--serve",)])
def test_choices_of_experts_that_are_dropped_are_told(serve, capsys):
    """A prompt of 4,096 tokens has room for 1.25 of the 1.5 times the mean that the fullest expert is chosen;
    the slots of 8 tokens that are decoded are rounded up, and drop nothing."""
    asked = "mixtral-8x7b --machine v5e:4x4 --batch 8 --sequence 4096 --load 1.5,1.25 --axes tensor"
    assert run(["search", *asked.split(), *serve]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "16.7 % of the choices of the fullest expert are dropped" in page


def test_meshes_with_the_same_figures_are_one_row(capsys):
    asked = ["search", "bd,df->bf; bf,fd->bd", "--machine", "v5e:4x4", "--axes", "X,Y"]
    assert run([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["found"]
    assert len(found) == 4
    assert run([*asked, "--limit", "2"]) == 0
    assert "\n2 more meshes: --limit 4 shows all.\n" in capsys.readouterr().out
    assert run([*asked[:-1], "X,Y,Z"]) == 0
    page = capsys.readouterr().out
    assert "\nthe same: row 1 as X=2, Y=2, Z=4 or X=2, Y=4, Z=2 or X=4, Y=2, Z=2\n" in page
    assert re.findall(r"^\d  X=[^ ]*(?: Y=\d)?", page, re.MULTILINE)[:4] == [
        *("1  X=2, Y=8", "2  X=4, Y=4", "3  X=8, Y=2", "4  X=16")
    ]


def test_the_command_of_a_pipeline_says_that_it_has_none(capsys):
    words = "--machine v5e:2x2 --axes pp=2,data=2 --sizes b=64,d=64 --backward"
    assert run(["search", "bd,de->be x 4", *words.split()]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "This command computes all layers on every device and takes the batch at once" in page


def test_a_model_in_a_pipeline_has_no_command_that_leaves_it_out(capsys):
    assert run(["search", "gpt2", "--machine", "v5e:2x2", "--axes", "pp=2,tensor", "--batch", "8"]) == 0
    page = capsys.readouterr().out
    assert "1  pp=2, tensor=2" in page
    assert "shardviz model" not in page


def test_the_command_splits_no_vocabulary_that_jax_would_not(capsys):
    """The 50,257 tokens of GPT-2 are not divisible by four."""
    assert run(["search", "gpt2", "--machine", "v5e:2x2", "--axes", "tensor", "--batch", "8"]) == 0
    page = capsys.readouterr().out
    assert "mlp.c_fc.weight=_ tensor" in " ".join(page.split())
    assert "wte.weight=_ tensor" in " ".join(page.split())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["gpt2", "--sizes", "b=3"], "the sizes of gpt2 are its own"),
        (["gtp2"], "there is no model 'gtp2'"),
        ([""], "there is no model ''"),  # not a file of the present folder
        (["bd,df->bf", "--batch", "8"], "a batch, a sequence and a load are those of a model"),
        (["bd,df->bf", "-o", "x.toml"], "-o writes a model's rules, but this is a program"),
        (["gpt2", "--serve", "--backward"], "without gradients and pipelines"),
        (["llama-3-70b", "--serve", "--sequence", "131072"], "takes 8,192 tokens, a context has 131,072"),
        (["gpt2", "--cache", "s8"], "are those of inference"),
        (["bd,df->bf", "--serve"], "a model is served, but this is a program"),
        (["gpt2", "-o", "x.txt"], "'x.txt' does not end in .toml, .yml, .py"),
        (["gpt2", "-o", "nowhere/x.toml"], "the folder of 'nowhere/x.toml' does not exist"),
    ],
)
def test_what_is_no_search_of_a_model(words, problem, capsys):
    assert run(["search", *words, "--machine", "v5e:2x2"]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_compiler_that_is_not_installed_is_refused_before_the_search(more, monkeypatch, capsys):
    monkeypatch.setattr("shardviz.targets.find_spec", lambda _: None)
    assert run(["search", "bd,df->bf", "--machine", "h100:8", "--compile", "2", *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "h100:8 needs the GPU compiler, JAX's CUDA plugin, which" in captured.err
    assert "hint: " in captured.err


def test_where_nothing_could_be_compiled_nothing_is_said_of_an_order(monkeypatch, capsys):
    class DeadWorker:
        def submit(self, *_, **__):
            request = CompilerRequest(None, lambda _: None)
            request.fail(CompilerError("it has died"))
            return request

    monkeypatch.setattr("shardviz.cli.search.check_installed", lambda _: None)
    monkeypatch.setattr("shardviz.cli.target_session.started_worker", lambda *_: nullcontext(DeadWorker()))
    assert run(["search", "bd,df->bf", "--machine", "h100:8", "--compile", "2"]) == 3
    page = capsys.readouterr().out
    assert "None compiled for h100:8." in page
    assert "order" not in page.partition("it has died")[2]


def test_a_narrow_page_has_the_figures_of_the_best_below_the_table(capsys):
    assert run([*MLP, "--axes", "fsdp=8", "--backward", "--width", "40"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 40
    below = page.partition("\n\n")[2].partition("\n\n")[2]
    assert "bound " in below
    assert "MFU " in below
    assert "communication fsdp " in below
    assert run([*MLP, "--axes", "fsdp=8", "--backward", "--width", "120"]) == 0
    assert "communication fsdp " not in capsys.readouterr().out


def test_a_number_has_no_examples(capsys):
    assert run(["search", ",b->b", "--machine", "v5e:2x2"]) == 0
    assert "1  tensor=4  " in capsys.readouterr().out


def test_one_mesh_is_no_plural(capsys):
    assert run(["search", "bd,df->bf", "--machine", "v5e:1x1"]) == 0
    page = capsys.readouterr().out
    assert "\n1 mesh and 1 sharding looked at. On v5e:1x1" in page
    assert "explain may plan their shardings in less time or memory." in " ".join(page.split())


def test_a_search_counts_no_time_of_links_that_nobody_publishes(capsys):
    assert run(["search", "bd,df->bf", "--machine", "trn2:4"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    words = "no bandwidth of NeuronLink is published for trn2"
    assert f"The time of communication is not counted: {words}." in page
    assert re.search(r"fsdp=4 ≥ \d.* µs \? 45 MiB unknown", page)
    assert run(["search", "bd,df->bf", "--machine", "trn2:4", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["found"][-1]
    assert [row[name] for name in ("exposed_seconds", "utilisation", "bound")] == [None, None, "unknown"]
    assert {each["seconds"] for each in row["communication"]} == {None}
    explain = ["explain", "bd,df->bf", "--mesh", "X=4", "--specs", "_X,X_->__", "--machine", "trn2:4"]
    assert run(explain) == 0
    assert f"Collectives have no seconds: {words}." in " ".join(capsys.readouterr().out.split())
    assert run([*explain, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cost"]["communication_seconds"] is None
    assert {each["seconds"] for each in found["cost"]["communication_by_axes"]} == {None}
    assert found["plan"]["objective"] == "bytes"


def test_a_mesh_with_too_many_shardings_is_not_called_impossible(capsys, monkeypatch):
    def only_small(factors, sizes):
        if max(sizes.values()) > 10:
            raise TooWideError
        return least_of_stars(factors, sizes)

    monkeypatch.setattr("shardviz.planner.search.program_tables.least_of_stars", only_small)
    monkeypatch.setattr("shardviz.planner.search.program_tables.MAX_ENTRIES", 0)
    assert run([*MLP, "--axes", "X,Y", "--width", "200"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "2 meshes have too many shardings to search: X=2,Y=4; X=4,Y=2." in page
    assert "not possible" not in page
    assert "1 mesh of 3 and" in page


def test_json_has_every_mesh(capsys):
    assert run([*MLP, "--json", "--backward", "--optimizer", "adam"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "search"
    assert len(found["found"]) + len(found["infeasible"]) == found["meshes"] == 10
    seconds = [each["step_seconds"] for each in found["found"]]
    assert seconds == sorted(seconds)
    assert set(found["found"][0]["specs"]) == {"A", "W1", "W2", "H1", "Out"}


def test_what_does_not_fit_says_so(capsys):
    words = ["search", "bd,df->bf x 1000", "--machine", "v5e:2x4", "--sizes", "b=8,d=8Ki,f=8Ki"]
    assert run([*words, "--axes", "data"]) == 1
    assert "each device would hold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--keep", "W9=_"), "no array is called 'W9'"),
        (("--backward", "--optimizer", "lion"), "'lion' is not an optimizer"),
        (("--axes", "data=3"), "no mesh of 8 devices has data=3"),
    ],
)
def test_what_is_refused(words, message, capsys):
    assert run([*MLP, *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code", "done"), [(signal.SIGTERM, 143, 6), (signal.SIGINT, 130, 0)])
def test_an_interrupt_prints_what_there_is(capsys, monkeypatch, number, code, done):
    from shardviz.planner.search.mesh_ranking import search_meshes

    def interrupted(question):
        for answer in search_meshes(question):
            if answer.looked_at == done:
                signal.raise_signal(number)
            yield answer

    monkeypatch.setattr("shardviz.planner.search.mesh_ranking.search_meshes", interrupted)
    assert run(list(MLP)) == code
    said = capsys.readouterr()
    assert f"Not complete: {done} of 10 meshes" in said.out
    assert f"interrupted after {done} of 10 meshes: not complete" in said.err


def test_an_interrupt_while_whole_models_are_planned_prints_those_there_are(capsys, monkeypatch):
    def planning(*given, **named):
        for answer in served_meshes(*given, **named):
            signal.raise_signal(signal.SIGINT)
            yield answer

    monkeypatch.setattr("shardviz.answers.search.served_meshes", planning)
    words = "search gpt2 --machine v5e:2x2 --batch 4 --sequence 64 --serve"
    assert run(words.split()) == 130
    said = capsys.readouterr()
    assert "decode step" in said.out
    assert "\n1  " in said.out
    assert "\n2  " not in said.out
    assert "\n2 more meshes: --limit 3 shows all.\n" in said.out
    assert "interrupted with 2 meshes left to plan: not complete" in said.err
