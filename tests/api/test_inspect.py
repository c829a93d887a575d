"""`shardviz.inspect` on programs of this process, on eight simulated devices."""

from __future__ import annotations

import ast
import inspect
import os
import platform
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.errors import JaxRuntimeError
from jax.experimental import serialize_executable
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import shardviz
from shardviz.cli.group import run
from shardviz.errors import CompilerError, NotationError, QuestionError, TargetError
from shardviz.reports.program_report import TargetProgram, report_of
from shardviz.reports.target_result import TargetResult
from shardviz.targets import EXTRAS
from shardviz.timeline.program_timeline import LiveBuffer, MemoryReport

ROWS = ((3, 1, 4, 0), (5, 7, 2, 6))
"""The device ids along Y of the fixture's mesh."""


def given(mesh, *spec, shape=(8, 64), dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


@jax.jit
def sum_of_rows(x):
    return x.sum(axis=1)


def check_sum_of_rows(report):
    (found,) = report.collectives
    assert (found.op, found.axes, found.groups) == ("all-reduce", ("Y",), ROWS)
    assert (found.bytes, found.count, report.notes) == (16, 1, ())
    assert report.mesh == shardviz.Mesh(("X", "Y"), (2, 4), sum(ROWS, ()))
    lines, first = inspect.getsourcelines(sum_of_rows.__wrapped__)
    file, _, line = found.source.rpartition(":")
    assert (file, "x.sum" in lines[int(line) - first]) == (__file__, True)


@pytest.mark.parametrize("types", [AxisType.Auto, AxisType.Explicit])
def test_every_stage_of_a_program(mesh, types):
    mesh = jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types=(types,) * 2)
    x = given(mesh, "X", "Y")
    lowered = sum_of_rows.lower(x)
    for program in (sum_of_rows.trace(x), lowered, lowered.compile()):
        check_sum_of_rows(shardviz.inspect(program))
    check_sum_of_rows(shardviz.inspect(sum_of_rows, x))
    array = jax.device_put(np.ones((8, 64), np.float32), NamedSharding(mesh, P("X", "Y")))
    check_sum_of_rows(shardviz.inspect(sum_of_rows, array))
    # A plain function is jitted as it stands.
    check_sum_of_rows(shardviz.inspect(sum_of_rows.__wrapped__, x))


@pytest.mark.since_jax("0.9", "it has the line of the call for what a jitted function does in another")
def test_a_jitted_function_in_another(mesh):
    check_sum_of_rows(shardviz.inspect(partial(sum_of_rows), given(mesh, "X", "Y")))


def test_jit_of_a_library_on_top_of_jax(mesh):
    """Equinox's and Flax's have stages of their own, with JAX's inside."""

    class Compiled:
        def __init__(self, compiled):
            self.compiled = compiled

    class Lowered:
        def __init__(self, lowered):
            self.lowered, self.as_text = lowered, lowered.as_text

        def compile(self):
            return Compiled(self.lowered.compile())

    class Jitted:
        def lower(self, *args):
            return Lowered(sum_of_rows.lower(*args))

    x = given(mesh, "X", "Y")
    check_sum_of_rows(shardviz.inspect(Jitted(), x))
    check_sum_of_rows(shardviz.inspect(Jitted().lower(x)))
    check_sum_of_rows(shardviz.inspect(Jitted().lower(x).compile()))


def test_a_program_out_of_a_cache(mesh):
    stored = serialize_executable.serialize(sum_of_rows.lower(given(mesh, "X", "Y")).compile())
    check_sum_of_rows(shardviz.inspect(serialize_executable.deserialize_and_load(*stored)))


def test_a_mesh_that_only_the_results_tell(mesh):
    """A shard_map's argument without a sharding: the compiler chooses one, without names."""
    specs = {"in_specs": P("X", "Y"), "out_specs": P("X")}
    mapped = jax.shard_map(lambda x: lax.psum(x, "Y"), mesh=mesh, **specs)
    (found,) = shardviz.inspect(jax.jit(mapped), np.ones((8, 64), np.float32)).collectives
    assert (found.op, found.axes, found.groups) == ("all-reduce", ("Y",), ROWS)


