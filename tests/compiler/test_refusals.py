"""Programs whose shardings JAX refuses: what it says, and changes of the source that it then accepts.

Each change is written into the file, which JAX lowers again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shardviz.compiler.child.source_changes import caption
from shardviz.compiler.user_file import UserFileProcess, UserFileRequest, UserProgram
from shardviz.errors import QuestionError
from shardviz.notation.mesh import parse_mesh
from shardviz.reports.lowered_module import ShardingRefusal

HEAD = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P, reshard

def split(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def program(mesh):
    x, w = split(mesh, (64, 512), None, 'X'), split(mesh, (512, 256), 'X', None)
    rows, ids, odd = split(mesh, (64, 512), 'X', None), split(mesh, (32,)), split(mesh, (63, 8), None, None)
    ids = jax.ShapeDtypeStruct((32,), jnp.int32)
"""
SHARD_MAP = "jax.shard_map(lambda rows: {}, mesh=mesh, in_specs=P('X'), out_specs=P({}))"
SCAN = "jax.lax.scan(lambda sum, row: (sum + row, None), {}, rows)"
SUM = SHARD_MAP.format("rows.sum(0)", "")
UNREDUCED = "jnp.einsum('bd,df->bf', x, w, out_sharding=P(unreduced={'X'}))"
EXPLICIT = [  # what the function returns, the expression that JAX refuses, and one that it accepts
    ("lambda x, w: x @ w, x, w", "x @ w", "jnp.matmul(x, w, out_sharding=P('X', None))"),
    ("lambda x, w: x @ w, x, w", "x @ w", "x @ jax.sharding.reshard(w, P(None, None))"),
    (
        "lambda x, rows: jnp.sin(x) + rows, x, rows",
        "jnp.sin(x) + rows",
        "jax.sharding.reshard(jnp.sin(x), P('X', None)) + rows",
    ),
    ("lambda w, ids: w[ids], w, ids", "w[ids]", "w.at[ids].get(out_sharding=P(None, None))"),
    (
        "lambda x: jax.lax.with_sharding_constraint(x, P('X')), x",
        "jax.lax.with_sharding_constraint(x, P('X'))",
        "jax.sharding.reshard(x, P('X'))",
    ),
    (
        "lambda x, rows: jnp.concatenate([x, rows]), x, rows",
        "jnp.concatenate([x, rows])",
        "jnp.concatenate([x, jax.sharding.reshard(rows, P(None, 'X'))])",
    ),
    (
        "lambda odd: reshard(odd, P('X')), odd",
        "reshard(odd, P('X'))",
        "reshard(jnp.pad(odd, ((0, 1), (0, 0))), P('X'))",
    ),
    (
        f"lambda x, w: jnp.sin({UNREDUCED}), x, w",
        f"jnp.sin({UNREDUCED})",
        f"jnp.sin(jax.sharding.reshard({UNREDUCED}, P(None, None)))",
    ),
]
BRANCH = "jax.lax.cond(True, lambda: rows, lambda: {})"
AUTO = [
    (
        SHARD_MAP.format(SCAN.format("jnp.zeros(512)") + "[0][None]", "'X'") + ", rows",
        SCAN.format("jnp.zeros(512)"),
        SCAN.format("jax.lax.pcast(jnp.zeros(512), ('X',), to='varying')"),
    ),
    (
        SHARD_MAP.format(BRANCH.format("jnp.zeros(rows.shape)"), "'X'") + ", rows",
        BRANCH.format("jnp.zeros(rows.shape)"),
        BRANCH.format("jax.lax.pcast(jnp.zeros(rows.shape), ('X',), to='varying')"),
    ),
    (f"{SUM}, rows", "rows.sum(0)", "jax.lax.psum(rows.sum(0), ('X',))"),
    (SHARD_MAP.format("rows.sum(0)", "'Y'") + ", rows", "rows.sum(0)", "jax.lax.psum(rows.sum(0), ('X',))"),
    (f"{SUM}, rows", SUM, SUM.replace("P()", "P('X')")),
    (f"{SUM}, rows", SUM, SUM.replace("P())", "P(), check_vma=False)")),
]


