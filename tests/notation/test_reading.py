"""Parts of axes, open dimensions and manual axes: read, written, and placed as JAX places them."""

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

from shardviz.errors import QuestionError
from shardviz.notation.mesh import mesh_in_text, parse_mesh, spec_alone
from shardviz.notation.notations import find_notation, read_sharding, write_all, write_sharding
from shardviz.notation.reading import Context
from shardviz.sharding import Mesh

MESH = parse_mesh("X=2,Y=8")


def translate(text, to, context):
    return write_sharding(find_notation(to), read_sharding(text, context), context)


@pytest.mark.parametrize(
    ("text", "axes", "spec"),
    [
        ('<@mesh, [{"Y":(1)2}, {"X", "Y":(2)4}]>', {"X": 2, "a": 2, "b": 4}, P("a", ("X", "b"))),
        ('<@mesh, [{"Y":(2)2, "X"}, {"Y":(1)2}]>', {"X": 2, "a": 2, "b": 2, "c": 2}, P(("b", "X"), "a")),
        ('<@mesh, [{"X"}, {"Y":(4)2}]>', {"X": 2, "a": 4, "b": 2}, P("X", "b")),
        ('<@mesh, [{"Y":(2)4}, {}]>', {"X": 2, "a": 2, "b": 4}, P("b", None)),
    ],
)
def test_parts_are_read_and_written_and_placed_as_jax_places_axes_of_their_sizes(text, axes, spec):
    context = Context(MESH)
    assert translate(text, "shardy", context) == text
    for notation in ("shardviz", "book", "gspmd"):
        assert translate(translate(text, notation, context), "shardy", context) == text
    mesh = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    assert translate(text, "gspmd", context) == str(NamedSharding(mesh, spec)._to_xla_hlo_sharding(2))
    with pytest.raises(QuestionError, match="names whole axes, and Y:"):
        translate(text, "jax", context)
    assert isinstance(write_all(read_sharding(text, context), context)["typeof"], QuestionError)


def test_parts_that_make_a_whole_axis_are_it():
    text = '<@mesh, [{"Y":(1)2, "Y":(2)4}, {"X"}], unreduced={}>'
    assert translate(text, "jax", Context(MESH)) == "P('Y', 'X')"
    assert translate(text, "shardy", Context(MESH)) == '<@mesh, [{"Y"}, {"X"}]>'
    named = "{mesh['p'=2,'q'=8], [{'q':(1)2}, {'p'}]}"
    mesh = parse_mesh(mesh_in_text(named))
    assert translate(named, "shardy", Context(mesh)) == '<@mesh, [{"q":(1)2}, {"p"}]>'


@pytest.mark.parametrize("part", ["(1)3", "(0)2", "(2)8", "(3)2", "(1)99999999999"])
def test_refuses_parts_that_an_axis_cannot_have(part):
    text = f'<@mesh, [{{"Y":{part}}}]>'
    with pytest.raises(QuestionError, match=r"has no part|no axis has the part"):
        read_sharding(text, Context(MESH))


def test_open_dimensions_are_written_where_a_notation_has_them():
    text = '<@mesh, [{"X", ?}, {?}, {}]>'
    assert translate(text, "shardy", Context(MESH)) == text
    assert translate(text, "jax", Context(MESH)) == "P('X', P.UNCONSTRAINED, None)"
    assert translate("P('X', P.UNCONSTRAINED)", "shardy", Context(MESH)) == '<@mesh, [{"X"}, {?}]>'


