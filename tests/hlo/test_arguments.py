"""The arguments of compiled programs, by the paths that JAX gives them."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from shardviz.hlo.arguments import arguments_of


def test_the_arguments_of_a_step():
    def step(params, _unused, x):
        return {"w": params["layers"]["w"] + x.sum()}, x * 2

    shape = jax.ShapeDtypeStruct((4, 8), jnp.bfloat16)
    arguments = {"layers": {"w": shape, "it's": shape}}, shape, jax.ShapeDtypeStruct((3,), jnp.bfloat16)
    compiled = jax.jit(step, donate_argnums=0).lower(*arguments).compile()
    found = arguments_of(compiled.as_text())
    assert [(each.number, each.path, each.is_donated) for each in found] == [
        (0, "params['layers']['w']", True),
        (1, "x", False),
    ]
    assert [(each.shape.dtype, each.shape.sizes) for each in found] == [("bf16", (4, 8)), ("bf16", (3,))]


def test_what_is_not_told():
    assert arguments_of("") == arguments_of("HloModule m\n") == ()
    text = """HloModule m

%other (p: f32[2]) -> f32[2] {
  ROOT %p = f32[2]{0} parameter(0), metadata={op_name="no"}
}

ENTRY %main (a: f32[2], b: (f32[2])) -> f32[2] {
  %b = (f32[2]{0}) parameter(1)
  ROOT %a = f32[2]{0} parameter(0), metadata={source_line=3 op_name="it\\'s[\\"x\\"]"}
}
"""
    ((argument),) = arguments_of(text)
    assert (argument.instruction, argument.path) == ("a", 'it\'s["x"]')
