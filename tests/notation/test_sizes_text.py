import pytest

from shardviz.errors import NotationError
from shardviz.notation import parse_sizes


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("b=8,d=2048,f=8192", {"b": 8, "d": 2048, "f": 8192}),
        (" batch = 8  d_model=2048 ", {"batch": 8, "d_model": 2048}),
        ("...=4x8,b=2", {"...0": 4, "...1": 8, "b": 2}),
        ("b=2 ...=4 x 8 c=0", {"b": 2, "...0": 4, "...1": 8, "c": 0}),
        ("...=3", {"...0": 3}),
        ("b=2k,d=4Ki f=1M", {"b": 2000, "d": 4096, "f": 1_000_000}),
        (
            "...=1Kix2K,k=3Mi,M=2G,Gi=1Gi",
            {"...0": 1024, "...1": 2000, "k": 3 * 2**20, "M": 2 * 10**9, "Gi": 2**30},
        ),
        ("", {}),
    ],
)
def test_reads(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b", "expected '=' at the end of 'b'"),
        ("b=", "expected the size of 'b' at the end of 'b='"),
        ("b=-1", "dimension 'b' has the size -1 at character 3 of 'b=-1'"),
        ("b=8,b=9", "dimension 'b' is given twice, again at character 5 of 'b=8,b=9'"),
        ("...=4,...=4", "dimension '...0' is given twice, again at character 7 of '...=4,...=4'"),
        ("b=8;d=9", "expected ',' or a space but found ';' at character 4 of 'b=8;d=9'"),
        ("b=8kg", "expected ',' or a space but found 'kg' at character 4 of 'b=8kg'"),
        ("b=8i", "expected ',' or a space but found 'i' at character 4 of 'b=8i'"),
        ("b=8,", "expected another dimension at the end of 'b=8,'"),
        ("8=b", "expected a dimension but found '8' at character 1 of '8=b'"),
        ("...=4xx", "expected the size of '...' but found 'x' at character 7 of '...=4xx'"),
    ],
)
def test_refuses(text, message):
    with pytest.raises(NotationError) as caught:
        parse_sizes(text)
    assert str(caught.value) == message
    assert caught.value.hint


def test_refuses_huge_sizes():
    with pytest.raises(NotationError, match="of 19 digits is too large at character 3"):
        parse_sizes("b=" + "1" * 19)
    with pytest.raises(NotationError, match="more than 64 dimensions"):
        parse_sizes("...=" + "x".join("2" * 65))
