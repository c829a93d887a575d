"""Programs of users, lowered in one process and compiled in another: the answer of JAX ahead of time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

from shardviz.compiler.lowering import lower_program
from shardviz.errors import QuestionError, TargetError
from shardviz.hlo.arguments import arguments_of
from shardviz.render.palette import PLAIN
from shardviz.render.programs.program_view import program_view
from shardviz.reports.program_report import OutOfMemoryError, TargetProgram
from shardviz.sharding import Mesh
from shardviz.targets import EXTRAS, parse_targets
from tests.compiler import own_programs
from tests.compiler.own_programs import PROGRAMS, split
from tests.conftest import one_in

SIZES = (2, 4)
NAMES = ("data", "model")
AUTO = (AxisType.Auto,) * 2
needs_libtpu = pytest.mark.skipif(not EXTRAS["tpu"].installed, reason="the extra tpu is not installed")
MESHES = {
    "simulated": lambda: jax.make_mesh(SIZES, NAMES, axis_types=AUTO),
    "abstract": lambda: AbstractMesh(SIZES, NAMES, axis_types=AUTO),
}


@pytest.fixture(scope="module")
def compile_for(worker):
    def compiled(program, target, options=None, with_costs=False) -> TargetProgram:
        (asked,) = parse_targets(target)
        function, *arguments = program
        lowered = lower_program(function, arguments, {}, asked.platform)
        return worker.compile(lowered, asked, options, with_costs).result()

    return compiled


@pytest.fixture(scope="module")
def ahead_of_time():
    """The texts that a bare script gets of each program, and the device ids of its mesh."""
    environment = {**os.environ, "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    script = [sys.executable, own_programs.__file__, "v5e:2x4", "2,4"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def without_places(text):
    """HLO without what says from which line it comes; a kernel's code has such lines in it."""
    text = re.sub(r", metadata=\{[^}]*\}", "", re.sub(r"(?s)\nFileNames\n.*?\n\n\n", "\n", text))
    text = re.sub(r'"body":"[^"]*"', "", text)
    return text.replace("FileNames", "")


@needs_libtpu
@pytest.mark.parametrize("program", one_in(3, PROGRAMS), ids=lambda each: each.__name__)
def test_a_target_compiles_what_a_bare_script_does(program, compile_for, ahead_of_time, collectives_in):
    bare = ahead_of_time["texts"][program.__name__]
    found = compile_for(program(MESHES["simulated"]()), "v5e:2x4")
    assert found.answer.status == "ok", found.answer.error
    assert without_places(found.answer.text) == without_places(bare)
    # On a mesh without devices JAX says less of keys and scalars: the collectives are the same.
    other = compile_for(program(MESHES["abstract"]()), "v5e:2x4")
    assert collectives_in(other.answer.text) == collectives_in(bare)
    assert found.answer.placement.ids == tuple(ahead_of_time["ids"])
    assert found.mesh == Mesh(NAMES, SIZES)
    moved = [each for each in found.module.collectives if each.wire_bytes]
    assert moved
    assert all(each.axes for each in moved)


@pytest.mark.parametrize("program", one_in(2, PROGRAMS[:4]), ids=lambda each: each.__name__)
def test_simulated_devices_compile_what_this_process_does(program, compile_for, collectives_in):
    mesh = MESHES["simulated"]()
    function, *arguments = program(mesh)
    here = (function if hasattr(function, "lower") else jax.jit(function)).lower(*arguments).compile()
    found = compile_for(program(mesh), "cpu")
    assert collectives_in(found.answer.text) == collectives_in(here.as_text())
    assert found.memory.argument_bytes == here.memory_analysis().argument_size_in_bytes


def test_shardy_partitions_the_same_module(compile_for):
    found = compile_for(own_programs.matmul(MESHES["abstract"]()), "shardy")
    ((op, axes),) = [(each.op, each.axes) for each in found.module.collectives]
    assert (op, axes) == ("all-reduce", ("model",))


def test_the_module_says_what_it_needs_of_a_target():
    lowered = lower_program(own_programs.train_step(MESHES["abstract"]())[0], *_arguments("tpu"))
    assert (lowered.name, lowered.platform, lowered.devices) == ("jit_step", "tpu", 8)
    assert lowered.meshes == (Mesh(NAMES, SIZES),)
    assert b"params['layers']['mlp']['w_in']" in lowered.code


