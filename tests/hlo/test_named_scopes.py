"""The statements in the names that compilers give operations."""

from __future__ import annotations

import pytest

from shardviz.hlo.named_scopes import joined_names, named_scope, program_place

NAMES = {"H", "Y", "Y_1"}


@pytest.mark.parametrize(
    ("source", "scope"),
    [
        ("jit(program)/H/bd,df->bf/dot_general", ("H", "forward")),
        ("jit(program)/Y_1/jit(silu)", ("Y_1", "forward")),
        ("jit(program)/jvp(H)/bd,df->bf/dot_general", ("H", "forward")),
        ("jit(program)/transpose(jvp(Y))/bf,fd->bd/dot_general", ("Y", "backward")),
        ("jit(program)/transpose(jvp(jvp()))/checkpoint/Y/dot_general", ("Y", "backward")),
        ("jit(program)/transpose(jvp())/while/body/closed_call/checkpoint/H/dot", ("H", "backward")),
        ("jit(program)/transpose(jvp())/checkpoint/rematted_computation/H/dot", ("H", "recomputed")),
        ("checkpoint/rematted_computation/H/dot_general", ("H", "recomputed")),
        ("jit(program)/while/body/closed_call/Y/dot_general", ("Y", "forward")),
        ("jit(program)/add", None),
        # The last piece is the operation.
        ("jit(program)/H", None),
        ("file.py:12", None),
        ("", None),
    ],
)
def test_scopes(source, scope):
    assert named_scope(source, NAMES) == scope


@pytest.mark.parametrize(
    ("op_name", "names"),
    [
        ("jit(f)/mlp/dot", ("jit(f)/mlp/dot",)),
        ("jit(f)/mlp/dot;jit(f)/norm/mul", ("jit(f)/mlp/dot",)),
        # As XLA for CPUs wrote them where it combined all-reduces.
        (
            "jit(f)/(transpose(jvp(mlp))/dot:jvp()/reduce_sum)",
            ("jit(f)/transpose(jvp(mlp))/dot", "jit(f)/jvp()/reduce_sum"),
        ),
        ("jit(f)/norm/(jit(_var)/sum:sum)", ("jit(f)/norm/jit(_var)/sum", "jit(f)/norm/sum")),
        ("(a/dot:b/dot)", ("a/dot", "b/dot")),
        ("jit(f)/(a)/b)", ("jit(f)/(a)/b)",)),
        ("", ("",)),
    ],
)
def test_names_that_xla_has_joined(op_name, names):
    assert joined_names(op_name) == names


@pytest.mark.parametrize(
    ("op_name", "scopes", "phase"),
    [
        # Names that JAX gives, of Flax Linen's remat, Equinox, and a loop that adds up gradients.
        (
            "jit(step)/transpose(jvp(Model))/jvp(Model)/checkpoint/rematted_computation/layer_0/Dense_1/dot_general",
            ("Model", "layer_0", "Dense_1"),
            "recomputed",
        ),
        (
            "jit(step)/transpose(jvp(vmap(jvp(vmap()))))/checkpoint/vmap(eqx.nn.Linear)/dot_general",
            ("eqx.nn.Linear",),
            "backward",
        ),
        (
            "jit(step)/while/body/closed_call/microbatch/(transpose(jvp())/dot:jvp()/reduce_sum)",
            ("microbatch",),
            "backward",
        ),
        ("jit(f)/transpose(jvp())/(mlp/in/dot:mlp/out/dot)", ("mlp",), "backward"),
        ("jit(f)/transpose(jvp())/(mlp/in/dot:attention/dot)", ("mlp", "in"), "backward"),
        ("jit(step)/jvp()/shard_map/all_gather", (), "forward"),
    ],
)
def test_places(op_name, scopes, phase):
    place = program_place(op_name)
    assert (place.scopes, place.phase) == (scopes, phase)