def test_donated_static_unused_and_named_arguments(mesh):
    @partial(jax.jit, donate_argnums=0, static_argnums=2, static_argnames="how")
    def step(state, _unused, power, *, scale, how):
        return {"w": state["w"] * scale**power, "norm": getattr(jnp, how)(state["w"])}

    array = jax.device_put(np.ones((8, 64), np.float32), NamedSharding(mesh, P("X", "Y")))
    given = {"w": array, "none": None}, 1.0, 2
    report = shardviz.inspect(step, *given, scale=3.0, how="sum")
    assert shardviz.inspect(step, *given, kwargs={"scale": 3.0, "how": "sum"}).text == report.text
    assert {axis for each in report.collectives for axis in each.axes} == {"X", "Y"}
    assert {each.op for each in report.collectives} == {"all-reduce"}
    assert not array.is_deleted()


def test_ids_that_are_not_numbered_from_zero():
    mesh = jax.sharding.Mesh(np.array(jax.devices())[[6, 4, 7, 5]].reshape(2, 2), ("X", "data-parallel"))
    report = shardviz.inspect(sum_of_rows, given(mesh, "X", "data-parallel"))
    (found,) = report.collectives
    assert (found.axes, found.groups) == (("data_parallel",), ((6, 4), (7, 5)))
    assert report.mesh == shardviz.Mesh(("X", "data_parallel"), (2, 2), (2, 0, 3, 1))


@pytest.mark.parametrize(
    ("dtype", "notes"),
    [
        (
            jnp.bfloat16,
            (
                "XLA for CPU computes bf16 as f32: what carries f32 here may carry bf16 on a TPU or GPU, "
                "1/2 of the bytes",
            ),
        ),
        (np.float32, ()),
    ],
)
def test_what_a_cpu_computes_in_a_wider_type_is_told(mesh, dtype, notes):
    """XLA for CPU has no bf16 arithmetic: it sums in f32, and the collective carries that."""
    operands = given(mesh, "X", "Y", dtype=dtype), given(mesh, "Y", None, shape=(64, 8), dtype=dtype)
    report = shardviz.inspect(jax.jit(jnp.matmul), *operands)
    (found,) = report.collectives
    assert found.op == "all-reduce"
    assert report.notes == notes
    assert all(f"note: {note}"[:40] in str(report) for note in notes)


def test_several_meshes_are_told(mesh):
    flat = jax.sharding.Mesh(mesh.devices.ravel(), ("all",), axis_types=(AxisType.Auto,))
    program = jax.jit(lambda x: x.sum(axis=1), out_shardings=NamedSharding(flat, P()))
    report = shardviz.inspect(program, given(mesh, "X", "Y"))
    assert report.notes == (
        "this program has several meshes: X=2,Y=4 and all=8; axes are named after X=2,Y=4",
    )
    assert report.mesh.axis_names == ("X", "Y")


def test_one_device_has_nothing_to_send():
    report = shardviz.inspect(lambda x: x @ x, np.ones((8, 8), np.float32))
    assert (report.collectives, report.given, report.notes) == ((), None, ())


def test_a_pmap_has_the_mesh_of_its_axis():
    mapped = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    (found,) = shardviz.inspect(mapped, np.ones((8, 4), np.float32)).collectives
    assert (found.op, found.axes) == ("all-reduce", ("i",))


class Unwilling:
    def as_text(self):
        return None

    in_tree = out_tree = jax.tree.structure(())
    input_shardings = output_shardings = ()


@pytest.mark.parametrize(
    ("program", "args", "message", "hint"),
    [
        ("HloModule m", (), "'HloModule m' is text, not a program", "shardviz.read_hlo"),
        (3, (), "'3' is not a program", "lower("),
        (None, (), "'None' is not a program", "lower("),
        (jax.jit(lambda: 1).lower(), (1,), "a Lowered program has its arguments already", "jitted function"),
        (Unwilling(), (), "this compiler shows no text of its programs", "CPU"),
    ],
    ids=["text", "number", "none", "arguments", "no text"],
)
def test_what_is_no_program(program, args, message, hint):
    with pytest.raises(QuestionError, match=re.escape(message)) as raised:
        shardviz.inspect(program, *args)
    assert hint in raised.value.hint


