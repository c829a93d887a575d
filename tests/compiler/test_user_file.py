"""A user's file in a process of its own: what it returns, and every way in which it is wrong."""

from __future__ import annotations

import os
import signal
import threading
import time
from itertools import product
from pathlib import Path

import jax
import pytest
from jax.interpreters.mlir import make_ir_context
from jax.sharding import NamedSharding, PartitionSpec as P

from shardviz.compiler.user_file import (
    EXAMPLES,
    UserFileProcess,
    UserFileRequest,
    UserProgram,
    find_function,
    functions_of,
)
from shardviz.errors import CompilerError, QuestionError, ShardvizError
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import Mesh
from shardviz.sharding.array import shard_shape
from tests.conftest import one_row_in
from tests.forked_files import Fork

FILE = """
import jax, jax.numpy as jnp, beside
from jax.sharding import NamedSharding, PartitionSpec as P

print("said by the file")

def split(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))

def layer(params, x):
    return beside.double(x @ params["w"])

def good(mesh):
    assert mesh.axis_names == ("data", "model") and mesh.devices.shape == (2, 4), mesh
    return layer, {"w": split(mesh, (64, 128), None, "model")}, split(mesh, (8, 64), "data")

def arrays(mesh):
    place = lambda x, *spec: jax.device_put(x, NamedSharding(mesh, P(*spec)))
    return layer, {"w": place(jnp.ones((64, 128)), None, "model")}, place(jnp.ones((8, 64)), "data")

def large(mesh):
    return layer, {"w": split(mesh, (64, 4096), None, "model")}, split(mesh, (4096, 64), "data")

def unsplit(mesh):
    function, params, x = good(mesh)
    return function, {"w": jax.ShapeDtypeStruct((64, 128), jnp.bfloat16)}, x

def whole(mesh):
    weight, x = (jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in ((64, 128), (8, 64)))
    return layer, {"w": weight}, x

def jitted(mesh):
    kept = ({"w": NamedSharding(mesh, P(None, "model"))}, NamedSharding(mesh, P("data")))
    return jax.jit(layer, in_shardings=kept), *whole(mesh)[1:]

def silent(mesh):
    # Libraries leave their constraints out where they find no mesh, in either context.
    from jax._src.mesh import thread_resources

    def step(params, x):
        if not jax.sharding.get_abstract_mesh().empty and not thread_resources.env.physical_mesh.empty:
            x = jax.lax.with_sharding_constraint(x, P("data"))
        return layer(params, x)
    return step, *whole(mesh)[1:]

def other(mesh):
    mine = jax.sharding.Mesh(mesh.devices.reshape(8), ("x",))
    total = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mine, in_specs=P("x"), out_specs=P())
    return total, split(mine, (8, 64), "x")

def donated(mesh):
    def step(params, state, x):
        return {"w": params["w"] * 2}, state["w"].astype(jnp.float32), x
    function, params, x = good(mesh)
    return jax.jit(step, donate_argnums=(0, 1)), params, params, x

def gathered(mesh):
    function, params, x = good(mesh)
    return jax.jit(lambda w: w * 2, donate_argnums=0, out_shardings=NamedSharding(mesh, P())), params["w"]

def stage(mesh):
    def step(x):
        by_platform = jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
        return by_platform @ x.T
    return jax.jit(step).trace(split(mesh, (8, 64), "data"))

def lowered_stage(mesh):
    return stage(mesh).lower()

def compiled_stage(mesh):
    return lowered_stage(mesh).compile()

def of_one(mesh):
    return layer, {"w": split(mesh, (64, 128), "expert", "model")}, split(mesh, (8, 64), ("stage", "data"))

def misspelt(mesh):
    return layer, {"w": split(mesh, (64, 128), None, "modle")}, split(mesh, (8, 64), "data")

def lacking(mesh):
    mine = jax.sharding.Mesh(mesh.devices.reshape(8), ("x",))
    return layer, {"w": split(mine, (64, 128), None, "absent")}, split(mine, (8, 64), "x")

def number(mesh):
    return 3

def pair(mesh):
    return (3, 4)

def alone(mesh):
    return split

def raises(mesh):
    return mesh.nothing

def unmeshed():
    return layer, None

def uneven(mesh):
    return jax.jit(lambda x: x * 2), split(mesh, (7, 64), "data")

def shapes(mesh):
    function, params, x = good(mesh)
    return function, params, split(mesh, (8, 63), "data")

def leaves(mesh):
    raise SystemExit(4)

def dies(mesh):
    import os
    os._exit(7)

def killed(mesh):
    import os, signal
    os.kill(os.getpid(), signal.SIGSEGV)

def waits(mesh):
    import time
    time.sleep(600)

value = 3
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mine")
    (folder / "beside.py").write_text("def double(x):\n    return x * 2\n")
    (folder / "mine.py").write_text(FILE)
    return folder / "mine.py"


def ran(file, function, mesh="data=2,model=4", platforms=("cpu",), seconds=120.0) -> UserProgram:
    request = UserFileRequest(str(file), function, parse_mesh(mesh), platforms)
    return UserFileProcess(request, os.environ).result(seconds)


def test_files_of_other_tests_run_in_forks(file):
    """Each would load JAX for itself."""
    request = UserFileRequest(str(file), "good", parse_mesh("data=2,model=4"), ("cpu",))
    process = UserFileProcess(request, os.environ)
    assert isinstance(process._child._popen, Fork)
    assert process.result(120.0).lowered_for("cpu").devices == 8


@pytest.mark.usefixtures("own_compilers")
def test_a_function_and_its_arguments(file):
    """Which may be arrays; and the shardings of its jit count."""
    programs = [ran(file, function, platforms=("cpu", "tpu")) for function in ("good", "arrays", "jitted")]
    for platform, program in product(("cpu", "tpu"), programs):
        lowered = program.lowered_for(platform)
        assert (lowered.platform, lowered.devices) == (platform, 8)
        assert lowered.meshes == (Mesh(("data", "model"), (2, 4)),)
    good, _, jitted = (program.lowered_for("cpu") for program in programs)
    assert jitted.unsplit == ()
    assert text_of(jitted) == text_of(good).replace("jit_layer", jitted.name)


def test_a_mesh_of_more_devices_than_can_be_simulated_has_none(file):
    lowered = ran(file, "large", "data=1024,model=4").lowered_for("cpu")
    assert lowered.meshes == (Mesh(("data", "model"), (1024, 4)),)


@pytest.mark.parametrize(
    ("function", "line", "words"),
    one_row_in(
        3,
        [
            (
                "whole",
                'return layer, {"w": weight}, x',
                "nothing that whole returns has a sharding on the mesh",
            ),
            (
                "number",
                "return 3",
                "number returned a value of the type int, not a function and its arguments",
            ),
            ("pair", "return (3, 4)", "what pair returned begins with a value of the type int"),
            ("alone", "return split", "alone returned a function alone without its arguments"),
            (
                "unmeshed",
                "return layer, None",
                "unmeshed does not take the mesh alone: too many positional arguments",
            ),
            (
                "layer",
                "return beside.double",
                "layer does not take the mesh alone: missing a required argument",
            ),
            ("misspelt", "=NamedSharding(mesh", "ValueError: Resource axis: modle of "),
            ("lacking", "=NamedSharding(mesh", "ValueError: Resource axis: absent of "),
            ("uneven", "(7, 64)", "IndivisibleError: "),
            ("raises", "return mesh.nothing", "AttributeError: 'Mesh' object has no attribute 'nothing'"),
            ("shapes", "return beside.double(x @", "TypeError: dot_general requires contracting dimensions"),
            ("leaves", "raise SystemExit(4)", "it ends the process with sys.exit(4)"),
        ],
    ),
)
def test_what_is_wrong_is_one_sentence_with_the_line(file, function, line, words):
    number = next(n for n, text in enumerate(FILE.splitlines(), 1) if line in text)
    with pytest.raises(QuestionError) as raised:
        ran(file, function)
    assert raised.value.message.startswith(f"{file}:{number}: {words}")
    assert raised.value.hint
    assert "\n" not in raised.value.message


def lowered(file, function):
    return ran(file, function).lowered_for("cpu")


def text_of(module):
    from jaxlib.mlir import ir

    with make_ir_context():
        return str(ir.Module.parse(module.code))


@pytest.mark.parametrize("function", ["stage", "lowered_stage", "compiled_stage"])
def test_a_stage_of_jax_is_lowered_for_each_platform(file, function):
    program = ran(file, function, platforms=("cpu", "tpu"))
    for platform, operation in (("cpu", "sine"), ("tpu", "cosine")):
        module = program.lowered_for(platform)
        assert (module.platform, module.meshes) == (platform, (Mesh(("data", "model"), (2, 4)),))
        assert f"stablehlo.{operation} " in text_of(module)


@pytest.mark.parametrize("mesh", ["data=2,model=4", "stage=1,data=2,expert=1,model=4"])
def test_axes_of_size_1_need_no_name_and_are_not_shown(file, mesh):
    """Beside the specs: JAX's own shards on the whole mesh."""
    module = ran(file, "of_one", mesh).lowered_for("cpu")
    assert module.meshes == (Mesh(("data", "model"), (2, 4)),)
    notes = [] if "stage" in mesh else ["axes that --mesh does not name have size 1: expert, stage"]
    assert [*module.notes] == notes
    whole = jax.sharding.AbstractMesh((1, 2, 1, 4), ("stage", "data", "expert", "model"))
    specs = P("expert", "model"), P(("stage", "data"))
    for array, spec in zip(module.arguments, specs, strict=True):
        assert not {"stage", "expert"}.intersection(array.spec.axes)
        own = shard_shape(array.shape, array.spec, module.mesh)
        assert own == NamedSharding(whole, spec).shard_shape(array.shape)


