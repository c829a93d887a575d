"""The lines that programs of JAX tell: the user's own, not those of libraries and shared helpers."""

from importlib.util import module_from_spec, spec_from_file_location

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from shardviz.hlo import read_hlo
from shardviz.hlo.text.source_locations import SourceLocations

USED = "\n".join(f"%a = f32[] add(%b, %c), metadata={{stack_frame_id={n}}}" for n in range(1, 9))
LIBRARY = """
def dense(x, w):
    return x @ abs(w)
"""
PROGRAM = """
def project(x, w):
    return library.dense(x, w)

def layer(x, w_in, w_out):
    x = project(x, w_in)
    x = x - 1
    return project(x, w_out)
"""

CHECKPOINTED = """
@jax.checkpoint
def block(w, x):
    return jnp.tanh(x @ w)

def loss(w, v, x):
    x = block(w, x)
    return jnp.sum(block(v, x))

def step(w, v, x):
    gradients = jax.grad(loss, (0, 1))(w, v, x)
    return w - gradients[0], v - gradients[1]
"""


def loaded(path, text, **names):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    vars(module).update(names)
    spec.loader.exec_module(module)
    return module


def sources(function, *shapes):
    """The lines of the collectives of a function, whose arguments are split over their first dimension.

    JAX 0.12 gives the gather of an argument itself the name of that argument, and no line: it has the line
    of what takes it.
    """
    mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
    split = NamedSharding(mesh, P("x"))
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32, sharding=split) for shape in shapes]
    jitted = jax.jit(function, out_shardings=split)
    module = read_hlo(jitted.lower(*arguments).compile().as_text(), origins=True)
    return {each.source for each in module.collectives}


def test_calls_of_a_shared_helper_are_told_by_their_callers(tmp_path):
    library = loaded(tmp_path / "site-packages" / "library.py", LIBRARY)
    path = tmp_path / "program.py"
    program = loaded(path, PROGRAM, library=library)
    assert sources(program.layer, (8, 64), (64, 128), (128, 64)) == {f"{path}:6", f"{path}:8"}
    # A helper with one caller is told itself, a library never.
    assert sources(program.project, (8, 64), (64, 128)) == {f"{path}:3"}
    found = sources(library.dense, (8, 64), (64, 128))
    assert found
    assert all(each.startswith(str(tmp_path / "site-packages")) or __file__ in each for each in found)


def test_who_traces_a_program_calls_no_helper_in_it(tmp_path):
    """JAX leaves out the frames around the forward pass of a checkpoint, up to the caller of all."""
    path = tmp_path / "program.py"
    program = loaded(path, CHECKPOINTED, jax=jax, jnp=jnp)
    assert sources(program.step, (64, 64), (64, 64), (32, 64)) <= {f"{path}:{line}" for line in (4, 7, 8, 11)}


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("<ipython-input-7-0b1d2c>", "In[7]:4"),
        ("/tmp/ipykernel_812/1234567.py", "cell 1234567:4"),
        ("/home/u/ipykernel.py", "/home/u/ipykernel.py:4"),
        (
            "/v/lib/python3.11/site-packages/shardviz/examples/step.py",
            "/v/lib/python3.11/site-packages/shardviz/examples/step.py:4",
        ),
    ],
)
def test_a_notebook_tells_the_cell_and_a_shipped_example_its_line(file, told):
    tables = (
        f'\nFileNames\n1 "{file}"\n2 "/v/site-packages/flax/linear.py"\n\n'
        "FileLocations\n1 {file_name_id=1 function_name_id=1 line=4}\n"
        "2 {file_name_id=2 function_name_id=1 line=287}\n\n"
        "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n\n"
    )
    locations = SourceLocations(f"{tables}{USED}")
    assert {locations.of({"stack_frame_id": number}) for number in "12"} == {told}
    assert locations.of({"source_file": file, "source_line": "4"}) == told


def test_a_chain_that_comes_to_a_line_again_makes_no_helper_of_it():
    """As gradients leave it: line 1, called by 2, called by 3, and the same in a chain of 1 and 2 alone."""
    tables = (
        '\nFileNames\n1 "/a.py"\n\nFileLocations\n'
        + "".join(f"{n} {{file_name_id=1 function_name_id=1 line={n}}}\n" for n in range(1, 4))
        + "\nStackFrames\n1 {file_location_id=3 parent_frame_id=1}\n"
        + "".join(
            f"{n} {{file_location_id={line} parent_frame_id={parent + 1}}}\n"
            for n, line, parent in ((2, 2, 1), (3, 1, 2), (4, 2, 0), (5, 1, 4), (6, 2, 5), (7, 1, 6))
        )
        + "\n"
    )
    used = "".join(f"%a = f32[] add(%b, %c), metadata={{stack_frame_id={n}}}\n" for n in (3, 7))
    locations = SourceLocations(f"{tables}{used}")
    assert {locations.of({"stack_frame_id": number}) for number in "37"} == {"/a.py:1"}


def test_callers_that_a_damaged_table_lacks_or_turns_round():
    tables = (
        '\nFileNames\n1 "/a.py"\n\nFileLocations\n'
        + "".join(f"{n} {{file_name_id=1 function_name_id=1 line={n}}}\n" for n in range(1, 9))
        + "\nStackFrames\n"
        + "".join(f"{n} {{file_location_id={n} parent_frame_id={n % 8 + 1}}}\n" for n in range(1, 9))
        + "\n"
    )
    assert SourceLocations(f"{tables}{USED}").of({"stack_frame_id": "5"}) == "/a.py:5"
