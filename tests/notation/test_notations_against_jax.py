"""What we write, JAX writes; what JAX and XLA write, we read."""

import itertools
import random
from inspect import signature

import jax
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

from shardviz.errors import NotationError
from shardviz.notation.gspmd import read_gspmd, write_gspmd
from shardviz.notation.jax_spec import read_jax, write_jax
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.reading import Context, Reading
from shardviz.notation.shardy import read_shardy, write_shardy
from shardviz.notation.spec_string import parse_specs
from shardviz.notation.typeof import read_typeof, write_typeof
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import joined_parts

ELEVEN = ("__", "X_", "_X", "Y_", "_Y", "XY", "YX", "(XY)_", "_(XY)", "(YX)_", "_(YX)")
DTYPES = {
    "bf16": "bfloat16",
    "f32": "float32",
    "s32": "int32",
    "u8": "uint8",
    "pred": "bool",
    "f8e5m2": "float8_e5m2",
}


def jax_spec(spec):
    return P(*(dim or None for dim in spec.dims), unreduced=set(spec.unreduced))


def jax_mesh(mesh):
    explicit = (AxisType.Explicit,) * len(mesh.axis_names)
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=explicit)


def named_sharding(mesh, spec):
    return NamedSharding(jax_mesh(mesh), jax_spec(spec))


def shardy_text(sharding, rank):
    with mlir.make_ir_context(), ir.Location.unknown():
        array = sharding._to_sdy_sharding(rank)
        # Releases before 0.10 know no manual axes here.
        return str(array.build({}) if signature(array.build).parameters else array.build())


def random_cases(seed, count, sizes=(1, 2, 3, 4)):
    rng = random.Random(seed)
    for _ in range(count):
        names = rng.sample(["X", "Y", "Z", "data", "model"], rng.randrange(1, 5))
        mesh = Mesh(tuple(names), tuple(rng.choice(sizes) for _ in names))
        rank = rng.randrange(4)
        dims = [[] for _ in range(rank + 1)]
        for axis in rng.sample(names, rng.randrange(len(names) + 1)):
            rng.choice(dims).append(axis)
        yield mesh, PartitionSpec(tuple(map(tuple, dims[:-1])), tuple(dims[-1]))


def without_single_devices(spec, mesh):
    def large(axes):
        return tuple(axis for axis in axes if mesh.axis_size(axis) > 1)

    return PartitionSpec(tuple(map(large, spec.dims)), large(spec.unreduced))


@pytest.mark.parametrize("text", ELEVEN)
def test_gspmd_of_every_spec_on_2x4(text):
    mesh = parse_mesh("X=2,Y=4")
    spec = parse_specs(text, mesh.shape)[0].operands[0]
    expected = str(named_sharding(mesh, spec)._to_xla_hlo_sharding(2))
    assert write_gspmd(Reading(spec), Context(mesh)) == expected
    assert read_gspmd(expected, Context(mesh, rank=2)).spec == spec


@pytest.mark.since_jax("0.10", "its text of partial sums has the tiles of a device each")
def test_gspmd_of_random_specs():
    for mesh, spec in random_cases(3, 150):
        expected = str(named_sharding(mesh, spec)._to_xla_hlo_sharding(spec.rank))
        context = Context(mesh, rank=spec.rank)
        assert write_gspmd(Reading(spec), context) == expected
        assert read_gspmd(expected, context).spec == without_single_devices(spec, mesh)


def layout_blocks(mesh, spec):
    """Position → (blocks, whether partial sums are told apart by their number)."""
    array = ShardedArray("A", tuple("abcd"[: spec.rank]), (48,) * spec.rank, "f32", spec)
    layout = Layout(array, mesh)
    found = {
        layout.mesh.device_id(position): (layout.block(position), layout.partial(position))
        for position in range(mesh.size)
    }
    return [found[device] for device in range(mesh.size)]