def test_a_large_array_without_a_sharding_is_named(file):
    assert lowered(file, "unsplit").unsplit == ("params['w']",)


def test_tracing_has_the_mesh_in_context(file):
    found = lowered(file, "silent")
    assert "sdy.sharding_constraint" in text_of(found)
    assert found.notes == ()


def test_constraints_that_may_be_dropped_are_told(file):
    found = lowered(file, "other")
    assert found.meshes == (Mesh(("x",), (8,)),)
    (note,) = found.notes
    assert note.startswith("it is traced without a mesh in context, and constraints that look for one are")


def test_donations_are_known_and_those_that_jax_gives_up_are_told(file):
    found = lowered(file, "donated")
    assert [one.path for one in found.arguments if one.is_donated] == ["params['w']", "state['w']"]
    gathered = lowered(file, "gathered")
    assert not any(one.is_donated for one in gathered.arguments)
    assert gathered.lost_donation.startswith("Some donated buffers were not usable: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_module\n", r":1: ModuleNotFoundError: No module named 'no_such_module'$"),
        ("x = 1\ndef f(mesh:\n", r"other.py:2: SyntaxError: '\(' was never closed$"),
        ("raise KeyboardInterrupt\n", r":1: KeyboardInterrupt: no message, from 'raise KeyboardInterrupt'$"),
        (
            "def g(x):\n    assert x.ndim == 3\n\ndef f(mesh):\n    return g, 1.0\n",
            r"other.py:2: AssertionError: no message, from 'assert x.ndim == 3'$",
        ),
        ("value = 3\n", r"has no function f$"),
        ("f = 3\n", r"f of .* is a value of the type int, not a function$"),
        (f"f = {'+'.join('1' * 60_000)}\n", r"other.py: (RecursionError|MemoryError): "),
    ],
    ids=lambda text: text[:20],
)
def test_files_that_cannot_run(tmp_path, text, words, capfd):
    path = tmp_path / "other.py"
    path.write_text(text)
    with pytest.raises(QuestionError, match=f"(?m){words}"):
        ran(path, "f")
    assert "Traceback" not in capfd.readouterr().err