@pytest.mark.parametrize("manual", ["X", "Y", "Z"])
@pytest.mark.parametrize("spec", [P(None, None), P("X", None), P(("X", "Z"), "Y"), P("Y", "Z")])
def test_manual_axes_are_written_as_jax_does(manual, spec):
    if manual in jax.tree.leaves(tuple(spec)):
        return
    names = ("X", "Y", "Z")
    types = tuple(AxisType.Manual if name == manual else AxisType.Auto for name in names)
    text = str(NamedSharding(AbstractMesh((2, 4, 2), names, axis_types=types), spec)._to_xla_hlo_sharding(2))
    context = Context(parse_mesh("X=2,Y=4,Z=2"))
    reading = read_sharding(text, context)
    assert reading.manual == (manual,)
    assert f"manual over {manual}" in reading.notes[0]
    assert find_notation("gspmd").write(reading, context) == text
    dims = ", ".join(
        f"{{{', '.join(map(repr, dim if isinstance(dim, tuple) else (dim,) if dim else ()))}}}"
        for dim in spec
    )
    named = f"{{mesh['X'=2,'Y'=4,'Z'=2], [{dims}], manual={{'{manual}'}}}}"
    again = read_sharding(named, context)
    assert (again.spec, again.manual, again.notes) == (reading.spec, reading.manual, reading.notes)


def test_an_order_of_devices_is_kept():
    text = '#sdy.sharding<mesh<["a"=2, "b"=2], device_ids=[ORDER]>, [{"a"}]>'
    assert read_sharding(text.replace("ORDER", "0, 1, 2, 3"), Context()).spec.devices == ()
    context = Context(Mesh(("a", "b"), (2, 2)))
    reading = read_sharding(text.replace("ORDER", "3, 2, 1, 0"), context)
    assert reading.spec.devices == (3, 2, 1, 0)
    assert translate("a@(3 2 1 0)", "shardy", context) in text.replace("ORDER", "3, 2, 1, 0")


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        ("NamedSharding(mesh=Mesh('a': 2, 'b': 4, axis_types=(Auto, Auto)), spec=P('a', 'b'))", "a=2,b=4"),
        ("NamedSharding(mesh=AbstractMesh('a': 8), spec=P(('a',), None))", "a=8"),
        ('#sdy.sharding<mesh<["a"=2, "b"=4], device_ids=[0, 1]>, [{"a"}]>', "a=2,b=4"),
        ("{mesh['a'=2,'b'=4], [{'a'}, {}]}", "a=2,b=4"),
        ("{@mesh<a=2,b=4>, [{a}, {}]}", "a=2,b=4"),
        ('<@mesh, [{"X"}]>', None),
        ("mesh<[" + '"a"=1 ' * 5000, None),
    ],
)
def test_a_text_may_name_its_mesh(text, mesh):
    found = mesh_in_text(text)
    assert (None if found is None else str(parse_mesh(found))) == mesh
    if "NamedSharding" in text:
        assert spec_alone(text).startswith("P(")


def test_what_is_said_of_parts_names_them_as_the_text_does():
    twice = '<@mesh, [{"Y":(1)2}, {"Y":(1)4}]>'
    with pytest.raises(QuestionError, match="mesh axis 'Y' is used twice"):
        read_sharding(twice, Context(MESH))
    kept = '<@mesh, [{"Y":(1)2}], replicated={"Y":(2)4}>'
    assert read_sharding(kept, Context(MESH)).notes[0].endswith("split any dimension over Y:(2)4")


@pytest.mark.parametrize(
    ("text", "manual", "written"),
    [
        ("{manual}", ("X", "Y"), "{manual}"),
        ("{mesh['a'=2,'b'=8], manual}", ("X", "Y"), "{manual}"),
        ("{mesh['a'=2,'b'=8], [{}, {'a'}], manual={'b'}}", ("Y",), None),
    ],
)
def test_manual_axes_are_read_in_every_form(text, manual, written):
    context = Context(MESH, rank=2)
    reading = read_sharding(text, context)
    assert reading.manual == manual
    expected = AbstractMesh(
        (2, 8),
        ("X", "Y"),
        axis_types=tuple(AxisType.Manual if name in manual else AxisType.Auto for name in "XY"),
    )
    spec = P(*(dim or None for dim in reading.spec.dims))
    said = find_notation("gspmd").write(reading, context)
    assert said == str(NamedSharding(expected, spec)._to_xla_hlo_sharding(2))
    assert written is None or said == written