def test_what_jax_refuses_comes_through():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        shardviz.inspect(sum_of_rows)
    with pytest.raises(TypeError, match="abstract array") as raised:
        shardviz.inspect(lambda x, how: getattr(x, how)(), 1.0, "sum")
    assert "jit it yourself for static arguments" in raised.value.__notes__[-1]


IN_A_SESSION = """
import jax, jax.numpy as jnp, shardviz
from jax.experimental import topologies
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

chips = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices
mesh = jax.make_mesh((2, 4), ("X", "Y"), devices=chips, axis_types=(AxisType.Auto,) * 2)

def split(*spec):
    return NamedSharding(mesh, P(*spec))

matmul = jax.jit(lambda a, w: a @ w, out_shardings=split("X", "Y"))
a = jax.ShapeDtypeStruct((1024, 2048), jnp.bfloat16, sharding=split("X", "Y"))
w = jax.ShapeDtypeStruct((2048, 8192), jnp.bfloat16, sharding=split(None, "Y"))
compiled = matmul.lower(a, w).compile()
told = shardviz.inspect(compiled)
assert told.memory.argument_bytes == compiled.memory_analysis().argument_size_in_bytes
shardviz.testing.assert_collectives(told, all_gather=0, collective_permute=3, others=0)
assert len(told.arrays) >= 3 and told.summary().seconds > 0 and "peak memory: " in str(told)
print(told.collectives[0].groups)
"""