def test_without_jax_a_sentence_says_so(file, tmp_path, monkeypatch, capfd):
    (tmp_path / "jax.py").write_text("raise ImportError('no room for it')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(CompilerError, match="jax cannot be used here: ImportError: no room for it") as raised:
        ran(file, "good")
    assert raised.value.hint
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("own_compilers")
@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("dies", "ended the process with status 7"),
        ("killed", "was killed by SIGSEGV"),
    ],
)
def test_a_file_that_ends_its_process(file, function, words):
    with pytest.raises(CompilerError, match=words):
        ran(file, function)


def test_a_file_that_hangs_is_stopped(file):
    with pytest.raises(CompilerError, match="took longer than 1 s and was stopped"):
        ran(file, "waits", seconds=1.0)


@pytest.mark.usefixtures("own_compilers")
def test_a_process_can_be_killed_at_any_time(file):
    request = UserFileRequest(str(file), "waits", parse_mesh("data=2,model=4"), ("cpu",))
    process = UserFileProcess(request, os.environ)
    threading.Timer(0.2, process.kill).start()
    start = time.monotonic()
    with pytest.raises(CompilerError, match=signal.SIGKILL.name):
        process.result(120.0)
    assert time.monotonic() - start < 240


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mine.py:", "'' is not the name of a function"),
        ("mine.py:a-b", "'a-b' is not the name of a function"),
        ("mine.py", "no function of 'mine.py' is named"),
        ("no.py:f", "file 'no.py' does not exist"),
        ("nothing", "'nothing' does not name a function of a file"),
        (".:f", "'.' is a folder"),
    ],
)
def test_names_that_mean_no_function(text, words, file, monkeypatch):
    monkeypatch.chdir(file.parent)
    with pytest.raises(QuestionError, match=words) as raised:
        find_function(text)
    assert raised.value.hint


def test_functions_are_found_without_running_the_file(file, tmp_path):
    assert functions_of(file)[:3] == ["split", "layer", "good"]
    assert functions_of(tmp_path / "no.py") == []
    assert find_function(f"{file}:good") == (str(file), "good")


@pytest.mark.parametrize("example", [path.stem for path in EXAMPLES.glob("*.py")])
def test_examples_ship_and_run(example):
    path, function = find_function(example)
    assert len(Path(path).read_text().splitlines()) <= 40
    found = ran(path, function, "data=4,model=4", ("tpu", "cuda"))
    assert not [each for each in found.lowered.values() if isinstance(each, ShardvizError)]
    assert found.lowered_for("tpu").meshes == (Mesh(("data", "model"), (4, 4)),)
