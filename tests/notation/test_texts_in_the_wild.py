"""Shardings, products and einsums as published documents write them."""

import pytest

from shardviz.notation.book import parse_product
from shardviz.notation.einshard import read_einshard
from shardviz.notation.einsum import parse_chain
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.notations import read_sharding
from shardviz.notation.reading import Context
from shardviz.sharding import Layout, ShardedArray


@pytest.mark.parametrize(
    ("text", "mesh", "rank", "spec"),
    [
        # A Hugging Face model on eight devices
        ("('axis', None)", "axis=8", 2, "P('axis', None)"),
        ("P('axis', None)", "axis=8", 2, "P('axis', None)"),
        ("P()", "axis=8", 1, "P(None)"),
        # Multi chip performance in JAX
        ("PartitionSpec(None,)", "axis=4", 2, "P(None, None)"),
        # einshard's tutorial
        ("y z -> y* z", "axis=8", 2, "P('axis', None)"),
        ("... -> * ...", "axis=8", 2, "P(None, None)"),
        # How to Scale Your Model, with its curly quotes
        ("P('X', 'Y')", "X=4,Y=2", 2, "P('X', 'Y')"),
        ("P(‘x', ‘y')", "x=4,y=2", 2, "P('x', 'y')"),
        ("P(('x', 'y'))", "x=4,y=2", 2, "P(('x', 'y'), None)"),
        ("float32[E<sub>X</sub>, D, F<sub>Y</sub>]", "X=4,Y=2", 3, "P('X', None, 'Y')"),
        ("[S<sub>X</sub>, D<sub>Y</sub>]", "X=4,Y=2", 2, "P('X', 'Y')"),
        ("Out[B<sub>X</sub>, F] { U<sub>Y</sub> }", "X=4,Y=2", 2, "P('X', None, unreduced={'Y'})"),
        # A university course on JAX
        ("P('i')", "i=4", 1, "P('i')"),
        (r"\mathbf{B}[J, K_Y]", "X=2,Y=2", 2, "P(None, 'Y')"),
        (r"C[I, K] \{ U_X \}", "X=2,Y=2", 2, "P(None, None, unreduced={'X'})"),
    ],
)
def test_shardings(text, mesh, rank, spec):
    assert str(read_sharding(text, Context(parse_mesh(mesh), rank)).spec) == spec


@pytest.mark.parametrize(
    ("text", "arrays", "chain"),
    [
        (
            r"Out[B<sub>X</sub>, F] { U<sub>Y</sub> } = In[B<sub>X</sub>, D<sub>Y</sub>] \*<sub>D</sub> "
            "W[D<sub>Y</sub>, F]",
            ["In[B_X, D_Y]", "W[D_Y, F]", "Out[B_X, F]{U_Y}"],
            ["BD,DF->BF"],
        ),
        (
            r"A[B<sub>X</sub>, D<sub>Y</sub>] \* W[D, F<sub>Y</sub>] -> Out[B<sub>X</sub>, F<sub>Y</sub>]",
            ["A[B_X, D_Y]", "W[D, F_Y]", "Out[B_X, F_Y]"],
            ["BD,DF->BF"],
        ),
        (
            r"Tmp[B<sub>X</sub>, F<sub>Y</sub>] \*<sub>F</sub> W2[F<sub>Y</sub>, D] -> "
            "Out[B<sub>X</sub>, D<sub>Y</sub>]",
            ["Tmp[B_X, F_Y]", "W2[F_Y, D]", "Out[B_X, D_Y]"],
            ["BF,FD->BD"],
        ),
        (
            r"In[B<sub>X</sub>, D<sub>Y</sub>] \*<sub>D</sub> W<sub>in</sub>[D, F<sub>Y</sub>] "
            r"\*<sub>F</sub> W<sub>out</sub>[F<sub>Y</sub>, D] -> Out[B<sub>X</sub>, D<sub>Y</sub>]",
            ["In[B_X, D_Y]", "W_in[D, F_Y]", "W_out[F_Y, D]", "Out[B_X, D_Y]"],
            ["BD,DF->BF", "BF,FD->BD"],
        ),
        ("A[I, J_X] @ B[J_X, K]", ["A[I, J_X]", "B[J_X, K]"], ["IJ,JK->IK"]),
        (
            r"A[I, J_X] \cdot_\text{LOCAL} B[J_X, K] \rightarrow C[I, K] \{ U_X \}",
            ["A[I, J_X]", "B[J_X, K]", "C[I, K]{U_X}"],
            ["IJ,JK->IK"],
        ),
    ],
)
def test_products(text, arrays, chain):
    product = parse_product(text, ("X", "Y"))
    found = [*product.operands, *([product.result] if product.result else [])]
    assert [str(array) for array in found] == arrays
    assert [str(einsum) for einsum in product.chain] == chain


def test_einsums():
    assert [str(part) for part in parse_chain("bx, xy -> by; by, yz -> bz")] == ["bx,xy->by", "by,yz->bz"]
    assert [str(part) for part in parse_chain("bd,df->bf; bf,fd->bd")] == ["bd,df->bf", "bf,fd->bd"]


@pytest.mark.parametrize(
    ("text", "shape", "mesh", "shard"),
    [
        ("... -> * ...", (2,), "a=1", (2,)),
        ("a -> 16 a", (2,), "a=16", (2,)),
        ("a b -> * a* b*", (4, 4), "a=2,b=2,c=2", (2, 2)),
        ("a b c -> a2* b2 c*", (4, 16, 8), "a=4,b=2,c=2", (1, 8, 4)),
        ("a b -> 2 a2 b4", (4, 8), "a=2,b=2,c=4", (2, 2)),
        ("a ... d -> 4 a2 ... d2", (4, 8, 20, 10), "a=4,b=2,c=2", (2, 8, 20, 5)),
    ],
)
def test_shard_shapes_of_einshards_own_tests(text, shape, mesh, shard):
    mesh = parse_mesh(mesh)
    reading = read_einshard(text, Context(mesh, rank=len(shape)))
    assert ShardedArray("A", reading.dim_names, shape, "f32", reading.spec).shard_shape(mesh) == shard


@pytest.mark.parametrize(
    ("text", "mesh", "pictures"),
    [
        (
            "a b -> * a2 b",
            "r=8,a=2",
            {(0, 0): [0, 2, 4, 6, 8, 10, 12, 14], (1, 0): [1, 3, 5, 7, 9, 11, 13, 15]},
        ),
        (
            "a b -> 2 a2* b*",
            "r=2,a=4,b=2",
            {(i, j): [2 * i + j, 2 * i + j + 8] for i in range(4) for j in range(2)},
        ),
    ],
)
def test_pictures_of_einshards_documents(text, mesh, pictures):
    mesh = parse_mesh(mesh)
    reading = read_einshard(text, Context(mesh))
    layout = Layout(ShardedArray("A", reading.dim_names, (4, 8), "f32", reading.spec), mesh)
    holders = {}
    for position in range(mesh.size):
        holders.setdefault(layout.block(position), []).append(mesh.device_id(position))
    assert holders == pictures