def _arguments(platform):
    return own_programs.train_step(MESHES["abstract"]())[1:], {}, platform


def test_meshes_that_share_their_devices(compile_for):
    """Their order, on the devices at hand, is not that of the target."""
    devices = np.array(jax.devices())[[3, 1, 4, 0, 5, 7, 2, 6]]
    first = jax.sharding.Mesh(devices.reshape(SIZES), NAMES, axis_types=AUTO)
    second = jax.sharding.Mesh(devices, ("all",), axis_types=AUTO[:1])

    def moves(x):
        return jax.lax.with_sharding_constraint(x @ x.T, NamedSharding(second, P("all"))).sum()

    found = compile_for((jax.jit(moves), split(first, (256, 256), "data", "model", dtype=jnp.float32)), "cpu")
    assert found.answer.status == "ok"
    assert found.notes == (
        f"this program has several meshes: data=2,model=4 and all=8; axes are named after {found.mesh}",
    )


class Wrapped:
    """A jit as Equinox has one: what is not an array is static, and it lowers for the CPU alone."""

    def __call__(self, model, x):
        return {"y": model["act"](x @ model["w"]), "name": model["name"]}

    def lower(self, *_):
        raise AssertionError("it would lower for the CPU")


def test_a_jit_of_another_library_is_lowered_for_the_platform(compile_for):
    mesh = MESHES["abstract"]()
    model = {"act": jnp.tanh, "w": split(mesh, (512, 256), "model", None), "name": "mlp"}
    found = compile_for((Wrapped(), model, split(mesh, (64, 512), "data", "model")), "cpu")
    assert [(each.op, each.axes) for each in found.module.collectives] == [("all-reduce", ("model",))]
    assert [each.path for each in arguments_of(found.answer.text)] == ["model['w']", "x"]


@pytest.mark.parametrize("stage", ["trace", "lower"])
def test_stages_of_a_program(stage, compile_for):
    mesh = MESHES["simulated"]()
    function, *arguments = own_programs.matmul(mesh)
    program = getattr(jax.jit(function), stage)(*arguments)
    assert Counter(each.op for each in compile_for((program,), "cpu").module.collectives) == {"all-reduce": 1}
    with pytest.raises(QuestionError, match="has its arguments already"):
        lower_program(program, arguments, {}, "cpu")


def test_what_no_target_can_compile():
    mesh = MESHES["simulated"]()
    function, *arguments = own_programs.matmul(mesh)
    compiled = jax.jit(function).lower(*arguments).compile()
    with pytest.raises(QuestionError, match="is compiled already"):
        lower_program(compiled, (), {}, "tpu")
    with pytest.raises(QuestionError, match="is not a program"):
        lower_program(3, (), {}, "tpu")
    with pytest.raises(QuestionError, match="is text, not a program"):
        lower_program("HloModule", (), {}, "tpu")

    def talks(x):
        jax.debug.print("{}", x.sum())
        return x

    with pytest.raises(QuestionError, match=r"jax\.debug\.print"):
        lower_program(talks, arguments[:1], {}, "tpu")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("v5p:4x4x4", "v5p:4x4x4 has 64 devices, but the mesh data=2,model=4 has 8"),
        ("real", "the program's own process compiles for the devices"),
    ],
)
def test_targets_that_cannot_have_a_program(target, words, worker):
    (asked,) = parse_targets(target)
    function, *arguments = own_programs.matmul(MESHES["abstract"]())
    lowered = lower_program(function, arguments, {}, "tpu")
    if EXTRAS["tpu"].installed or target == "real":
        with pytest.raises(TargetError, match=words):
            worker.compile(lowered, asked)


@needs_libtpu
def test_a_program_on_one_device_is_told_so(worker):
    lowered = lower_program(lambda x: x @ x, (jax.ShapeDtypeStruct((8, 8), jnp.float32),), {}, "tpu")
    with pytest.raises(TargetError, match="no argument is on a mesh, so the program runs on 1 device"):
        worker.compile(lowered, parse_targets("v5e:2x4")[0])
    assert worker.compile(lowered, parse_targets("v5e:1x1")[0]).result().answer.status == "ok"


