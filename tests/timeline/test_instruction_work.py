"""FLOPs and bytes of instructions: matmuls and convolutions against XLA's cost analysis, bytes by hand."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from shardviz.hlo.module import Reader
from shardviz.hlo.text.shapes import bytes_in, placed_arrays
from shardviz.timeline.instruction_work import InstructionWork, valid_taps


def work_of(text: str) -> tuple[InstructionWork, Reader]:
    reader = Reader(text, None, None)
    return InstructionWork(reader.lines), reader


def flops(text: str) -> int:
    work, reader = work_of(text)
    return sum(work.inside(home).flops for home in reader.computations.all if home.is_entry)


def conv(**options):
    return lambda x, k: lax.conv_general_dilated(x, k, **options)


CASES = {
    "matmul": (jnp.matmul, (128, 64), (64, 32)),
    "batched": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (4, 16, 8), (4, 8, 32)),
    "two contracted": (lambda a, b: jnp.einsum("ijk,jkl->il", a, b), (4, 16, 8), (16, 8, 32)),
    "same padding": (conv(window_strides=(1, 1), padding="SAME"), (2, 8, 9, 11), (5, 8, 3, 3)),
    "strides": (conv(window_strides=(2, 3), padding="VALID"), (2, 8, 9, 11), (5, 8, 3, 2)),
    "input dilation": (
        conv(window_strides=(1, 1), padding=((2, 2), (1, 3)), lhs_dilation=(2, 3)),
        (2, 8, 9, 11),
        (5, 8, 3, 3),
    ),
    "kernel dilation": (
        conv(window_strides=(1, 2), padding="SAME", rhs_dilation=(3, 2)),
        (2, 8, 9, 11),
        (5, 8, 3, 3),
    ),
    "feature groups": (
        conv(window_strides=(1,), padding="SAME", feature_group_count=4),
        (2, 8, 9),
        (12, 2, 3),
    ),
    "batch groups": (conv(window_strides=(1,), padding="SAME", batch_group_count=2), (4, 8, 9), (6, 8, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_flops_as_xla_counts_them(name):
    function, *shapes = CASES[name]
    lowered = jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))
    assert flops(lowered.as_text(dialect="hlo")) == lowered.cost_analysis()["flops"]


@pytest.mark.parametrize(("precision", "passes"), [("default", 1), ("high", 3), ("highest", 6)])
def test_passes_of_a_precision(precision, passes):
    def function(a, b):
        return jnp.matmul(a, b, precision=precision)

    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((8, 16), (16, 4))]
    work, reader = work_of(jax.jit(function).lower(*shapes).as_text(dialect="hlo"))
    (entry,) = (home for home in reader.computations.all if home.is_entry)
    assert work.inside(entry) == (2 * 8 * 16 * 4, "f32", passes)


def test_valid_taps_by_counting():
    for stride, spread, low in product([1, 2, 3], [1, 2, 4], [-1, 0, 2]):
        size, taps, outputs, gap = 7, 4, 9, 2
        counted = 0
        for output in range(outputs):
            for tap in range(taps):
                place = output * stride + tap * gap - low
                counted += 0 <= place <= (size - 1) * spread and place % spread == 0
        window = {
            "stride": str(stride),
            "lhs_dilate": str(spread),
            "rhs_dilate": str(gap),
            "pad": f"{low}_0",
        }
        assert valid_taps(size, taps, outputs, window) == counted


FUSIONS = """HloModule m, is_scheduled=true

