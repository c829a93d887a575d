"""The texts that a compiler leaves, and what becomes of them where jaxlib fails: a compiler of our own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from jax.errors import JaxRuntimeError

from shardviz.compiler.child import xla
from shardviz.compiler.child.xla import Recording
from shardviz.compiler.messages import Question, StatementPart, TargetMesh
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.targets.hardware import TopologyRequest

SPEC = PartitionSpec((("X",), ()))
ARRAY = ShardedArray("A", ("i", "j"), (8, 8), "bf16", SPEC)
NAME = "module_0004.jit_program.cl_933746096"
FILES = {
    f"{NAME}.0001.xla.after_tpu-spmd-partitioning.before_tpu-call-inliner.txt": "HloModule parted",
    f"{NAME}.after_codegen.txt": "HloModule final, is_scheduled=true",
    f"{NAME}.after_optimizations.txt": "HloModule scheduled",
    f"{NAME}.after_optimizations-buffer-assignment.txt": "BufferAssignment:\nallocation 0: size 7:\n",
    f"{NAME}.after_optimizations-buffer-assignment-values.txt": "not this one",
    f"{NAME}.after_optimizations-live-range.txt": "HloLiveRange (max 1):\n",
    "jit_program.schedule.txt": "computation_schedules {\n}\n",
}
RET_CHECK = "INTERNAL: RET_CHECK failure async-update instruction should have 1 operands but sees 2"


def question(dumps="", folder="", topology=None):
    part = StatementPart("jnp.einsum('ij,jk->ik', *operands)", (ARRAY, ARRAY), ARRAY)
    mesh = TargetMesh("v6e:2x4", Mesh(("X",), (8,)), (("X", 8),), topology=topology)
    return Question(mesh, (part,), results=(ARRAY,), dumps=dumps, folder=str(folder))


def program(asked, failure, files=FILES):
    """A program whose compiler writes files into the folder that it is told, and then fails."""

    def compile(compiler_options):
        for name, text in files.items():
            Path(compiler_options["xla_dump_to"], name).write_text(text)
        raise JaxRuntimeError(failure)

    lowered = SimpleNamespace(compile=compile)
    return SimpleNamespace(question=asked, trace=lambda: SimpleNamespace(lower=lambda: lowered))


def test_what_jaxlib_cannot_load_is_answered_from_the_compilers_own_texts(tmp_path):
    found = xla.ask(program(question("costs", tmp_path), RET_CHECK), lambda _: None)
    assert (found.result.status, found.result.error, found.result.result_spec) == ("ok", "", SPEC)
    assert (found.result.text, found.partitioned) == (
        FILES[f"{NAME}.after_codegen.txt"],
        "HloModule parted",
    )
    assert found.schedule == FILES["jit_program.schedule.txt"]
    assert found.memory.sizes == ()
    assert found.memory.assignment.startswith("BufferAssignment")
    assert found.memory.live_ranges.startswith("HloLiveRange")


def test_a_compiler_that_did_not_come_so_far_has_failed(tmp_path):
    early = {name: text for name, text in FILES.items() if "codegen" not in name}
    with pytest.raises(JaxRuntimeError, match="RET_CHECK"):
        xla.ask(program(question("costs", tmp_path), RET_CHECK, early), lambda _: None)


def test_what_does_not_fit_keeps_its_reports(tmp_path):
    failure = "RESOURCE_EXHAUSTED: E1000: Ran out of memory on HBM, (18.00G) exceeds available HBM (15.75G)."
    found = xla.ask(program(question("costs", tmp_path), failure), lambda _: None)
    assert (found.result.status, found.result.text) == ("error", "")
    assert "15.75G" in found.result.error
    assert found.memory.module == "HloModule scheduled"
    assert found.memory.assignment.startswith("BufferAssignment")
    assert found.schedule


@pytest.mark.parametrize(
    ("asked", "has"),
    [
        (question(), set()),
        (question("passes"), set()),
        (question("costs"), {"xla_dump_latency_hiding_schedule"}),
    ],
)
def test_options_by_what_is_asked(asked, has):
    options = Recording(asked).options
    assert {name for name in options if "schedule" in name} == has
    assert (options["xla_dump_hlo_pass_re"] == ".*") == (asked.dumps == "passes")


@pytest.mark.parametrize(("gpu", "has_estimates"), [("h100", True), ("b200", True), ("a100", False)])
def test_estimates_are_asked_of_gpus_that_xla_knows(gpu, has_estimates):
    topology = TopologyRequest("cuda", "1x1x8", (("gpu", gpu),))
    assert "xla_gpu_collect_cost_model_stats" not in Recording(question(topology=topology)).options
    options = Recording(question("costs", topology=topology)).options
    assert options["xla_gpu_collect_cost_model_stats"] is has_estimates
