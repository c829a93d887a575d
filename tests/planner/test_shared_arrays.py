"""Arguments that all runs of a program take: ``x 4 sharing M``."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.codegen.program_function import ProgramFunction
from shardviz.errors import ShardvizError
from shardviz.notation.program import joined_lines, split_layers
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import Training
from shardviz.planner.training import with_backward
from shardviz.sharding import Mesh
from shardviz.targets.hardware import placed_for

MESH = Mesh(("X", "Y"), (2, 2))
TEXT = "H[b,t,d] = X[b,s,d] * M[t,s]; Y = X[b,t,d] + scale(tanh(H), W[d]) × 3 sharing M"
SIZES = "b=4,t=8,d=16"


def problem(text=TEXT):
    return problem_from_text(text, mesh=MESH, specs="X=X__,W=Y", sizes=SIZES, dtype="f32")


def test_the_text_is_read_as_it_is_written():
    asked = problem()
    assert (asked.layers, asked.shared, asked.own_arguments) == (3, ("M",), ("W",))
    again = problem(asked.text)
    assert (again.text, again.shared) == (asked.text, ("M",))
    assert split_layers("ab->ba x 2 sharing A, B'").shared == ("A", "B'")
    assert joined_lines("H = X[b]\nx 2 sharing H\n") == "H = X[b] x 2 sharing H"


def test_memory_has_it_once_and_all_others_by_layer():
    alone, shared = (
        price(plan(problem(text)), placed_for("v5e:2x2", (), MESH)).layers_peak_bytes
        for text in (TEXT.replace(" sharing M", ""), TEXT)
    )
    assert alone - shared == 2 * 4 * 8 * 8


@pytest.mark.parametrize("remat", ["none", "layer"])
def test_every_layer_takes_it_in_jax(remat):
    import jax
    import jax.numpy as jnp

    step = with_backward(problem(), Training(remat))
    assert {name for name, _ in step.gradients} == {"Y", "X", "W"}
    names = {"jax": jax, "jnp": jnp}
    exec("\n".join(ProgramFunction(step, is_split=False).lines()), names)
    rng = np.random.default_rng(0)
    shapes = {"M": (8, 8), "X": (4, 8, 16), "W": (3, 16), "dY": (4, 8, 16)}
    values = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    given = [values[argument.name] for argument in step.arguments]
    made = dict(zip((array.name for array in step.returned_arrays), names["program"](*given), strict=True))

    def layers(x, w):
        for own in w:
            x = x + jnp.tanh(jnp.einsum("ts,bsd->btd", values["M"], x)) * own
        return x

    result, gradients = jax.vjp(layers, values["X"], values["W"])
    assert np.allclose(made["Y"], result, atol=1e-4)
    for name, gradient in zip(("dX", "dW"), gradients(values["dY"]), strict=True):
        assert np.allclose(made[name], gradient, atol=1e-3), name


@pytest.mark.parametrize("name", ["Q", "H"])
def test_only_an_argument_is_shared(name):
    with pytest.raises(ShardvizError, match=f"the layers share '{name}', which is not an argument"):
        problem(TEXT.replace("sharing M", f"sharing {name}"))
