"""Answers of hardware's compilers on disk: read back where nothing has changed, compiled anew elsewhere."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from shardviz.cli.group import run
from shardviz.compiler import Worker, compile_cache
from shardviz.compiler.messages import ModuleQuestion, Output, TargetMesh
from shardviz.compiler.question import question_for
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh
from shardviz.targets import parse_targets

V5E, CPU, SHARDY = parse_targets("v5e:2x4,cpu,shardy")
VERSIONS = (("jax", "1.2.3"),)
OUTPUT = Output(TargetResult("v5e:2x4", "ok", text="HloModule m", elapsed_s=35.0), schedule="s")
MODULE = ModuleQuestion(TargetMesh("v5e:2x4", Mesh(("X",), (8,)), (("X", 8),)), b"code")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(compile_cache, "folder", lambda: tmp_path / "compiled")


def entry(question=MODULE, target=V5E, environment=None):
    return compile_cache.entry("answer.answer_program", question, target, environment or {})


def test_an_answer_is_read_back_with_its_versions():
    assert entry().load() is None
    entry().save(OUTPUT, VERSIONS)
    kept = entry()
    assert kept.load() == replace(OUTPUT, result=replace(OUTPUT.result, is_cached=True))
    assert kept.versions == VERSIONS


@pytest.mark.parametrize(
    "changed",
    [
        {"question": replace(MODULE, code=b"other")},
        {"question": replace(MODULE, options=(("xla_a", "true"),))},
        {"question": replace(MODULE, dumps="costs")},
        {"question": replace(MODULE, mesh=replace(MODULE.mesh, mesh=Mesh(("X",), (8,), (7, *range(7)))))},
        {"environment": {"LIBTPU_INIT_ARGS": "--xla_a=true"}},
        {"environment": {"XLA_FLAGS": "--xla_a=true"}},
    ],
)
def test_another_question_has_another_place(changed):
    entry().save(OUTPUT, VERSIONS)
    assert entry(**changed).load() is None


def test_another_release_has_another_place(monkeypatch):
    entry().save(OUTPUT, VERSIONS)
    monkeypatch.setattr(compile_cache, "_versions", lambda: "newer")
    assert entry().load() is None


def test_what_is_not_kept():
    assert entry(target=CPU) is None
    assert entry(target=SHARDY) is None
    assert entry(replace(MODULE, dumps="passes")) is None
    assert entry(environment={"XLA_FLAGS": "--xla_dump_to=/tmp/x"}) is None


@pytest.mark.parametrize("damage", [b"", b"not compressed", None])
def test_a_damaged_file_is_no_answer(damage):
    kept = entry()
    kept.save(OUTPUT, VERSIONS)
    (file,) = compile_cache.folder().iterdir()
    file.write_bytes(file.read_bytes()[:-9] if damage is None else damage)
    assert kept.load() is None


def test_what_was_not_used_for_longest_goes_first(monkeypatch):
    names = [replace(MODULE, code=bytes([number])) for number in range(4)]
    for age, name in zip((3, 2, 1), names, strict=False):
        entry(name).save(OUTPUT, VERSIONS)
        newest = max(compile_cache.folder().iterdir(), key=lambda file: file.stat().st_mtime)
        os.utime(newest, (newest.stat().st_mtime - age * 1000,) * 2)
    assert entry(names[0]).load()  # used now
    _, _, size = compile_cache.usage()
    monkeypatch.setattr(compile_cache, "LIMIT_BYTES", size)
    entry(names[3]).save(OUTPUT, VERSIONS)
    assert [entry(name).load() is not None for name in names] == [True, False, True, True]


def test_a_full_disk_costs_no_answer(monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compile_cache, "replace_file", full)
    entry().save(OUTPUT, VERSIONS)
    assert entry().load() is None


def test_the_second_worker_starts_no_compiler(matmul):
    problem = matmul("XY,Y_->X_", sizes="b=8,d=512,f=1024")
    with Worker() as worker:
        first = worker.ask(problem, V5E)
    with Worker() as worker:
        second = worker.ask(problem, V5E)
        assert worker.pids() == ()
    assert first.status == "ok"
    assert not first.is_cached
    assert second == replace(first, is_cached=True)
    assert second.versions == first.versions


def test_an_error_is_asked_again(matmul):
    huge = matmul("XY,Y_->X_", sizes="b=8Ki,d=1Mi,f=1Mi")
    with Worker() as worker:
        assert worker.ask(huge, V5E).status == "error"
    assert compile_cache.usage()[1] == 0


def test_info_tells_and_clears(capfd):
    entry().save(OUTPUT, VERSIONS)
    assert run(["info", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)["cache"]
    assert told["programs"] == 1
    assert told["bytes"] > 0
    assert run(["info", "--clear-cache"]) == 0
    assert "0 programs" in capfd.readouterr().out


def test_what_cannot_be_removed_is_one_sentence(capfd):
    (compile_cache.folder() / "own").mkdir(parents=True)
    assert run(["info", "--clear-cache"]) == 2
    assert "cannot be removed: Is a directory" in capfd.readouterr().err


def test_every_part_of_a_question_is_in_its_place(matmul):
    """A field that `repr` left out would give one answer to two questions."""
    asked = question_for(matmul("XY,Y_->X_"), V5E)
    for name in asked.__dataclass_fields__:
        assert f"{name}=" in repr(asked)