%sliced (p0: f32[64,1024], p1: s32[]) -> f32[1,1024] {
  %p0 = f32[64,1024]{1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  ROOT %slice = f32[1,1024]{1,0} dynamic-slice(%p0, %p1, %zero), dynamic_slice_sizes={1,1024}
}

%updated (q0: f32[64,1024], q1: f32[1,1024], q2: s32[]) -> f32[64,1024] {
  %q0 = f32[64,1024]{1,0} parameter(0)
  %q1 = f32[1,1024]{1,0} parameter(1)
  %q2 = s32[] parameter(2)
  %none = s32[] constant(0)
  ROOT %update = f32[64,1024]{1,0} dynamic-update-slice(%q0, %q1, %q2, %none)
}

ENTRY %main (x: f32[64,1024], i: s32[]) -> f32[64,1024] {
  %x = f32[64,1024]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %a = f32[1,1024]{1,0} fusion(%x, %i), kind=kLoop, calls=%sliced
  %b = f32[64,1024]{1,0} fusion(%x, %a, %i), kind=kLoop, calls=%updated
  %c = f32[64,1024]{1,0:S(1)} negate(%b)
  %gemm = (f32[64,32]{1,0}, s8[100]{0}) custom-call(%b, %w), custom_call_target="__cublas$gemm", \
backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}
  ROOT %kernel = f32[64,1024]{1,0} custom-call(%b), custom_call_target="tpu_custom_call", \
backend_config={"custom_call_config":{"cost_estimate":{"flops":"123","transcendentals":"0","bytes_accessed":"456"}}}
}
"""
ROW, ALL, SCALAR = 4096, 64 * 4096, 4


@pytest.mark.parametrize(
    ("name", "flops_", "bytes_"),
    [
        ("a", 0, 2 * ROW + SCALAR),
        ("b", 0, 2 * ROW + SCALAR),
        ("c", 0, ALL),
        ("gemm", 2 * 64 * 1024 * 32, ALL + 64 * 32 * 4 + 100),
        ("kernel", 123, 456),
    ],
)
def test_bytes_of_hbm(name, flops_, bytes_):
    work, reader = work_of(FUSIONS)
    home = next(home for home in reader.computations.all if home.is_entry)
    line = reader.lines.named(home, name)
    assert line is not None
    shapes = work.operand_shapes(line)
    assert (work.matmuls(line, shapes).flops, work.hbm_bytes(line, shapes)) == (flops_, bytes_)


@pytest.mark.parametrize(
    ("shape", "bytes_", "space"),
    [
        ("f32[]", 4, 0),
        ("u32[]{:T(128)S(2)}", 512, 2),
        ("bf16[512,384]{1,0:T(8,128)(2,1)S(1)}", 512 * 384 * 2, 1),
        ("bf16[100,3]{1,0:T(8,128)(2,1)}", 104 * 128 * 2, 0),
        ("bf16[100,3]{0,1:T(8,128)(2,1)}", 128 * 8 * 2, 0),
        ("s4[7]{0}", 4, 0),
        ("f32[<=5,2]{1,0}", 40, 0),
    ],
)
def test_arrays_as_they_lie(shape, bytes_, space):
    (found,) = placed_arrays(shape)
    assert (found.bytes, found.space) == (bytes_, space)
    assert bytes_in(f"({shape}, token[])") == (bytes_ if space == 0 else 0)


@pytest.mark.parametrize("size", ["5<=2", "<=", "5 2", "-1", "9" * 20, "a"])
def test_a_size_that_is_none_takes_nothing(size):
    assert placed_arrays(f"f32[{size}]{{0}}") == ()


def test_labels_of_a_convolution_that_are_damaged():
    line = "ROOT %c = f32[8,32] convolution(%p, %p), dim_labels=LABELS"
    entry = f"ENTRY %e (p: f32[8,32]) -> f32[8,32] {{\n  %p = f32[8,32] parameter(0)\n  {line}\n}}\n"
    for labels in ("b0_io->bx", "x0_io->bf", "bf_io->b0", "bx_io->bf"):
        assert flops("HloModule m\n\n" + entry.replace("LABELS", labels)) == 0


SLICED = "f32[64,32] dynamic-slice"


@pytest.mark.parametrize(
    ("first", "line", "is_like"),
    [
        (f"{SLICED}(%NAME.a, %NAME.b)", f"{SLICED}(%NAME.a, %NAME.b)", True),
        (f"{SLICED}(%NAME.a, %NAME.b)", f"{SLICED}(%NAME.b, %NAME.a)", False),
        (f"{SLICED}(%NAME.a, %NAME.b)", f"{SLICED}(%NAME.a, %NAME.a)", False),
        (f"{SLICED}(%NAME.a, %NAME.b)", "f32[64,32] add(%NAME.a, %NAME.b)", False),
        # Of these the operands and results of the fusion tell all.
        ("f32[64,32] subtract(%NAME.a, %NAME.b)", "f32[64,32] add(%NAME.a, %NAME.b)", True),
    ],
)
def test_computations_that_differ_in_names_alone_are_alike(first, line, is_like):
    parameters = "".join(f"  %NAME.{name} = f32[64,32] parameter({n})\n" for n, name in enumerate("ab"))

    def fused(name, line):
        body = f"{parameters}  ROOT %NAME.c = {line}\n".replace("NAME", name)
        return f"%{name} (p: f32[64,32], q: f32[64,32]) -> f32[64,32] {{\n{body}}}\n\n"

    texts = fused("one", first) + fused("other", line)
    work, reader = work_of(f"HloModule m\n\n{texts}")
    one, other = reader.computations.all
    assert (work.first_like(one), work.first_like(other) is one) == (one, is_like)


LIBRARIES = """
HloModule jit_step