def xla_blocks(sharding, mesh, rank):
    """The same, by the devices that XLA lists for a sharding."""
    if sharding.is_replicated():
        return [((0,) * rank, 0)] * mesh.size
    parts = sharding.tile_assignment_dimensions()
    blocks = [None] * mesh.size
    places = itertools.product(*map(range, parts))
    for place, device in zip(places, sharding.tile_assignment_devices(), strict=True):
        blocks[device] = (tuple(place[:rank]), 0)
    return blocks


NAMED = [
    "{mesh['a'=2,'b'=2], [{'b'}, {}]}",
    "{mesh['a'=2,'b'=2], [{'b', 'a'}, {}]}",
    "{mesh['a'=4], [{'a':(1)2}, {'a':(2)2}]}",
    "{mesh['a'=4], [{'a':(2)2}, {'a':(1)2}]}",
    "{mesh['a'=4], [{}, {'a':(2)2, 'a':(1)2}]}",
    "{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}, {}]}",
    "{mesh['a'=2,'b'=2], device_ids=(0,2,1,3), [{'a'}, {'b'}]}",
    "{mesh['a'=2,'b'=2], [{}, {'a'}], replicated={'b'}}",
]


@pytest.mark.since_jax("0.10", "XLA's parser knew no meshes")
@pytest.mark.parametrize("text", NAMED)
def test_named_shardings_are_read_as_xla_reads_them(text):
    mesh = parse_mesh("X=2,Y=2")
    sharding = xla_client.HloSharding.from_string(text).v3_to_v2_sharding()
    spec = read_gspmd(text, Context(mesh)).spec
    assert layout_blocks(mesh, spec) == xla_blocks(sharding, mesh, 2)


def random_tiles(rng, devices, rank):
    """A tiled sharding in one of its forms, over so many devices."""
    factors = [2, 2, 2] if devices == 8 else [2, 2, 3]
    parts = [1] * (rank + 1)
    for factor in factors:
        parts[rng.randrange(rank + 1)] *= factor
    suffix = " last_tile_dim_replicate"
    if parts[-1] == 1 and rng.random() < 0.5:
        parts.pop()
        suffix = ""
    form = rng.randrange(3)
    if form == 0:
        listed = np.arange(devices)
        if rng.random() < 0.7:
            shape = rng.sample(factors, len(factors))
            listed = listed.reshape(shape).transpose(rng.sample(range(3), 3)).flatten()
        if rng.random() < 0.2:
            rng.shuffle(listed)
        return f"{{devices=[{','.join(map(str, parts))}]{','.join(map(str, listed))}{suffix}}}"
    shape = rng.sample(factors, len(factors))
    perm = rng.sample(range(len(shape)), len(shape))
    iota = f"[{','.join(map(str, shape))}]T({','.join(map(str, perm))})"
    return f"{{devices=[{','.join(map(str, parts))}]<={iota}{suffix}}}"


def every_spec(mesh, rank):
    """Every spec over the axes of the mesh, those of size 4 and 8 in parts of 2, neighbours joined."""
    parts = [
        [f"{axis}:({2**place})2" for place in range(size.bit_length() - 1)] if size in (4, 8) else [axis]
        for axis, size in mesh.shape.items()
    ]
    for order in itertools.permutations(itertools.chain(*parts)):
        for homes in itertools.product(range(rank + 1), repeat=len(order)):
            yield PartitionSpec(
                tuple(
                    joined_parts(
                        (axis for axis, home in zip(order, homes, strict=True) if home == dim), mesh.shape
                    )
                    for dim in range(rank)
                )
            )


