"""From the dumps of real compilations to the stages that matter."""

from __future__ import annotations

import time
from itertools import pairwise

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.errors import QuestionError
from shardviz.hlo.dumps import Dump, dump_files, pass_name, read_passes
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (2, 4))


def dumps_of(folder, function, *arguments, out=None):
    """All that XLA for CPU dumps of a program: `arguments` are shapes and specs."""
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
    structs = [
        jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))
        for shape, spec in arguments
    ]
    options = {} if out is None else {"out_shardings": NamedSharding(mesh, P(*out))}
    lowered = jax.jit(function, **options).lower(*structs)
    lowered.compile(
        compiler_options={
            "xla_dump_to": str(folder),
            "xla_dump_hlo_as_text": True,
            "xla_dump_hlo_pass_re": ".*",
        }
    )
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    files = dump_files(paths, f"jit_{function.__name__}")
    return [Dump(file.path, (folder / file.path).read_text(encoding="utf-8")) for file in files]


@pytest.fixture(scope="module")
def matmul(tmp_path_factory):
    def product(a, w):
        return a @ w

    folder = tmp_path_factory.mktemp("matmul")
    # Other programs of the same process leave their dumps beside it.
    dumps_of(folder, lambda a: jnp.sin(a), ((8, 64), ("X", "Y")))
    return dumps_of(folder, product, ((8, 64), ("X", "Y")), ((64, 32), ("Y", None)), out=("X", None))


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    def layers(x, w):
        return jax.lax.scan(lambda x, w: (x @ w, None), x, w)[0]

    folder = tmp_path_factory.mktemp("scan")
    return dumps_of(folder, layers, ((8, 64), ("X", None)), ((3, 64, 64), (None, "X", None)), out=("X", None))


def test_the_stages_of_a_matmul(matmul):
    stages = read_passes(matmul, MESH)
    assert [stage.kind for stage in stages] == [
        "input",
        "propagation",
        "partitioner",
        "rewrite",
        "schedule",
    ]
    given, propagation, partitioner, rewrite, schedule = stages
    assert [(split.op, split.dims) for split in given.splits] == [
        ("argument", (("X",), ("Y",))),
        ("argument", (("Y",), ())),
        ("result", (("X",), ())),
    ]
    (decided,) = propagation.splits
    assert (decided.op, decided.shape, decided.before, decided.dims) == ("dot", (8, 32), None, (("X",), ()))
    assert partitioner.before == ()
    (first,) = partitioner.after
    assert (first.op, first.axes, first.dtype, first.bytes) == ("all-reduce", ("Y",), "bf16", 4 * 32 * 2)
    assert rewrite.changes == ("all-reduce over Y: bf16 became f32, 256 B became 512 B",)
    assert rewrite.pass_name.startswith("all-reduce-promotion (")
    assert schedule.before == rewrite.after
    assert schedule.after_text == matmul[-1].text


def test_a_diff_shows_what_the_pass_changed(matmul):
    *_, rewrite, _ = read_passes(matmul, MESH)
    changed = [line for line in rewrite.diff() if line[:1] in "+-" and "all-reduce(" in line]
    assert [(line[0], line.partition(" = ")[2].partition("[")[0]) for line in changed] == [
        ("-", "bf16"),
        ("+", "f32"),
    ]
    assert not any("metadata" in line or "{1,0}" in line for line in rewrite.diff())


def test_in_a_loop_every_stage_begins_where_the_last_one_ended(scan):
    stages = read_passes(scan, MESH)
    assert "while" in {split.op for split in stages[1].splits}
    assert stages[-1].kind == "schedule"
    assert {each.count for each in stages[-1].after} == {3}
    for before, after in pairwise(stages):
        assert after.before == before.after