@needs_libtpu
def test_options_of_the_compiler(compile_for):
    program = own_programs.matmul(MESHES["abstract"]())
    unknown = compile_for(program, "v5e:2x4", {"xla_no_such_option": True}).answer
    assert (unknown.status, unknown.error) == (
        "error",
        "INVALID_ARGUMENT: No such compile option: 'xla_no_such_option'",
    )
    assert (
        "Failed to parse 'soon'"
        in compile_for(program, "v5e:2x4", {"xla_tpu_rwb_fusion": "soon"}).answer.error
    )
    # As the command line has them, they are text.
    ahead = {"xla_enable_async_all_gather": "true"}
    assert compile_for(program, "v5e:2x4", ahead).answer.status == "ok"


@needs_libtpu
def test_a_program_that_does_not_fit_says_by_how_much(compile_for):
    """Of the hidden layer a device has 16 GiB, of the batch 8 and of the result 8; a v5e has 15.75."""
    mesh = MESHES["abstract"]()
    arguments = (
        split(mesh, (2**19, 2**14), "data", None),
        split(mesh, (2**14, 2**17), "data", "model"),
        split(mesh, (2**17, 2**14), "model", "data"),
    )
    found = compile_for((lambda x, up, down: jnp.tanh(x @ up) @ down, *arguments), "v5e:2x4")
    memory = found.memory
    assert found.answer.status == "error"
    assert (memory.argument_bytes, memory.output_bytes) == (9 * 2**30, 8 * 2**30)
    assert [each.bytes for each in memory.buffers[:3]] == [2**34, 2**33, 2**33]
    assert memory.temporary_bytes == pytest.approx(18 * 2**30, rel=0.01)
    assert memory.over_bytes == memory.peak_bytes - memory.limit_bytes > 18 * 2**30
    with pytest.raises(OutOfMemoryError, match="v5e:2x4: does not fit") as raised:
        found.check()
    assert raised.value.memory == memory
    assert raised.value.hint.startswith("most are temporaries")
    report = found.report(found.times())
    # The weights are gathered over data and model, and the second matmul sums over model.
    assert {each.collective.op for each in report.entries} >= {"all-gather", "all-reduce"}
    page = "\n".join(line.plain for line in program_view(found, report, 120, PLAIN, verbose=True))
    assert page.count("does not fit") == 1
    assert "all-reduce model" in page
    assert "v5e:2x4  refused after " in page
    (hidden,) = [line.split() for line in page.splitlines() if line.startswith("   16 GiB ")]
    assert hidden[3:5] == ["temporary", "bf16[262144,32768]"]
    # Without a clock instructions tell how long: up to the second matmul.
    assert hidden[5:7] == ["to", memory.buffers[0].last]


def test_a_donation_that_no_result_can_use_is_a_warning(compile_for):
    """XLA's own header has the arguments whose memory holds a result."""
    mesh = MESHES["abstract"]()
    weights = {"kept": split(mesh, (64, 64), "data"), "lost": split(mesh, (64, 128), "data")}
    step = jax.jit(lambda w: (w["kept"] * 2, w["lost"].sum()), donate_argnums=0)
    found = compile_for((step, weights), "cpu")
    assert "input_output_alias={ {0}: (0, {}, may-alias) }" in found.answer.text
    (said,) = found.warnings
    assert said == "donated buffers not reused by any result: w['lost']"
    page = "\n".join(line.plain for line in program_view(found, None, 120, PLAIN))
    assert f"warning: {said}" in page
    kept = jax.jit(lambda w: jax.tree.map(lambda each: each * 2, w), donate_argnums=0)
    assert compile_for((kept, weights), "cpu").warnings == ()


@needs_libtpu
def test_costs_where_they_are_asked_for(compile_for):
    program = own_programs.scanned(MESHES["abstract"]())
    brief, full = compile_for(program, "v5e:2x4"), compile_for(program, "v5e:2x4", with_costs=True)
    assert brief.answer.schedule is None
    assert full.answer.schedule is not None
    assert not brief.memory.buffers
    assert full.memory.buffers
    assert brief.memory.temporary_bytes == full.memory.temporary_bytes
    assert brief.times().times.model.seconds == full.times().times.model.seconds > 0