@pytest.mark.parametrize("mesh_text", ["X=2,Y=4", "X=2,Y=2,Z=2", "X=8", "X=3,Y=4", "X=2,Y=3,Z=2"])
def test_tiles_are_read_as_xla_reads_them(mesh_text):
    """Each text gives the spec whose layout XLA's devices follow; where there is none in the
    mesh's own order of the devices, one in another."""
    mesh = parse_mesh(mesh_text)
    rng = random.Random(mesh_text)
    known = {repr(layout_blocks(mesh, spec)): spec for spec in every_spec(mesh, 2)}
    found = ordered = 0
    for _ in range(300):
        text = random_tiles(rng, mesh.size, 2)
        blocks = xla_blocks(xla_client.HloSharding.from_string(text), mesh, 2)
        try:
            spec = read_gspmd(text, Context(mesh)).spec
        except NotationError:
            spec = None
        follows = known.get(repr(blocks))
        if spec is not None and spec.devices:
            assert follows is None, text
            assert layout_blocks(mesh, spec) == blocks, text
            ordered += 1
        else:
            assert spec == follows, text
            found += spec is not None
    assert 50 < found < 300
    assert ordered > 5


def test_an_array_on_one_device_is_as_xla_has_it():
    sharding = xla_client.HloSharding.from_string("{maximal device=3}")
    mesh = parse_mesh("X=2,Y=4")
    spec = read_gspmd("{maximal device=3}", Context(mesh, rank=2)).spec
    assert sharding.tile_assignment_devices() == [3]
    assert spec == PartitionSpec(((), ()), devices=(3,))
    assert write_gspmd(Reading(spec), Context(mesh)) == str(sharding)


def test_shardy_of_random_specs():
    for mesh, spec in random_cases(4, 60):
        sharding = named_sharding(mesh, spec)
        expected = shardy_text(sharding, spec.rank)
        assert read_shardy(expected, Context(mesh, rank=spec.rank)).spec == PartitionSpec(
            spec.dims, shardy_unreduced(expected)
        )
        written = write_shardy(Reading(PartitionSpec(spec.dims, shardy_unreduced(expected))), Context(mesh))
        inline = ", ".join(f'"{name}"={size}' for name, size in mesh.shape.items())
        assert expected == f"#sdy.sharding{written.replace('@mesh', f'mesh<[{inline}]>')}"


def shardy_unreduced(text):
    """The unreduced axes in Shardy's text."""
    _, _, axes = text.partition("unreduced={")
    return tuple(axis.strip(' ">}') for axis in axes.split(",")) if axes else ()


@pytest.mark.since_jax("0.10", "its partial sums come in the order of a set")
def test_typeof_of_random_arrays():
    rng = random.Random(5)
    for mesh, spec in random_cases(6, 100):
        shape = tuple(mesh.group_size(dim) * rng.randrange(4) for dim in spec.dims)
        dtype, name = rng.choice(list(DTYPES.items()))
        aval = jax.core.ShapedArray(shape, name, sharding=named_sharding(mesh, spec))
        reading = Reading(spec, shape=shape, dtype=dtype)
        assert write_typeof(reading, Context(mesh)) == aval.str_short(short_dtypes=True)
        assert read_typeof(str(aval), Context(mesh)) == reading


def test_typeof_of_an_array():
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Explicit,) * 2)
    array = jax.device_put(np.zeros((8, 16), np.float32), NamedSharding(mesh, P("X", "Y")))
    reading = read_typeof(str(jax.typeof(array)), Context(parse_mesh("X=2,Y=4")))
    assert reading == Reading(PartitionSpec((("X",), ("Y",))), shape=(8, 16), dtype="f32")


def test_specs_read_back_as_jax_prints_them():
    for mesh, spec in random_cases(7, 100):
        context = Context(mesh)
        assert read_jax(str(jax_spec(spec)), context).spec == spec
        assert read_jax(repr(jax_spec(spec)), context).spec == spec
        assert eval(write_jax(Reading(spec), context), {"P": P}) == jax_spec(spec)


def test_meshes_read_back_as_jax_prints_them():
    for mesh, _ in random_cases(8, 40):
        assert parse_mesh(str(jax_mesh(mesh))) == mesh
    concrete = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Explicit,) * 2)
    assert parse_mesh(str(concrete)) == parse_mesh("X=2,Y=4")