ENTRY %main (q: bf16[2,1024,8,128], k: bf16[2,2048,2,128], x: f8e4m3fn[64,1024], w: f8e4m3fn[1024,32]) -> () {
  %q = bf16[2,1024,8,128]{3,2,1,0} parameter(0)
  %k = bf16[2,2048,2,128]{3,2,1,0} parameter(1)
  %x = f8e4m3fn[64,1024]{1,0} parameter(2)
  %w = f8e4m3fn[1024,32]{1,0} parameter(3)
  %one = f32[] constant(1)
  %forward = (bf16[2,8,1024,128]{3,1,2,0}, f32[2,8,1024]{2,1,0}) custom-call(%q, %k, %k), \
custom_call_target="__cudnn$fmhaSoftmax", backend_config={"cudnn_fmha_backend_config":{"algorithm":\
{"algo_id":"0"},"fmha_scale":0.088,"intermediate_tensor_shape":{"element_type":"BF16","dimensions":\
["2","8","1024","2048"],"tuple_shapes":[]},"is_flash_attention":true,"mask_type":"NO_MASK"}}
  %backward = (bf16[2,8,1024,128]{3,1,2,0}, bf16[2,2,2048,128]{3,1,2,0}) custom-call(%q, %k, %k), \
custom_call_target="__cudnn$fmhaSoftmaxBackward", backend_config={"cudnn_fmha_backend_config":\
{"intermediate_tensor_shape":{"element_type":"BF16","dimensions":["2","8","1024","2048"],\
"tuple_shapes":[]},"mask_type":"CAUSAL"}}
  %te = (bf16[2,1024,8,128]{3,2,1,0}, f32[2,8,1024,1]{3,2,1,0}) custom-call(%q, %k, %k), \
custom_call_target="te_fused_attn_forward_ffi", api_version=API_VERSION_TYPED_FFI, backend_config=\
{attn_heads = 8 : i64, input_batch = 2 : i64, kv_max_seqlen = 2048 : i64, mask_type = 2 : i64, \
q_max_seqlen = 1024 : i64}
  %te_backward = (bf16[2,1024,8,128]{3,2,1,0}, bf16[2,2048,2,128]{3,2,1,0}) custom-call(%q, %k, %k), \
custom_call_target="te_fused_attn_backward_ffi"
  %f8 = (bf16[64,32]{1,0}, s8[100]{0}) custom-call(%x, %w, %one, %one), \
custom_call_target="__cublas$lt$matmul$f8", backend_config={"gemm_backend_config":{"dot_dimension_numbers":\
{"lhs_contracting_dimensions":["1"]}}}
  ROOT %nothing = () tuple()
}
"""
SCORES = 2 * 8 * 1024 * 2048 * 128


@pytest.mark.parametrize(
    ("name", "flops_", "dtype"),
    [
        ("forward", 4 * SCORES, "bf16"),
        ("backward", 5 * SCORES, "bf16"),
        ("te", 2 * SCORES, "bf16"),
        ("te_backward", 10 * SCORES, "bf16"),
        ("f8", 2 * 64 * 1024 * 32, "f8e4m3fn"),
    ],
)
def test_what_libraries_multiply(name, flops_, dtype):
    work, reader = work_of(LIBRARIES)
    home = next(home for home in reader.computations.all if home.is_entry)
    line = work.lines.named(home, name)
    assert line is not None
    assert work.matmuls(line, work.operand_shapes(line))[:2] == (flops_, dtype)
    assert work.lines.is_matmul(line)
