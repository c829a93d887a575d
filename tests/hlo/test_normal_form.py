"""One module in many layouts of its text: XLA's own parser says that they are one, and so does the reader."""

from __future__ import annotations

import os
import random
import re
import textwrap
import time
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas, topologies
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import shardviz
from shardviz.hlo import HloModule, read, read_hlo
from shardviz.hlo.listing import list_hlo
from shardviz.hlo.text.normal_form import MAX_SAMPLE, normal_form
from shardviz.sharding import Mesh
from shardviz.testing import assert_collectives
from tests.hlo.test_xla_parser import xla

# ruff: noqa: E501 - a compiler's line cannot be broken


LAYERS = 16


@cache
def devices(target: str) -> np.ndarray:
    if target == "cpu":
        return np.array(jax.devices())
    os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
    return np.array(topologies.get_topology_desc(platform="tpu", topology_name=target).devices)


def compiled(target: str, function, shapes, axes=("X",), sizes=None, mapped=True) -> str:
    """The final text of a function of bf16 arrays, each (shape, spec); the first spec is the result's too."""
    chips = devices(target).reshape(sizes or (-1,))
    mesh = jax.sharding.Mesh(chips, axes, axis_types=(AxisType.Auto,) * len(axes))
    specs = tuple(spec for _, spec in shapes)
    if mapped:
        function = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=specs[0], check_vma=False)
    arguments = [
        jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
        for shape, spec in shapes
    ]
    return jax.jit(function).lower(*arguments).compile().as_text()


