"""A worker whose answers are written down: programs that are the same with every compiler."""

from __future__ import annotations

from dataclasses import replace

from shardviz.compiler.requests import settled
from shardviz.hlo import Collective, read_hlo, read_shardy
from shardviz.hlo.dumps import PassStage
from shardviz.hlo.mlir.shardings import ShardedTensor
from shardviz.notation.mesh import parse_mesh
from shardviz.reports.target_result import PassTrace, TargetResult
from shardviz.user_files import EXAMPLES
from tests.tui.conftest import Mute

MESH = parse_mesh("X=2,Y=4")
PROGRAM = (EXAMPLES / "mlp.txt").read_text(encoding="utf-8")
SHARDY = """\
module @jit_program attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["X"=2, "Y"=4]>
  func.func public @main(%arg0: tensor<8x2048xbf16>, %arg1: tensor<2048x8192xbf16>) -> tensor<8x8192xbf16> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : tensor<8x8192xbf16>
    %1 = sdy.all_reduce {"Y"} %0 out_sharding=<@mesh, [{"X"}, {}]> : tensor<8x8192xbf16>

    return %1 : tensor<8x8192xbf16>
  }
}
#loc1 = loc("somewhere")
"""
REFUSAL = "the v5e:2x4 compiler was killed by SIGSEGV while it was compiling {U_Y}"
HINT = "ask again to start it anew"
ROWS = ((0, 1, 2, 3), (4, 5, 6, 7))
EARLY = Collective(
    "all-reduce", "all-reduce", ("Y",), ROWS, (4, 8192), (4, 8192), "bf16", 65536, 98304, group_size=4
)
LATE = replace(EARLY, dtype="f32", bytes=131072, wire_bytes=196608)
PROMOTED = "all-reduce over Y: bf16 became f32, 64 KiB became 128 KiB"
STAGES = (
    PassStage(
        "input",
        "the program as it was written",
        "shardy before_propagation",
        (),
        (),
        (ShardedTensor("0", "argument", (8, 2048), "bf16", None, (("X",), ("Y",))),),
    ),
    PassStage(
        "propagation",
        "Shardy decides how 1 tensor is split",
        "shardy after_propagation",
        (),
        (),
        (ShardedTensor("%0", "dot", (8, 8192), "bf16", None, (("X",), ())),),
    ),
    PassStage("partitioner", "the partitioner inserts an all-reduce", "spmd-partitioning", (), (EARLY,)),
    PassStage(
        "rewrite",
        PROMOTED,
        "all-reduce-promotion",
        (EARLY,),
        (LATE,),
        before_text="HloModule a\n%x = bf16[4]{0} all-reduce(%y)\n",
        after_text="HloModule a\n%x = f32[4]{0} all-reduce(%y)\n",
        changes=(PROMOTED,),
    ),
    PassStage("schedule", "the final schedule: an all-reduce", "cpu_after_optimizations", (LATE,), (LATE,)),
)


def shardy_answer() -> TargetResult:
    """Shardy's answer, in no time."""
    return TargetResult("shardy", "ok", read_shardy(SHARDY, MESH).collectives, text=SHARDY, elapsed_s=0.012)


def cpu_answer(text: str = PROGRAM) -> TargetResult:
    """The answer of the CPU's compiler: a program with a loop and with collectives that overlap."""
    module = read_hlo(text, MESH, origins=True)
    return TargetResult("cpu", "ok", module.collectives, text=text, elapsed_s=0.213)


class Recorded(Mute):
    """Shardy and the CPU's compiler answer at once, the TPU's dies, and any other says nothing."""

    def submit(self, problem, target, *of, **schedule):
        if target.name == "v5e:2x4":
            return settled(TargetResult(target.name, "error", error=REFUSAL, hint=HINT))
        known = {"shardy": shardy_answer, "cpu": cpu_answer}.get(target.name)
        return settled(known()) if known else super().submit(problem, target, *of, **schedule)

    def trace(self, problem, target, *of, **schedule):
        if target.name == "cpu":
            return settled(PassTrace(cpu_answer(), STAGES))
        return super().submit(problem, target, *of, **schedule)