ROWS_OF_CHIPS = ((0, 1, 2, 3), (7, 6, 5, 4))
RIGHTWARDS, LEFTWARDS = (
    sorted((row[i], row[(i + step) % 4]) for row in ROWS_OF_CHIPS for i in range(4)) for step in (1, -1)
)


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="libtpu is for Linux on x86-64"
)
def test_a_program_for_a_tpu_that_is_not_here():
    """The scaling book's collective matmul, compiled in a session of its own; ids as on the chips' torus."""
    libtpu = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    environment = {**os.environ, **libtpu, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", IN_A_SESSION], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    pairs = ast.literal_eval(done.stdout)
    # The compiler sends along the torus's two rows, one of which the mesh runs through backwards.
    assert sorted(pairs) in (RIGHTWARDS, LEFTWARDS)


def test_a_compiled_program_tells_its_memory(mesh):
    """What JAX says of it; and its reasons."""
    compiled = sum_of_rows.lower(given(mesh, "X", "Y")).compile()
    report, stats = shardviz.inspect(compiled), compiled.memory_analysis()
    assert report.memory.argument_bytes == stats.argument_size_in_bytes == 8 // 2 * (64 // 4) * 4
    assert report.memory.temporary_bytes == stats.temp_size_in_bytes
    assert "peak memory: " in str(report)
    assert len(report.reasons) == 1
    assert report.timeline("v5e:2x4").timeline.seconds > 0


MESH = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y"))


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """One program as StableHLO and as the final HLO: a gather along Y, a sum along X."""

    def exchange(x):
        return lax.psum(lax.all_gather(x, "Y", tiled=True), "X")

    specs = {"in_specs": P(("X", "Y")), "out_specs": P(), "check_vma": False}
    lowered = jax.jit(jax.shard_map(exchange, mesh=MESH, **specs)).lower(jnp.ones((64, 8)))
    return {"stablehlo": lowered.as_text(), "hlo": lowered.compile().as_text()}


def test_a_text_that_is_not_compiled_shows_what_the_command_shows(texts, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    file = tmp_path / "program.txt"
    file.write_text(texts["stablehlo"], encoding="utf-8")
    report = shardviz.read_hlo(texts["stablehlo"], "X=2,Y=4")
    assert run(("hlo", str(file), "--mesh", "X=2,Y=4", "--width", "90")) == 0
    *lines, _ = capsys.readouterr().out.splitlines()
    assert repr(report) == "\n".join(lines)
    assert [(each.op, each.axes) for each in report.collectives] == [
        ("all-gather", ("Y",)),
        ("all-reduce", ("X",)),
    ]
    assert report.text == texts["stablehlo"]


def test_a_mesh_of_jax_or_none(texts):
    named = shardviz.read_hlo(texts["hlo"], MESH)
    assert (named.mesh, named.given) == (shardviz.Mesh(("X", "Y"), (2, 4)),) * 2
    found = shardviz.read_hlo(texts["hlo"])
    assert (found.mesh.axis_sizes, found.given) == ((2, 4), None)
    assert [each.groups for each in found.collectives] == [each.groups for each in named.collectives]
    assert found._repr_mimebundle_()["text/html"].count("all-gather") == 1


def test_what_cannot_be_read_is_told(texts):
    text = texts["hlo"]
    report = shardviz.read_hlo(text[: text.index("ROOT", text.index("ENTRY"))])
    assert re.search(r"^note: the text breaks off inside ", repr(report), re.MULTILINE)


@pytest.mark.parametrize(
    "text", ["", "\0\x1b[2J" * 9, "[" * 10_000, "HloModul", Path(__file__).read_text("utf-8")[:300]]
)
def test_a_text_that_is_none_of_these(text):
    with pytest.raises(NotationError) as raised:
        shardviz.read_hlo(text)
    assert raised.value.message.isprintable()
    assert raised.value.hint


def test_a_program_is_not_a_text():
    with pytest.raises(QuestionError, match="a PjitFunction is not text") as raised:
        shardviz.read_hlo(jax.jit(lambda: 1))
    assert "shardviz.inspect" in raised.value.hint


def test_a_mesh_that_is_not_the_programs(texts):
    with pytest.raises(QuestionError, match="8 devices"):
        shardviz.read_hlo(texts["hlo"], "X=3")


# Targets, compiled in another process.

ABSTRACT = jax.sharding.AbstractMesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
needs_libtpu = pytest.mark.skipif(not EXTRAS["tpu"].installed, reason="the extra tpu is not installed")


def mlp(params, x):
    return jnp.tanh(x @ params["layers"]["w_in"]) @ params["layers"]["w_out"]


def layer(mesh, **shape):
    layers = {
        "w_in": given(mesh, None, "Y", shape=(64, 256)),
        "w_out": given(mesh, "Y", None, shape=(256, 64)),
    }
    return {"layers": layers}, given(mesh, "X", None, **shape)


@needs_libtpu
def test_a_target_that_is_not_here():
    report = shardviz.inspect(mlp, *layer(ABSTRACT), target="v5e:2x4")
    (found,) = report.collectives
    assert (found.op, found.axes) == ("all-reduce", ("Y",))
    assert found.source.startswith(f"{__file__}:")
    assert report.compiled.answer.placement.torus == (2, 4)
    paths = [each.path for each in report.arguments]
    assert paths == ["params['layers']['w_in']", "params['layers']['w_out']", "x"]
    assert report.memory.limit_bytes > report.memory.peak_bytes > 0
    timeline = report.timeline()
    assert timeline.timeline.machine == "v5e:2x4"
    assert timeline.seconds > 0
    shown = repr(report)
    assert "v5e:2x4  compiled in" in shown
    assert "placed: X along" in shown
    assert "all-reduce Y" in shown
    assert report.document()["kind"] == "hlo"


def test_several_targets_are_a_table_and_one_that_fails_leaves_the_others():
    reports = shardviz.inspect(mlp, *layer(ABSTRACT), targets=["cpu", "shardy", "v5p:4x4x4"])
    assert [each.answer.status for each in reports.programs] == ["ok", "ok", "unavailable"]
    shown = repr(reports)
    lines = [line.split() for line in shown.splitlines()]
    assert lines[1][:2] == ["cpu", "1"]
    assert lines[3] == ["v5p:4x4x4", "✗"]
    assert {each.op for each in reports["cpu"].collectives} == {"all-reduce"}
    with pytest.raises(TargetError):
        _ = reports["v5p:4x4x4"]
    with pytest.raises(QuestionError, match="v4:2x2x1 was not asked"):
        _ = reports["v4:2x2x1"]
    document = reports.document()
    assert [each["target"] for each in document["targets"]] == ["cpu", "shardy", "v5p:4x4x4"]
    assert document["targets"][0]["program"]["collectives"][0]["axes"] == ["Y"]
    assert document["targets"][2]["program"] is None


def test_options_for_the_devices_at_hand(mesh):
    x = given(mesh, "X", "Y")
    check_sum_of_rows(shardviz.inspect(sum_of_rows, x, options={"xla_embed_ir_in_executable": True}))
    with pytest.raises(JaxRuntimeError, match="No such compile option"):
        shardviz.inspect(sum_of_rows, x, options={"xla_no_such": 1})
    with pytest.raises(QuestionError, match="not compiled yet"):
        shardviz.inspect(sum_of_rows.lower(x).compile(), options={"xla_no_such": 1})


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"target": "cpu", "targets": ["cpu"]}, "target and targets cannot be combined"),
        ({"target": "cpu,shardy"}, "'cpu,shardy' is not one target"),
        ({"target": "none"}, "no target is named"),
        ({"target": 3}, "'3' is not a target"),
        ({"targets": ["cpu", 3]}, "is not a target"),
        ({"target": "cpu", "options": ["xla_name"]}, "is not a dictionary"),
        ({"target": "cpu", "timeout": "soon"}, "timeout='soon' is not a time"),
        ({"target": "real"}, "the program's own process compiles"),
        ({"target": "v99:2x2"}, "v99"),
    ],
)
def test_targets_that_are_none(asked, words):
    with pytest.raises(QuestionError, match=words):
        shardviz.inspect(mlp, *layer(ABSTRACT), **asked)