def lowered(folder: Path, returned: str, types: str, head: str = HEAD) -> UserProgram:
    file = folder / "own.py"
    file.write_text(f"{head}    return {returned}\n")
    request = UserFileRequest(str(file), "program", parse_mesh("X=2,Y=4"), ("cpu",), types == "explicit")
    return UserFileProcess(request, os.environ).result(100)


@pytest.mark.parametrize(
    ("types", "returned", "source", "accepted"),
    [
        pytest.param(types, *one, marks=[pytest.mark.slow] * (number not in (0, 3)))
        for types, cases in (("explicit", EXPLICIT), ("auto", AUTO))
        for number, one in enumerate(cases)
    ],
)
def test_jax_accepts_the_changed_file(
    tmp_path: Path, types: str, returned: str, source: str, accepted: str
) -> None:
    with pytest.raises(ShardingRefusal) as raised:
        lowered(tmp_path, returned, types)
    refusal = raised.value
    tried = {change.code: change for change in refusal.changes}
    assert tried[accepted].lowered is not None, [*tried]
    assert refusal.place.endswith("own.py:12")
    assert refusal.source in ("", source) or "psum" in accepted
    module = lowered(tmp_path, returned.replace(source, accepted), types).lowered_for("cpu")
    assert tried[accepted].lowered.results == module.results  # type: ignore[union-attr]


def test_an_argument_is_padded(tmp_path: Path) -> None:
    jitted = "jax.jit(lambda odd: odd * 2, in_shardings=NamedSharding(mesh, P('X')))"
    returned = f"{jitted}, jax.ShapeDtypeStruct((63, 8), jnp.float32)"
    with pytest.raises(ShardingRefusal, match=r"own\.py:12: IndivisibleError: .*63") as raised:
        lowered(tmp_path, returned, "auto")
    (change,) = raised.value.changes
    assert (change.code, change.note) == (
        "an argument of the shape (64, 8) in place of (63, 8)",
        "padded by 1",
    )
    assert change.lowered is not None
    assert change.lowered.arguments[0].shape == (64, 8)


def test_changes_are_in_names_that_the_file_has(tmp_path: Path) -> None:
    head = HEAD.replace(", jax.numpy as jnp", "").replace("jnp", "jax.numpy").replace(" as P", "")
    head = head.replace("P(", "PartitionSpec(")
    with pytest.raises(ShardingRefusal) as raised:
        lowered(tmp_path, "lambda x, w: x @ w, x, w", "explicit", head)
    for change in raised.value.changes:
        lowered(tmp_path, f"lambda x, w: {change.code}, x, w", "explicit", head)


def test_a_change_may_meet_the_next_refusal(tmp_path: Path) -> None:
    with pytest.raises(ShardingRefusal) as raised:
        lowered(tmp_path, "lambda x, w: (x @ w\n        ) + (x @ w).T.reshape(64, 256), x, w", "explicit")
    refusal = raised.value
    assert refusal.types == ("f32[64, 512_X]", "f32[512_X, 256]")
    assert {change.lowered for change in refusal.changes} == {None}
    assert all("own.py:13: ShardingTypeError: " in change.then for change in refusal.changes)


def test_the_words_of_jax_are_whole(tmp_path: Path) -> None:
    with pytest.raises(ShardingRefusal) as raised:
        lowered(tmp_path, f"{SUM}, rows", "auto")
    assert raised.value.words.startswith(
        "ValueError: shard_map applied to the function '<lambda>' was given out_specs"
    )
    assert raised.value.words.endswith("passing the check_vma=False argument to `jax.shard_map`.")


@pytest.mark.parametrize("returned", ["lambda x: x.nothing, x", "lambda x: x + jnp.zeros(3), x"])
def test_other_errors_are_no_refusals(tmp_path: Path, returned: str) -> None:
    with pytest.raises(QuestionError) as raised:
        lowered(tmp_path, returned, "auto")
    assert not isinstance(raised.value, ShardingRefusal)


@pytest.mark.parametrize(
    ("words", "short"),
    [
        ("float32[64@X,512@(Y,Z)]{V:W}", "f32[64_X, 512_(Y, Z)]{V:W}"),
        ("bfloat16[]", "bf16[]"),
        ("key<fry>[8@X]", "key<fry>[8_X]"),
    ],
)
def test_a_type_in_fewer_letters(words: str, short: str) -> None:
    assert caption(words) == short