def double(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2


def kernels(x, *weights):
    """Two gathers and a kernel a layer; the kernel's metadata spreads over lines of the text."""

    def layer(x, gathered):
        for each in gathered:
            x = jnp.tanh(x @ lax.all_gather(each, "X", tiled=True))
        kernel = pallas.pallas_call(
            double, out_shape=x, metadata={"name": "double", "note": "a } b, %c = f32[8] all-reduce(%d)"}
        )
        return kernel(x), None

    return lax.scan(layer, x, weights)[0]


def loop(x, w):
    """The gradient of some layers over both axes: loops, permutes, sums and an all-to-all."""

    def layer(x, w):
        x = lax.ppermute(jnp.tanh(x @ lax.all_gather(w, "Y", tiled=True)), "X", [(0, 1), (1, 0)])
        return lax.all_to_all(x, "Y", 1, 1, tiled=True), None

    def loss(x):
        return jnp.mean(lax.scan(layer, x, w)[0].astype(jnp.float32))

    return lax.psum(jax.grad(loss)(x), "X")


def branches(x, w):
    def gathered(x):
        return x @ lax.all_gather(w, "X", tiled=True)

    return lax.cond(x[0, 0] > 0, gathered, lambda x: lax.fori_loop(0, 3, lambda _, x: gathered(x), x), x)


def partitioned(x, *weights):
    """Layers whose collectives the partitioner inserts: collective matmuls, what is fused and asynchronous."""

    def loss(weights):
        return jnp.mean(lax.scan(lambda x, ws: (jax.nn.gelu(x @ ws[0]) @ ws[1], None), x, weights)[0] ** 2)

    return jax.grad(loss)(weights)


def layers(x, *weights):
    for into, out in zip(weights[::2], weights[1::2], strict=True):
        x = jax.nn.gelu(x @ into) @ out
    return x


KERNELS = [((512, 512), P("X")), ((LAYERS, 512, 1024), P(None, "X")), ((LAYERS, 1024, 512), P(None, "X"))]
LOOP = [((64, 64), P("X", None)), ((3, 64, 64), P(None, "Y"))]
STEP = [
    ((512, 1024), P("X", None)),
    ((3, 1024, 4096), P(None, "X", "Y")),
    ((3, 4096, 1024), P(None, "Y", "X")),
]
ASYNC = [((1024, 1024), P("X", None)), *[((1024, 4096), P("X", "Y")), ((4096, 1024), P("Y", "X"))] * 2]
XY, TWO = ("X", "Y"), (2, 4)
CORPUS = {
    "a kernel in a loop, v5e": lambda: compiled("v5e:2x2", kernels, KERNELS),
    "a gradient, cpu": lambda: compiled("cpu", loop, LOOP, XY, TWO),
}
LONG_CORPUS = {
    "a kernel in a loop, v5p": lambda: compiled("v5p:2x2x1", kernels, KERNELS),
    "a gradient, v5e": lambda: compiled("v5e:2x4", loop, LOOP, XY, TWO),
    "branches, cpu": lambda: compiled("cpu", branches, [((64, 64), P("X")), ((64, 64), P("X"))]),
    "branches, v5e": lambda: compiled("v5e:2x4", branches, [((512, 512), P("X")), ((512, 512), P("X"))]),
    "a step, v5e": lambda: compiled("v5e:2x4", partitioned, STEP, XY, TWO, mapped=False),
    "a step, v5p": lambda: compiled("v5p:2x2x2", partitioned, STEP, XY, TWO, mapped=False),
    "a step, cpu": lambda: compiled("cpu", partitioned, STEP, XY, TWO, mapped=False),
    "asynchronous, v5e": lambda: compiled("v5e:2x4", layers, ASYNC, XY, TWO, mapped=False),
}
text_of = cache(lambda name: (CORPUS | LONG_CORPUS)[name]())


def indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def wrapped(text: str) -> str:
    """The text broken at some of the spaces that are in no string."""
    rng = random.Random(len(text))
    broken = []
    for line in text.split("\n"):
        if line.startswith(("HloModule ", "ENTRY ", "%")) or " = " in line:
            pieces = re.split(r'("(?:[^"\\]|\\.)*")', line.strip())
            # A name that has lost its equals sign is no instruction to the eye either.
            pieces[::2] = [
                re.sub(r"(?<=[,)]) ", lambda _: rng.choice((" ", "\n" + " " * rng.randint(0, 12))), piece)
                for piece in pieces[::2]
            ]
            line = "".join(pieces)
        broken.append(line)
    return "\n".join(broken)


def parsed(text: str) -> list[str]:
    """What XLA's parser makes of a text; it keeps the lines of a kernel's metadata as they are."""
    return xla.hlo_module_from_text(text).to_string().split()


def reprinted(text: str, **chosen: object) -> str:
    options = xla.HloPrintOptions()
    for name, value in chosen.items():
        setattr(options, name, value)
    return xla.hlo_module_from_text(text).to_string(options)


LAYOUTS = {
    "indented": indented,
    "wrapped": wrapped,
    "wrapped and indented": lambda text: indented(wrapped(text)),
    "with comments": lambda text: "/* stablehlo.add\n%a = f32[8] all-gather(%b) */" + text.replace(
        "\n  ROOT", " // %a = f32[8] all-reduce(%b)\n  ROOT"),
}  # fmt: skip
REPRINTS = {
    "as it is": {},
    "without percent signs": {"print_percent": False},
    "with the operands' shapes": {"print_operand_shape": True},
    "indented by XLA": {"indent_amount": 3},
}


def lines_of(text: str, mesh: Mesh | None = None):
    return list_hlo(text, mesh).lines


def check_layouts(name: str) -> None:
    text = text_of(name)
    module, lines, same = read_hlo(text, infer=True), lines_of(text), parsed(text)
    assert module.collectives
    assert module.unread == ()
    for layout, changed in LAYOUTS.items():
        changed = changed(text)
        assert changed != text
        assert parsed(changed) == same, layout
        assert read_hlo(changed, infer=True) == module, layout
        assert lines_of(changed) == lines, layout
        assert read(changed, infer=True) == module, layout


def check_reprints(name: str) -> None:
    """XLA's parser puts computations in another order; what runs when is the same."""
    text = text_of(name)
    module = read_hlo(text, infer=True)
    for how, chosen in REPRINTS.items():
        printed = reprinted(text, **chosen)
        assert read_hlo(printed, infer=True) == module, how
        for changed in LAYOUTS.values():
            assert read_hlo(changed(printed), infer=True) == module, how


@pytest.mark.parametrize("name", CORPUS)
def test_layouts_of_one_text(name):
    check_layouts(name)
    check_reprints(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG_CORPUS)
def test_layouts_of_many_texts(name):
    check_layouts(name)
    check_reprints(name)


def test_a_kernels_metadata_is_part_of_its_instruction():
    text = text_of("a kernel in a loop, v5e")
    assert "kernel_metadata={\n" in text
    module = read_hlo(text, Mesh(("X",), (4,)))
    assert module.unread == ()
    assert [(each.op, each.count) for each in module.collectives] == [("all-gather", LAYERS)] * 2
    assert_collectives(shardviz.read_hlo(text), all_gather=2 * LAYERS, others=0)
    heads = [line for line in list_hlo(text).lines if line.is_head]
    assert [line.opcode for line in heads] == ["ENTRY", "body"]
    assert ("custom-call", 3) in [(line.opcode, line.depth) for line in list_hlo(text).lines]


HEADER = "HloModule m, num_partitions=8\n\n"
WRAPPED = """ENTRY %main (p: f32[8],
             q: f32[8]) -> f32[32]
{
  %p = f32[8] parameter(0)
  %g = f32[32]{0}
    all-gather(%p),
    channel_id=1, replica_groups={{2,1,0,3},
      {4,6,7,5}
    }, dimensions={0}, use_global_device_ids=true,
    metadata={op_name="jit(f)/
all_gather"}
  %h = f99[8] all-gather(
    %p
  ), replica_groups={}
  ROOT %k = f32[2,2] constant({
  { 1, 2 },
  { 3, 4 }
})
}
"""


@pytest.mark.parametrize("indent", ["", "  ", "\t", " " * 40])
def test_what_goes_on_in_the_next_line(indent):
    module = read_hlo(textwrap.indent(HEADER + WRAPPED, indent))
    (found,) = module.collectives
    assert found.groups == ((2, 1, 0, 3), (4, 6, 7, 5))
    assert (found.wire_bytes, found.dim, found.source) == (96, 0, "jit(f)/ all_gather")
    assert module.unread == (
        "line 14: 'h' cannot be read: unknown element type f99 at character 1 of 'f99[8]'",
    )


SPACED = [
    "ROOT %g = f32[32] all-gather(%p),channel_id=1,replica_groups=[2,4]<=[4,2]T(1,0),dimensions={0},use_global_device_ids=true",
    "ROOT %g = f32[32] all-gather (%p), GROUPS, REST",
    "ROOT %g = f32[32] all-gather\n(%p), GROUPS, REST",
    "ROOT %g=f32[32] all-gather(%p), GROUPS, REST",
    "ROOT %g =\nf32[32]\nall-gather(%p), GROUPS, REST",
    "ROOT   %g   =   f32[32]   all-gather( %p ) , GROUPS , REST",
    "ROOT %g = f32[ 32 ] all-gather(%p), GROUPS, REST",
    "ROOT %g = f32[32] all-gather(%p), replica_groups=\n[2,4]<=[4,2]T(1,0), REST",
    "ROOT %g = f32[32] all-gather(%p), replica_groups=[2,4]\n<=[4,2]\nT(1,0), REST",
]
SPACED_MESH = "ROOT %g = f32[32] all-gather(%p), replica_groups=mesh['a'=4,\n'b'=2]\n {'a'}, REST"
NOT_XLAS = [
    "ROOT %g = f32[32] all-gather(%p), replica_groups\n  ={{0,2,4,6},{1,3,5,7}}, REST",
    "ROOT %g = f32[32] all-gather(%p), replica_groups = {{0,2,4,6},{1,3,5,7}}, REST",
]


@pytest.mark.parametrize(
    ("line", "is_xlas"),
    [
        *((line, True) for line in SPACED),
        pytest.param(
            SPACED_MESH, True, marks=pytest.mark.since_jax("0.10", "XLA's parser knew no meshes in groups")
        ),
        *((line, False) for line in NOT_XLAS),
    ],
)
def test_spaces_that_xla_does_not_print(line, is_xlas):
    """XLA's parser takes most of them."""
    line = line.replace("GROUPS", "replica_groups={{0,2,4,6},{1,3,5,7}}")
    line = line.replace("REST", "channel_id=1, dimensions={0}, use_global_device_ids=true")
    text = f"{HEADER}ENTRY %main (p: f32[8]) -> f32[32] {{\n  %p = f32[8] parameter(0)\n  {line}\n}}\n"
    if is_xlas:
        assert xla.hlo_module_from_text(text)
    module = read(text)
    (found,) = module.collectives
    assert module.unread == ()
    assert (found.groups, found.operand_shape, found.wire_bytes) == (((0, 2, 4, 6), (1, 3, 5, 7)), (8,), 96)


@pytest.mark.parametrize("width", [60, 97, 120])
def test_a_text_that_is_folded_at_a_width(width):
    """As ``fold -s`` does it: after a space where there is one, else within a word."""
    text = text_of("a kernel in a loop, v5e")
    folded = re.sub(
        rf"(?=[^\n]{{{width + 1}}})(?:[^\n]{{0,{width - 1}}} |[^\n]{{{width}}})", r"\g<0>\n", text
    )
    assert max(map(len, folded.split("\n"))) <= width
    found = read_hlo(folded, Mesh(("X",), (4,)))
    assert found.unread == ()
    assert [replace(each, source="", name="") for each in found.collectives] == [
        replace(each, source="", name="") for each in read_hlo(text, Mesh(("X",), (4,))).collectives
    ]


GATHER = (
    "%g = f32[8] all-gather(%p), channel_id=1, replica_groups={}, dimensions={0}, use_global_device_ids=true"
)
MAIN = f"ENTRY %main (p: f32[1]) -> f32[8] {{\n  %p = f32[1] parameter(0)\n  ROOT {GATHER}\n}}\n"
RECOVERY = "HloModule rec, num_partitions=2\n\n" + MAIN.replace("%main", "%e").rstrip()
QUOTED = [
    'HloModule m, origin_recovery_table={\n  {"x"} : {"y"},\n  "\n' + textwrap.indent(RECOVERY, "    ")
    + '\n\n\n  "\n}, num_partitions=8\n\n' + MAIN,
    'HloModule m, origin_recovery_table={\n  {"x"} : {"y"}, "' + RECOVERY.replace("\n", " ")
    + '"\n}\n, num_partitions=8\n\n' + MAIN,
    f"// made of stablehlo.add by func.func @main, as HloModule old\n{HEADER}// {GATHER}\n{MAIN}",
    f"/* stablehlo.add\n{GATHER}\n*/\n{HEADER}/*\n%old {{\n  {GATHER}\n}}\n*/{MAIN}",
    HEADER + MAIN.replace("{\n", "{ // was " + GATHER.replace("%g", "%old") + "\n"),
    HEADER + MAIN.replace("{\n", "{\n  /* was\n  " + GATHER.replace("%g", "%old") + "\n  */\n"),
    'HloModule m, num_partitions=8\n\nFileNames\n1 "HloModule old, stablehlo.add all-gather(%p).py"\n\n' + MAIN,
    HEADER + MAIN.replace("parameter(0)", 'parameter(0), metadata={op_name="// a } /* HloModule x, %y = f32[8] all-reduce(%z)"}'),
]  # fmt: skip


@pytest.mark.parametrize(
    "comment", ["/* was\n  {}\n  */\n", "// {}\n", "%z = f32[] constant(0) /* was\n  {}\n*/\n"]
)
def test_a_comment_deep_in_a_text(comment):
    """It is looked for where a line is not XLA's."""
    constants = "".join(f"  %c{number} = f32[] constant({number})\n" for number in range(MAX_SAMPLE // 25))
    inside = f"{constants}  {comment.format(GATHER.replace('%g', '%old'))}  ROOT"
    module = read(HEADER + MAIN.replace("  ROOT", inside))
    assert ([each.name for each in module.collectives], module.unread) == (["g"], ())


@pytest.mark.parametrize("broken", ["ENTRY\n%main", "ENTRY\n  %main", "ENTRY %main (p: f32[1])\n "])
def test_a_header_on_two_lines(broken):
    module = read(HEADER + MAIN.replace(" ".join(broken.split()), broken))
    assert ([each.count for each in module.collectives], module.unread) == ([1], ())


@pytest.mark.parametrize("text", QUOTED, ids=range(len(QUOTED)))
def test_strings_comments_and_tables_hold_no_instruction(text):
    module = read(text)
    assert isinstance(module, HloModule)
    assert (module.name, module.num_partitions, module.unread) == ("m", 8, ())
    assert [(each.name, each.group_size, each.count) for each in module.collectives] == [("g", 8, 1)]
    assert [line.name for line in list_hlo(text).lines] == ["main", "p", "g"]


@pytest.mark.parametrize("text", QUOTED[:2], ids=range(2))
def test_xla_reads_these_tables(text):
    """Where its printer puts the table, behind all else in the header."""
    moved = text.replace(", num_partitions=8", "").replace("HloModule m", "HloModule m, num_partitions=8")
    assert "origin_recovery_table" in xla.hlo_module_from_text(moved).to_string()


@pytest.mark.parametrize(
    "text",
    [
        f"lowered by stablehlo.to_hlo, func.func @main\n{HEADER}{MAIN}",
        MAIN.replace("%p", "%stablehlo.add"),
        MAIN.replace("%p", "%call.sdy.mesh"),
    ],
)
def test_hlo_whose_words_are_those_of_mlir(text):
    module = read(text)
    assert isinstance(module, HloModule)
    assert [each.op for each in module.collectives] == ["all-gather"]


def test_mlir_with_a_comment_that_names_hlo():
    text = '// HloModule m, all-gather(\nmodule @f {\n  func.func @main() {\n    return loc("HloModule x")\n  }\n}\n'
    assert not isinstance(read(text), HloModule)


@pytest.mark.parametrize("mesh", ["mesh['x'=2,'y'=4] {'y'}", "mesh[x=2,y=4] {y}"])
def test_a_mesh_in_the_next_line_is_not_a_shape(mesh):
    """``replica_groups=mesh[`` looks like a name before a type."""
    line = f"  %g = f32[32] all-gather(%p), channel_id=1, replica_groups={mesh}, dimensions={{0}}, "
    text = f"HloModule m, num_partitions=8\n\nENTRY %main {{\n  %p = f32[8] parameter(0)\n{line}"
    text += "use_global_device_ids=true\n}\n"
    module = read_hlo(text, infer=True)
    assert [(each.axes, each.wire_bytes) for each in module.collectives] == [(("y",), 96)]
    assert read_hlo(text.replace(", replica", ",\nreplica"), infer=True) == module


@pytest.mark.parametrize(
    "damage",
    [
        ("replica_groups={{", "replica_groups={{{"),
        ('{op_name="jit', '{op_name=jit"'),
        ("{0}\n    all", "{0\n    all"),
        ("constant({", "constant({{{("),
        ('all_gather"}', "all_gather}"),
    ],
)
def test_no_instruction_goes_on_across_the_next(damage):
    """An unbalanced bracket or quote spoils its own instruction."""
    text = HEADER + WRAPPED + "\n" + MAIN.replace("main", "other")
    assert text.count(damage[0]) == 1
    form = normal_form(text.replace(*damage)).text
    for line in ("  %p = f32[8] parameter(0)", "  %p = f32[1] parameter(0)", f"  ROOT {GATHER}", "}"):
        assert line in form.split("\n")


@pytest.mark.parametrize("piece", ['"\n', "x = \n", "ENTRY x\n", "a (\n", "HloModule a, {\n", "%a = f32[2] b(\n {", "/* ", "//\n",
                                   "%a = f32[2]\nx", '%a = f32[2] b("\n ', "  origin_recovery_table=\"\n"])  # fmt: skip
def test_any_text_has_a_normal_form_in_linear_time(piece):
    def seconds(length: int) -> float:
        start = time.process_time()
        normal_form("HloModule m\n" + piece * (length // len(piece)))
        return time.process_time() - start

    assert seconds(400_000) < 20


@pytest.mark.parametrize("gap", ["\n    ", "\n", "\n\t"])
def test_an_instruction_that_goes_on_far_below_others(gap):
    """Behind the sample by which a text is known to be XLA's own."""
    others = "".join(f"  %n{i} = f32[1] negate(%p)\n" for i in range(MAX_SAMPLE // 20))
    text = HEADER + MAIN.replace("  ROOT", f"{others}  ROOT").replace(", replica", f",{gap}replica")
    (found,) = read_hlo(text).collectives
    assert (found.group_size, found.dim) == (8, 0)


LOOP_WITH_ELEMENTS = """HloModule m, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %s = f32[] add(%a, %b)
}

%body (state: (s32[], f32[8]{0:T(8)})) -> (s32[], f32[8]) {
  %state = (s32[], f32[8]{0:T(8)}) parameter(0)
  %one = s32[] constant(1)
  %next = s32[] add(%state#0, %one)
  %sum = f32[8] all-reduce(%state#1), channel_id=1, replica_groups=[1,4]<=[4], to_apply=%add
  ROOT %both = (s32[], f32[8]) tuple(%next, %sum)
}

%more (state: (s32[], f32[8])) -> pred[] {
  %state = (s32[], f32[8]) parameter(0)
  %six = s32[] constant(6)
  ROOT %less = pred[] compare(%state#0, %six), direction=LT
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[8]) tuple(%zero, %x)
  %loop = (s32[], f32[8]) while(%start), condition=%more, body=%body
  ROOT %end = f32[8] negate(%loop#1)
}
"""


def test_a_loop_is_counted_through_them():
    module = read_hlo(LOOP_WITH_ELEMENTS, origins=True)
    assert module.unread == ()
    assert [(each.op, each.count) for each in module.collectives] == [("all-reduce", 6)]


def test_they_are_what_get_tuple_element_takes():
    spelled = LOOP_WITH_ELEMENTS
    for name, index, shape in (("state", 0, "s32[]"), ("state", 1, "f32[8]{0:T(8)}"), ("loop", 1, "f32[8]")):
        spelled = spelled.replace(f"%{name}#{index}", f"%{name}{index}")
        definition = f"  %{name}{index} = {shape} get-tuple-element(%{name}), index={index}\n"
        lines = []
        for line in spelled.splitlines(keepends=True):
            lines.append(line)
            if line.startswith(f"  %{name} = "):
                lines.append(definition)
        spelled = "".join(lines)
    assert "#" not in spelled
    assert read_hlo(spelled, infer=True) == read_hlo(LOOP_WITH_ELEMENTS, infer=True)


def test_a_number_sign_elsewhere_is_left_alone():
    text = LOOP_WITH_ELEMENTS.replace("%state#0, %six", "%state#0, %six, #7)")
    assert read_hlo(text).name == "m"