def test_what_jax_refuses_as_it_traces_comes_through():
    with pytest.raises(TypeError, match="contracting dimensions"):
        shardviz.inspect(mlp, *layer(ABSTRACT, shape=(8, 63)), target="cpu")
    reports = shardviz.inspect(mlp, *layer(ABSTRACT, shape=(8, 63)), targets="cpu,shardy")
    assert {each.answer.status for each in reports.programs} == {"error"}
    assert "TypeError: dot_general" in reports.programs[0].answer.error


def test_an_abstract_mesh_needs_a_target():
    with pytest.raises(QuestionError, match="the mesh of the arguments is abstract") as raised:
        shardviz.inspect(mlp, *layer(ABSTRACT))
    assert "target='v5e:2x4'" in raised.value.hint


def test_a_program_that_does_not_fit_says_what_holds_it(monkeypatch):
    """The error has the compiler's account, and Python shows it below the sentence."""
    held = LiveBuffer("fusion.2", "temporary", "f32[1024,1024]", 2**35, "/home/me/step.py:3")
    memory = MemoryReport("compiler", 2**30, 2**20, 0, 2**35, 2**35 + 2**30, 15 * 2**30, (held,))
    refused = TargetProgram(
        TargetResult("v5e:2x4", "error", error="does not fit: 18 GiB over", memory=memory)
    )
    monkeypatch.setattr("shardviz.api.inspecting.ask_program", lambda *_: (refused, refused))
    with pytest.raises(shardviz.OutOfMemoryError, match="v5e:2x4: does not fit") as raised:
        _ = shardviz.inspect(mlp, *layer(ABSTRACT), targets=["v5e:2x4", "v5e:1x8"])["v5e:2x4"]
    assert isinstance(raised.value, CompilerError)
    assert raised.value.memory.over_bytes == 18 * 2**30
    (note,) = raised.value.__notes__
    assert "33 GiB of 15 GiB allowed" in note
    assert re.search(r"32 GiB +fusion\.2 .*f32\[1024,1024\] +step\.py:3", note)


def test_an_answer_that_is_shown_again_is_not_worked_out_again(monkeypatch):
    """A notebook asks for two forms of it."""
    made = []

    def counted(*given):
        made.append(report_of(*given))
        return made[-1]

    report = shardviz.inspect(mlp, *layer(ABSTRACT), target="cpu")
    several = shardviz.inspect(mlp, *layer(ABSTRACT), targets="cpu,shardy")
    monkeypatch.setattr("shardviz.reports.program_report.report_of", counted)
    assert report.document()["collectives"][0]["why"]["kind"] == "contraction"
    for shown in (report, several):
        assert set(shown._repr_mimebundle_()) == {"text/plain", "text/html"}
        assert shown.document()
    assert len(made) == 3
