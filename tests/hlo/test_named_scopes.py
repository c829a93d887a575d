"""The statements in the names that compilers give operations."""

from __future__ import annotations

import pytest

from shardviz.hlo.named_scopes import named_scope

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
