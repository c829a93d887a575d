"""The files of a dump: which are modules of the program asked for, and in which order they came."""

from __future__ import annotations

from shardviz.hlo.passes.dump_files import dump_files, pass_name

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
