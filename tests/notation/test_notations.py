"""Every row of the table of notations, each column read and written as every other one."""

from __future__ import annotations

import random

import pytest

from shardviz.errors import NotationError, QuestionError, ShardvizError
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.notations import (
    NOTATIONS,
    detect,
    find_notation,
    read_arrays,
    read_sharding,
    write_all,
    write_sharding,
)
from shardviz.notation.reading import Context, Reading
from shardviz.notation.spec_string import write_spec
from shardviz.sharding import Mesh, PartitionSpec

CONTEXT = Context(parse_mesh("X=2,Y=4"), rank=2, sizes={"B": 8, "D": 2048, "F": 8192})
LONG = Context(parse_mesh("data=2,model=4"), rank=2)


def translate(text, to, context):
    return write_sharding(find_notation(to), read_sharding(text, context), context)


TABLE = [
    {
        "shardviz": "XY",
        "jax": "P('X', 'Y')",
        "book": "A[B_X, D_Y]",
        "typeof": "bf16[8@X,2048@Y]",
        "shardlib": "B/X D/Y",
        "einshard": "b d -> b2 d4",
        "gspmd": "{devices=[2,4]<=[8]}",
        "shardy": '<@mesh, [{"X"}, {"Y"}]>',
    },
    {
        "shardviz": "Y_",
        "jax": "P('Y', None)",
        "book": "W[D_Y, F]",
        "typeof": "bf16[2048@Y,8192]",
        "shardlib": "D/Y F",
        "einshard": "d f -> 2 d4 f",
        "gspmd": "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
        "shardy": '<@mesh, [{"Y"}, {}]>',
    },
    {
        "shardviz": "X_",
        "jax": "P('X', None)",
        "book": "Out[B_X, F]",
        "typeof": "bf16[8@X,8192]",
        "shardlib": "B/X F",
        "einshard": "b f -> b2 4 f",
        "gspmd": "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
        "shardy": '<@mesh, [{"X"}, {}]>',
    },
    {
        "shardviz": "X_{U_Y}",
        "jax": "P('X', None, unreduced={'Y'})",
        "book": "Out[B_X, F]{U_Y}",
        "typeof": "bf16[8@X,8192]{U:Y}",
        "gspmd": "{devices=[2,1,4]<=[8] last_tile_dims={unreduced}}",
        "shardy": '<@mesh, [{"X"}, {}], unreduced={"Y"}>',
    },
    {
        "shardviz": "(XY)_",
        "jax": "P(('X', 'Y'), None)",
        "book": "A[I_XY, J]",
        "typeof": "f32[I@(X,Y),J]",
        "shardlib": "I/X/Y J",
        "einshard": "I J -> I8 J",
        "gspmd": "{devices=[8,1]<=[8]}",
        "shardy": '<@mesh, [{"X", "Y"}, {}]>',
    },
]

LONG_ROW = {
    "shardviz": "data model",
    "jax": "P('data', 'model')",
    "book": "A[I_{data}, J_{model}]",
    "typeof": "f32[I@data,J@model]",
    "shardlib": "I/data J/model",
    "einshard": "I J -> I2 J4",
    "gspmd": "{devices=[2,4]<=[8]}",
    "shardy": '<@mesh, [{"data"}, {"model"}]>',
}


@pytest.mark.parametrize(
    ("row", "context"), [*((row, CONTEXT) for row in TABLE), (LONG_ROW, LONG)], ids=lambda row: str(row)[:20]
)
def test_every_notation_to_every_other(row, context):
    specs = {key: read_sharding(text, context).spec for key, text in row.items()}
    assert len(set(specs.values())) == 1, specs
    for source, text in row.items():
        assert detect(text).key == source
        reading = read_sharding(text, context, source)
        written = write_all(reading, context)
        for target, same in row.items():
            again = written[target]
            assert isinstance(again, str)
            assert read_sharding(again, context, target).spec == reading.spec
            if target in ("shardviz", "jax", "gspmd", "shardy", source):
                assert again == same
        assert {key for key, again in written.items() if isinstance(again, str)} == set(row)


