import random
import re

import numpy as np
import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.notation.einshard import read_einshard, write_einshard
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.reading import Context, Reading
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray

XY = parse_mesh("X=2,Y=4")
AXIS8 = parse_mesh("axis=8")
POD = parse_mesh("A=4,B=4,C=4")


@pytest.mark.parametrize(
    ("text", "mesh", "rank", "dims"),
    [
        ("b d -> b2 d4", XY, None, (("X",), ("Y",))),
        ("b f -> b2 4 f", XY, None, (("X",), ())),
        ("a b -> a8 b", XY, None, (("X", "Y"), ())),
        ("a b->a2 b4", XY, None, (("X",), ("Y",))),
        ("x y -> x y*", AXIS8, None, ((), ("axis",))),
        ("... -> * ...", AXIS8, 2, ((), ())),
        ("... -> ... *", AXIS8, 0, ()),
        ("a ... -> a* ...", AXIS8, 3, (("axis",), (), ())),
        ("... a -> ... 2 a*", XY, 3, ((), (), ("Y",))),
        ("a b -> 4 a b*", parse_mesh("X=4,Y=2"), None, ((), ("Y",))),
        ("a -> * a*", parse_mesh("X=3,Y=3"), None, (("Y",),)),
        ("a b -> a2 a4 b", XY, None, (("Y",), ())),
        ("α -> α2 4", XY, None, (("X",),)),
        ("a -> a1 8", XY, None, ((),)),
    ],
)
def test_reads(text, mesh, rank, dims):
    assert read_einshard(text, Context(mesh, rank)).spec == PartitionSpec(dims)


def test_keeps_names_and_finds_names_for_an_ellipsis():
    assert read_einshard("I ... -> ... I2 4", Context(XY, rank=3)).dims == ("I", "J", "K")


@pytest.mark.parametrize(
    ("spec", "dims", "text"),
    [
        ((("X",), ("Y",)), ("b", "d"), "b d -> b2 d4"),
        ((("Y",), ()), ("d", "f"), "d f -> 2 d4 f"),
        (((), ("Y",)), ("d", "f"), "d f -> 2 d f4"),
        ((("X",), ()), ("b", "f"), "b f -> b2 4 f"),
        ((("Y",), ("X",)), ("b", "d"), "b d -> d2 b4"),
        ((("X", "Y"), ()), ("b", "d"), "b d -> b8 d"),
        (((), ()), ("b", "d"), "b d -> 8 b d"),
        ((("X",),), ("d1",), "I -> I2 4"),
        ((("X",),), None, "I -> I2 4"),
    ],
)
def test_writes(spec, dims, text):
    assert write_einshard(Reading(PartitionSpec(spec), dims), Context(XY)) == text


def placed_blocks(text, devices):
    """Device id → block of each dimension, by the array that einshard would build its mesh from."""
    left, right = (side.split() for side in text.split("->"))
    elements = [re.fullmatch(r"([^\W\d]*)(\d*)", element).groups() for element in right]
    sizes = [int(number or 1) for _, number in elements]
    coords = np.stack(np.unravel_index(np.arange(devices), sizes), axis=1)
    last = {name: i for i, (name, _) in enumerate(elements)}
    return coords[:, [last[name] for name in left]].tolist()


def random_case(rng):
    names = rng.sample(["X", "Y", "Z", "data"], rng.randrange(1, 5))
    sizes = [rng.choice((1, 2, 3, 4)) for _ in names]
    order = None
    if rng.random() < 0.3:
        order = rng.sample(range(int(np.prod(sizes))), int(np.prod(sizes)))
    elif rng.random() < 0.3:
        axes = rng.sample(range(len(sizes)), len(sizes))
        order = np.arange(np.prod(sizes)).reshape([sizes[i] for i in axes])
        order = order.transpose(np.argsort(axes)).flatten().tolist()
    mesh = Mesh(tuple(names), tuple(sizes), None if order is None else tuple(order))
    dims = [[] for _ in range(rng.randrange(1, 4))]
    for axis in rng.sample(names, rng.randrange(len(names) + 1)):
        rng.choice(dims).append(axis)
    return mesh, PartitionSpec(tuple(map(tuple, dims)))


