import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.reading import Context, Reading
from shardviz.notation.typeof import read_shardlib, write_shardlib
from shardviz.sharding import PartitionSpec

CONTEXT = Context(parse_mesh("X=2,Y=4,d=8"))


@pytest.mark.parametrize(
    ("text", "dims", "spec"),
    [
        ("B/X D/Y", ("B", "D"), (("X",), ("Y",))),
        ("D/Y F", ("D", "F"), (("Y",), ())),
        ("I/X/Y", ("I",), (("X", "Y"),)),
        ("I/Y/X J", ("I", "J"), (("Y", "X"), ())),
        ("batch/d channels", ("batch", "channels"), (("d",), ())),
    ],
)
def test_reads_and_writes(text, dims, spec):
    reading = Reading(PartitionSpec(spec), dims)
    assert read_shardlib(text, CONTEXT) == reading
    assert read_shardlib(f"  {text}\n", CONTEXT) == reading
    assert write_shardlib(reading, CONTEXT) == text


def test_reads_sizes():
    assert read_shardlib("8/X 2048", CONTEXT) == Reading(PartitionSpec((("X",), ())), shape=(8, 2048))


SHAPE = "write each dimension and its axes: B/X D/Y"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "there is no dimension in an empty text", SHAPE),
        ("B/", "expected a mesh axis at the end of 'B/'", SHAPE),
        ("/X", "expected a dimension but found '/' at character 1 of '/X'", SHAPE),
        ("B/X,D/Y", "expected '/' or a space but found ',' at character 4 of 'B/X,D/Y'", SHAPE),
        ("B/W", "unknown mesh axis 'W' at character 3 of 'B/W'", "this mesh has the axes X, Y, d"),
        (
            "B/X D/X",
            "mesh axis 'X' is used twice in one array, again at character 7 of 'B/X D/X'",
            "an axis can shard only one dimension of an array",
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        read_shardlib(text, CONTEXT)
    assert str(caught.value) == message
    assert caught.value.hint == hint


def test_has_no_words_for_some_arrays():
    with pytest.raises(QuestionError, match="shardlib notation cannot express partial sums over Y"):
        write_shardlib(Reading(PartitionSpec((("X",),), ("Y",))), CONTEXT)
    with pytest.raises(QuestionError, match="shardlib writes an array without dimensions as nothing"):
        write_shardlib(Reading(PartitionSpec(())), CONTEXT)
