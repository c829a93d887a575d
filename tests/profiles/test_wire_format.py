"""Fields of a protocol buffer, against the bytes that its documentation and jaxlib's own library give."""

from __future__ import annotations

import pytest

from shardviz.profiles.wire_format import fields, signed, text, varint


@pytest.mark.parametrize(
    ("data", "number"),
    [(b"\x00", 0), (b"\x7f", 127), (b"\x96\x01", 150), (b"\xff" * 9 + b"\x01", 2**64 - 1)],
)
def test_numbers_as_the_documentation_has_them(data: bytes, number: int) -> None:
    assert varint(data, 0) == (number, len(data))


def test_negative_numbers_are_the_large_ones() -> None:
    assert [signed(each) for each in (0, 2**63 - 1, 2**63, 2**64 - 1)] == [0, 2**63 - 1, -(2**63), -1]


def test_the_fields_of_a_message() -> None:
    message = b"\x08\x96\x01\x12\x07testing\x1d\x00\x00\x80\x3f\x21" + b"\0" * 8
    found = [*fields(message, 0, len(message))]
    assert [(number, stop - start) for number, start, stop in found] == [(1, 2), (2, 7), (3, 4), (4, 8)]
    assert text(message, *found[1][1:]) == "testing"


@pytest.mark.parametrize(
    "data",
    [b"\x08", b"\x08\x96", b"\x12\x07test", b"\x0b\x00", b"\x00\x01", b"\x08" + b"\xff" * 11, b"\x1d\x00"],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"field|message|number"):
        [*fields(data, 0, len(data))]
