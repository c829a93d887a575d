import pytest

from shardviz.errors import NotationError
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.reading import Context, Reading
from shardviz.notation.typeof import read_typeof, write_typeof
from shardviz.sharding import PartitionSpec

CONTEXT = Context(parse_mesh("X=2,Y=4,Z=2,data=8"))


def spec(*dims, unreduced=()):
    return PartitionSpec(tuple(map(tuple, dims)), unreduced)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("bf16[8@X,2048@Y]", Reading(spec("X", "Y"), shape=(8, 2048), dtype="bf16")),
        ("bf16[8@X,8192]{U:Y}", Reading(spec("X", "", unreduced=("Y",)), shape=(8, 8192), dtype="bf16")),
        ("f32[8,4]{U:(Z,X)}", Reading(spec("", "", unreduced=("X", "Z")), shape=(8, 4), dtype="f32")),
        ("f32[I@(X,Y),J]", Reading(spec("XY", ""), ("I", "J"), dtype="f32")),
        ("i32[]", Reading(spec(), shape=(), dtype="s32")),
        ("bool[3@data]", Reading(spec(["data"]), shape=(3,), dtype="pred")),
        ("f8_e4m3fn[0@X,5]", Reading(spec("X", ""), shape=(0, 5), dtype="f8e4m3fn")),
    ],
)
def test_reads_and_writes(text, reading):
    assert read_typeof(text, CONTEXT) == reading
    assert read_typeof(write_typeof(reading, CONTEXT), CONTEXT) == reading


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("float32[8@X, 4]", "f32[8@X,4]"),
        ("~float32[8@X,4]", "f32[8@X,4]"),
        ("bfloat16<host>[8@X,4]", "bf16[8@X,4]"),
        ("uint8[8@(X),4]", "u8[8@X,4]"),
    ],
)
def test_reads_other_forms(text, same):
    assert write_typeof(read_typeof(text, CONTEXT), CONTEXT) == same


def test_sizes_fill_in():
    context = Context(CONTEXT.mesh, sizes={"B": 8, "D": 2048})
    reading = Reading(spec("X", "Y", ""), ("B", "D", "F"))
    assert write_typeof(reading, context) == "f32[8@X,2048@Y,F]"


def test_reduced_axes_are_noted():
    reading = read_typeof("f32[8@X]{U:Y, R:(Z,data)}", CONTEXT)
    assert reading.spec == spec("X", unreduced=("Y",))
    assert reading.notes == ("reduced over Z, data: whole on every device, and its gradient is unreduced",)


SHAPE = "write an array type as bf16[8@X,2048@Y] or f32[I@(X,Y),J]{U:Z}"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "q7[8]",
            "unknown dtype 'q7' at character 1 of 'q7[8]'",
            "use for example bf16, f32, f16, f8e4m3fn, s8, s32",
        ),
        ("f32[8@X", "expected ',' or ']' at the end of 'f32[8@X'", SHAPE),
        ("f32[8@(X]", "expected ',' or ')' but found ']' at character 9 of 'f32[8@(X]'", SHAPE),
        ("f32[8]{W:X}", "expected 'U:' or 'R:' but found 'W' at character 8 of 'f32[8]{W:X}'", SHAPE),
        (
            "f32[8]{V:X}",
            "varying axes do not describe the whole array at character 8 of 'f32[8]{V:X}'",
            "give the type of the whole array, outside shard_map",
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        read_typeof(text, CONTEXT)
    assert str(caught.value) == message
    assert caught.value.hint == hint