def test_places_blocks_as_the_layout_does():
    rng = random.Random(1)
    said = refused = 0
    for _ in range(200):
        mesh, spec = random_case(rng)
        context = Context(mesh)
        array = ShardedArray("A", tuple("abc"[: spec.rank]), (64,) * spec.rank, "f32", spec)
        layout = Layout(array, mesh)
        blocks = {mesh.device_id(position): list(layout.block(position)) for position in range(mesh.size)}
        try:
            text = write_einshard(Reading(spec), context)
        except QuestionError:
            refused += 1
            continue
        said += 1
        assert placed_blocks(text, mesh.size) == [blocks[i] for i in range(mesh.size)], (text, mesh)
        large = tuple(tuple(axis for axis in dim if mesh.axis_size(axis) > 1) for dim in spec.dims)
        assert read_einshard(text, context).spec == PartitionSpec(large)
    assert said > 60
    assert refused > 30


SHAPE = "write an einshard expression as b d -> b2 d4"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "expected a name, '...' or '->' in an empty text", SHAPE),
        ("-> a", "expected a name or '...' but found '-' at character 1 of '-> a'", SHAPE),
        ("a2 -> a2", "expected a space but found '2' at character 2 of 'a2 -> a2'", SHAPE),
        (
            "a -> a3",
            "the right side needs 3 devices, not 8, at character 5 of 'a -> a3'",
            "the product of the right side is the number of devices",
        ),
        (
            "a b -> a* b*",
            "the right side needs 1·n^2 devices, not 8, at character 7 of 'a b -> a* b*'",
            "the product of the right side is the number of devices",
        ),
        ("a b -> a8", "'b' is missing on the right at character 7 of 'a b -> a8'", "name it on both sides"),
        (
            "a a -> a8",
            "'a' stands twice on the left, again at character 3 of 'a a -> a8'",
            "give every dimension its own name",
        ),
        (
            "a ... -> a8",
            "'...' stands on one side only, or twice at character 1 of 'a ... -> a8'",
            "write it once on each side",
        ),
        (
            "a ... -> a8 ...",
            "the number of dimensions is missing at character 1 of 'a ... -> a8 ...'",
            "give it, as in --rank 2",
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        read_einshard(text, Context(XY))
    assert str(caught.value) == message
    assert caught.value.hint == hint


def test_shares_are_integers():
    """A floating root of 64 with three stars is 3.9999999999999996."""
    assert read_einshard("a b c -> a* b* c*", Context(POD)).spec.axes == ("A", "B", "C")
    huge = Context(Mesh(("A", "B", "C"), (2**13, 2**13, 2**13)))
    assert read_einshard("a b c -> a* b* c*", huge).spec.axes == ("A", "B", "C")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (PartitionSpec((("X",),), ("Y",)), "einshard notation cannot express partial sums over Y"),
        (PartitionSpec(()), "einshard cannot express an array without dimensions"),
        (
            PartitionSpec((("Y", "X"),)),
            "einshard cannot place P(('Y', 'X')) on the mesh X=2,Y=4: it splits a dimension by one axis of "
            "its own, and the devices along these axes are not one run in the order of their numbers",
        ),
    ],
)
def test_has_no_words_for_some_arrays(spec, message):
    with pytest.raises(QuestionError) as caught:
        write_einshard(Reading(spec), Context(XY))
    assert str(caught.value) == message
    assert caught.value.hint


def test_needs_a_mesh():
    with pytest.raises(QuestionError, match="an einshard expression numbers devices, and no mesh is given"):
        read_einshard("a -> a8", Context())


def test_blocks_follow_parts_of_axes():
    reading = read_einshard("a b -> a4 b2", Context(XY))
    assert reading.spec == PartitionSpec((("X", "Y:(1)2"), ("Y:(2)2",)))
    assert write_einshard(reading, Context(XY)) == "a b -> a4 b2"
    with pytest.raises(NotationError, match="these blocks do not follow axes of the mesh X=3,Y=4") as caught:
        read_einshard("a b -> a2 b6", Context(parse_mesh("X=3,Y=4")))
    assert caught.value.hint.startswith("give a mesh whose axes")