def test_translates():
    assert translate("P('X', None)", "book", CONTEXT) == "A[I_X, J]"
    assert translate("A[B_X, D]", "typeof", CONTEXT) == "f32[8@X,2048]"
    assert translate("bf16[8@X,2048@Y]", "shardy", CONTEXT) == '<@mesh, [{"X"}, {"Y"}]>'
    with pytest.raises(QuestionError, match="unknown notation 'mlir'") as caught:
        translate("X_", "mlir", CONTEXT)
    assert caught.value.hint.startswith("the notations are shardviz, jax, book")
    with pytest.raises(QuestionError, match="shardlib notation cannot express partial sums"):
        translate("X_{U_Y}", "shardlib", CONTEXT)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("X_", "shardviz"),
        ("( data )", "shardviz"),
        ("(None, 'X')", "jax"),
        ("(('X', 'Y'), None)", "jax"),
        ('PartitionSpec("X")', "jax"),
        ("[S_X, D_Y]", "book"),
        (r"\mathbf{A}[I_X, J]", "book"),
        ("W<sub>in</sub>[D, F<sub>Y</sub>]", "book"),
        ("A[]", "book"),
        ("f32[8,4]", "typeof"),
        ("float32[S_X, D_Y]", "book"),
        ("~bf16[8@X]", "typeof"),
        ("batch channels/d", "shardlib"),
        ("... -> * ...", "einshard"),
        ("XY,Y_->X_", "shardviz"),
        ("{replicated}", "gspmd"),
        ('#sdy.sharding<@mesh, [{"X"}, {}]>', "shardy"),
        ("", "shardviz"),
        ("\x00", "shardviz"),
    ],
)
def test_detects(text, key):
    assert detect(text).key == key
    assert detect(f"  {text} ").key == key


def random_sharding(rng):
    """A mesh of up to four axes of two or more devices, and a spec on it."""
    pool = ["X", "Y", "Z", "W"] if rng.random() < 0.5 else ["data", "model", "X", "XY", "Y", "d_1", "U"]
    names = rng.sample(pool, rng.randrange(1, 5))
    mesh = Mesh(tuple(names), tuple(rng.choice((2, 3, 4, 8)) for _ in names))
    rank = rng.randrange(5)
    dims = [[] for _ in range(rank)]
    unreduced = []
    for axis in rng.sample(names, rng.randrange(len(names) + 1)):
        home = rng.randrange(rank + 1)
        (dims[home] if home < rank else unreduced).append(axis)
    return mesh, PartitionSpec(tuple(map(tuple, dims)), tuple(unreduced))


def test_reads_what_it_writes():
    rng = random.Random(2)
    written = dict.fromkeys((known.key for known in NOTATIONS), 0)
    for _ in range(400):
        mesh, spec = random_sharding(rng)
        named = rng.random() < 0.5
        dims = tuple(rng.sample(["b", "D", "ff", "seq", "d_model", "K"], spec.rank)) if named else None
        shape = None if named else tuple(rng.randrange(100) for _ in range(spec.rank))
        dtype = rng.choice(("bf16", "s32", "pred", "f8e5m2", "u4", "c64"))
        reading = Reading(spec, dims, shape, dtype, "W_in")
        context = Context(mesh, rank=spec.rank)
        for known in NOTATIONS:
            try:
                text = known.write(reading, context)
            except ShardvizError:
                continue
            again = known.read(text, context)
            assert again.spec == spec, (known.key, text, mesh)
            written[known.key] += 1
            if known.key in ("book", "shardlib") and named:
                assert again.dims == dims
            if known.key == "book":
                assert again.name == "W_in"
            if known.key == "typeof":
                assert again.dtype == dtype
                assert spec.rank == 0 or (again.dims == dims and again.shape == shape)
    assert all(count == 400 for key, count in written.items() if key not in ("shardlib", "einshard")), written
    assert written["shardlib"] > 150
    assert written["einshard"] > 75


def test_finds_a_notation_by_its_key():
    assert [find_notation(known.key) for known in NOTATIONS] == list(NOTATIONS)


XY_CONTEXT = Context(parse_mesh("X=2,Y=4"))


@pytest.mark.parametrize(
    ("text", "arrays"),
    [
        ("XY,Y_->X_", ["A XY", "W Y_", "Out X_"]),
        ("X_,_Y", ["A X_", "W _Y"]),
        ("X_,_Y; ?,Y_", ["A1 X_", "W2 _Y", "W3 Y_"]),
        ("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", ["A XY", "W Y_", "Out X_"]),
        ("In[B_X, D_Y] *_D W[D, F_Y]", ["In XY", "W _Y"]),
        ("A[I_X, J_Y]", ["A XY"]),
        ("P('X', None)", ["None X_"]),
        ("bf16[8@X,2048@Y]", ["None XY"]),
        ("b d -> b2 d4", ["None XY"]),
    ],
)
def test_every_array_of_a_text_is_read(text: str, arrays: list[str]) -> None:
    assert [f"{one.name} {write_spec(one.spec)}" for one in read_arrays(text, XY_CONTEXT)] == arrays


def test_dimensions_of_a_product_are_kept() -> None:
    assert [one.dims for one in read_arrays("A[B_X, D] * W[D, F_Y]", XY_CONTEXT)] == [("B", "D"), ("D", "F")]


def test_an_axis_that_the_mesh_lacks_is_refused() -> None:
    with pytest.raises(NotationError, match="unknown mesh axis 'Q' at character 4 of 'XY,Q_'"):
        read_arrays("XY,Q_", XY_CONTEXT)