def test_what_is_no_module_or_cut_off_is_passed_over(matmul):
    whole = read_passes(matmul, MESH)
    strange = [
        Dump("a.txt", ""),
        Dump("b.txt", "\0" * 100),
        Dump("c.mlir", 'module @m { sdy.mesh @mesh = <["X"=2]> {'),
        Dump("module_0000.jit_f.0001.a.after_b.before_c.txt", "HloModule \n\n%x = ("),
    ]
    assert [stage.title for stage in read_passes([*strange, *matmul], MESH)][-3:] == [
        stage.title for stage in whole
    ][-3:]
    assert read_passes(strange[:2]) == ()
    assert read_passes([]) == ()
    for dump in matmul[::7]:
        for stop in (10, len(dump.text) // 2, len(dump.text) - 5):
            cut = [Dump(each.name, each.text[:stop] if each is dump else each.text) for each in matmul]
            assert read_passes(cut, MESH)


def test_another_collective_is_no_work_beside_one():
    text = """HloModule jit_f, is_scheduled=true, num_partitions=8

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  %a = (f32[8], f32[64]) all-gather-start(%p), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}
  %b = f32[8] all-reduce-start(%p), channel_id=2, replica_groups=[1,8]<=[8]
  %c = f32[64] all-gather-done(%a)
  ROOT %d = f32[8] all-reduce-done(%b)
}
"""
    *_, last = read_passes([Dump("module_0000.jit_f.after_optimizations.txt", text)])
    assert last.title == "the final schedule: an all-gather and an all-reduce"


def test_without_shardys_files_the_stages_begin_with_the_program(matmul):
    stages = read_passes([dump for dump in matmul if dump.text.startswith("HloModule")], MESH)
    assert [stage.kind for stage in stages] == ["input", "partitioner", "rewrite", "schedule"]


def test_another_mesh_is_refused(matmul):
    with pytest.raises(QuestionError, match="runs on 8 devices"):
        read_passes(matmul, Mesh(("X",), (4,)))


def test_ninety_dumps_of_a_megabyte_take_no_time_where_nothing_changes(matmul):
    last = matmul[-1]
    body = "".join(
        f"%c{n} (p: f32[]) -> f32[] {{\n  ROOT %p = f32[] parameter(0)\n}}\n\n" for n in range(16_000)
    )
    large = last.text.replace("\n\n%", f"\n\n{body}%", 1)
    assert len(large) > 900_000
    dumps = [
        Dump(f"module_0001.jit_product.{n:04}.a.after_b.before_c.txt", f"{large}{n // 9}") for n in range(90)
    ]
    start = time.process_time()
    stages = read_passes(dumps, MESH)
    assert time.process_time() - start < 8
    assert [stage.kind for stage in stages] == ["input", "schedule"]


def test_a_tensor_that_must_be_split_in_another_way_is_told():
    head = 'module @m {\n  sdy.mesh @mesh = <["X"=2, "Y"=4]>\n'
    main = '  func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}) {\n'
    reshard = '    %0 = sdy.reshard %arg0 <@mesh, [{}, {"Y"}]> : tensor<8x4xf32>\n'
    texts = [head + main + "  }\n}\n", head + main + reshard + "  }\n}\n"]
    dumps = [Dump(f"shardy/module_0.m/0{n}.after_x.mlir", text) for n, text in enumerate(texts)]
    _, stage = read_passes(dumps)
    assert stage.title == "1 tensor must be split in another way"
    assert [(split.name, split.before, split.dims) for split in stage.splits] == [
        ("%0", (("X",), ()), ((), ("Y",)))
    ]


def test_values_are_known_by_their_place_and_not_by_their_names():
    from shardviz.hlo.mlir.operations import MlirModule
    from shardviz.hlo.mlir.shardings import changed_shardings, tensor_shardings

    def text(*lines):
        return (
            'module @m {\n  sdy.mesh @mesh = <["X"=2]>\n' + "".join(f"  {line}\n" for line in lines) + "}\n"
        )

    split = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"X"}]>]>} '
    before = text(
        "%0 = stablehlo.constant dense<0.0> : tensor<4xf32>",
        f"%1 = stablehlo.add %0, %0 {split}: tensor<4xf32>",
        "%2 = stablehlo.add %1, %1 : tensor<4xf32>",
    )
    after = text(
        f"%0 = stablehlo.add %cst, %cst {split}: tensor<4xf32>",
        f"%1 = stablehlo.add %0, %0 {split}: tensor<4xf32>",
    )
    (changed,) = changed_shardings(*(tensor_shardings(MlirModule(each)) for each in (before, after)))
    assert (changed.name, changed.op, changed.before, changed.dims) == ("%1", "add", None, (("X",),))


TPU = "module_0004.jit_f.cl_1014260217"
PATHS = [
    f"{TPU}.after_optimizations.txt",
    f"{TPU}.after_optimizations_before_buffer_assignment.txt",
    f"{TPU}.after_optimizations-buffer-assignment.txt",
    f"{TPU}.0013.xla-partitioner.after_shardy-xla.before_control-dep-rewriter.txt",
    f"{TPU}.0002.simplification.after_pipeline-start.before_dce.txt",
    f"{TPU}.0100.copy-insertion.after_adding_special-case_copies.txt",
    f"{TPU}.flagfile",
    f"{TPU}.before_optimizations.txt",
    "shardy/module_0004.jit_f/02.after_propagation.mlir",
    "shardy/module_0004.jit_f/01.before_propagation.mlir",
    "module_0003.jit_f.before_optimizations.txt",
    "module_0005.jit_helper.0000.dce.after_pipeline-start.before_x.txt",
    "module_0004.jit_fg.before_optimizations.txt",
    "notes.txt",
]


def test_the_files_of_the_last_program_of_a_name_in_order():
    files = dump_files(PATHS, "jit_f")
    assert {file.number for file in files} == {4}
    assert [pass_name(file.path) for file in files] == [
        "before_optimizations",
        "before simplification",
        "shardy before_propagation",
        "shardy after_propagation",
        "shardy-xla (xla-partitioner)",
        "adding_special-case_copies (copy-insertion)",
        "after_optimizations",
    ]


def test_other_programs_are_left_alone():
    assert [file.path for file in dump_files(PATHS, "jit_helper")] == [PATHS[-4 + 1]]
    assert dump_files(PATHS, "jit") == ()
    assert dump_files([], "jit_f") == ()


def test_the_last_module_of_each_compiler():
    for last in ("cpu_after_optimizations", "sm_9.0a_gpu_after_optimizations", "after_optimizations"):
        assert [pass_name(file.path) for file in dump_files([f"module_1.jit_f.{last}.txt"], "jit_f")] == [
            last
        ]
