"""Memory that a device did not have: XLA's own words for it on CPUs, and the forms of libtpu and of GPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shardviz.cli.group import run
from shardviz.reports.failures import out_of_memory

GIB = 2**30
ARRAY = """
  {number}. Size: {size}
     Operator: op_name="jit(train_step)/jvp(Model)/h/{number}/attention/dot_general[dims=(((3,), (3,)),
                 ((0, 2), (0, 2)))]" source_file="/home/me/attention.py" source_line=59
     Shape: f32[32,4096,4096]{{1,2,0:T(8,128)}}
     Unpadded size: {size}
     XLA label: fusion.{number}.remat3 = fusion(custom-call.224, custom-call.22), kind=kOutput
     Allocation type: HLO temp
     ==========================
"""
TPU = f"""RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 63.80G of 30.75G hbm. Exceeded hbm capacity by 33.05G.

Total hbm usage >= 65.05G:
    reserved          1.25G
    program          63.80G
    arguments            0B

Output size 0B; shares 0B with arguments.

  Largest program allocations in hbm:
{ARRAY.format(number=1, size="2.00G")}{ARRAY.format(number=2, size="2.00G")}
  3. Size: 6.00G
     Shape: u32[12582912,1]{{1,0:T(8,128)}}
     Unpadded size: 48.00M
     Extra memory due to padding: 5.95G (128.0x expansion)
     XLA label: %fusion.440.remat4 = u32[12582912,1]{{1,0:T(8,128)}} fusion(u32[]{{:T(256)}} %add.456)
     Allocation type: HLO temp
     ==========================
"""  # noqa: E501
GPU = """W external/xla/xla/tsl/framework/bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.02GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if more memory were available.
W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 8.41GiB (rounded to 9031036416)requested by op
I external/xla/xla/tsl/framework/bfc_allocator.cc:1114] Stats:
Limit:                     11332452352
InUse:                      3208388864
MaxInUse:                   3300000000
E external/xla/xla/pjrt/client.cc:29] Execution failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9031036208 bytes.
Peak buffers:
\tBuffer 1:
\t\tSize: 1.52GiB
\t\tOperator: op_name="jit(apply)/layer_norm/reduce_sum[axes=(2,)]" source_file="/m/modules.py" source_line=14
\t\tXLA Label: fusion
\t\tShape: f32[5120,1248,64]
\t\t==========================

\tBuffer 2:
\t\tSize: 384.0MiB
\t\tEntry Parameter Subshape: f32[1024,98304]
\t\t==========================
"""  # noqa: E501


def test_a_log_of_the_tpu_compiler(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{TPU}\nThe above exception was the direct cause of the following:\n{TPU[:140]}\n")
    assert run(["hlo", str(log), "--width", "90"]) == 0
    assert [line.rstrip() for line in capfd.readouterr().out.splitlines()] == [
        "✗ the program needs 63.8 GiB of HBM, and a device has 30.8 GiB: 33 GiB too much",
        "  bytes   padding  largest arrays                            line",
        "  6 GiB  5.95 GiB  u32[12582912,1]        fusion.440.remat4",
        "  4 GiB            f32[32,4096,4096] × 2  dot_general        attention.py:59",
    ]
    assert run(["hlo", str(log), "--json"]) == 0
    (failure,) = json.loads(capfd.readouterr().out)["out_of_memory"]
    assert [array["source"] for array in failure["arrays"]] == ["", *["/home/me/attention.py:59"] * 2]
    text = tmp_path / "both.txt"
    text.write_text((Path(__file__).parents[2] / "shardviz/examples/mlp.txt").read_text() + TPU)
    assert run(["hlo", str(text)]) == 0
    captured = capfd.readouterr()
    assert "✗ the program needs" in captured.out
    assert "all: 5 runs" in captured.out
    assert captured.err == ""


def test_a_log_without_arrays_is_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(f"{TPU[:140]}\n")
    assert run(["hlo", str(tmp_path / "log")]) == 0
    assert capfd.readouterr().out.count("\n") == 1
    (tmp_path / "log").write_text("Out of memory, in words that nobody knows\n")
    assert run(["hlo", str(tmp_path / "log")]) == 0
    assert capfd.readouterr().out == "the log has a warning that cannot be read\n"


def test_a_log_of_a_gpu_says_what_is_left_and_what_is_no_failure() -> None:
    (failure,) = out_of_memory(GPU)
    assert failure.words == (
        "an allocation asks for 8.41 GiB, and the device has left 7.57 GiB: 865 MiB too much"
    )
    assert [(one.name, one.shape, one.bytes, one.source) for one in failure.arrays] == [
        ("jit(apply)/layer_norm/reduce_sum", "f32[5120,1248,64]", int(1.52 * GIB), "/m/modules.py:14"),
        ("an argument", "f32[1024,98304]", 384 * 2**20, ""),
    ]


def test_cut_anywhere_a_log_does_not_hurt() -> None:
    for end in range(0, len(TPU), 9):
        found = out_of_memory(TPU[:end])
        assert not found or found[0].wanted_bytes == int(63.8 * GIB)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "Error allocating device buffer: Attempting to allocate 4.39G. That was not possible. There are "
            "2.30G free.; (0x0x0_HBM0)",
            "an allocation asks for 4.39 GiB, and the device has left 2.3 GiB: 2.09 GiB too much",
        ),
        (
            "Allocation (size=107374182400) would exceed memory (size=17179869184) :: #allocation7 [shape = "
            "'u8[327680,327680]{1,0:T(8,128)(4,1)}', space=hbm, tag = 'output of xor_fusion@{}']",
            "an allocation asks for 100 GiB of HBM, and a device has 16 GiB: 84 GiB too much",
        ),
        (
            "Ran out of memory on HBM, the total memory required for HLO temporaries (53.00G) exceeds "
            "available HBM (15.75G).",
            "the program's temporaries need 53 GiB of HBM, and a device has 15.8 GiB: 37.2 GiB too much",
        ),
        (
            "Ran out of memory in memory space vmem while allocating on stack for %f.1 = f32[2048]{0} "
            "custom-call(%p). Scoped allocation with size 64.00M and limit 16.00M exceeded scoped vmem limit",
            "a kernel needs 64 MiB of on-chip memory, and a device has 16 MiB: 48 MiB too much",
        ),
        (
            "Failed to allocate request for 256.00MiB (268435456B) on device ordinal 0",
            "an allocation asks for 256 MiB, and the device does not have it",
        ),
        ("all is well", None),
    ],
)
def test_forms(words: str, said: str | None) -> None:
    assert [failure.words for failure in out_of_memory(words)] == ([said] if said else [])


def test_the_words_of_xla_on_cpus() -> None:
    code = "import jax; jax.jit(lambda x: jax.numpy.broadcast_to(x, (2**44,)))(jax.numpy.float32(1))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    assert [failure.wanted_bytes for failure in out_of_memory(found.stderr)] == [2**46]
