"""A problem, or where one stands in a lesson, as one short string that fits a chat message.

``shardviz1-`` and, in base64's alphabet for URLs, a CRC-32 before the deflated JSON of what differs from the
default draft: ``{"draft": {"mesh": "X=8"}, "screen": "plan", "lesson": "fsdp", "stage": 3}``. Nothing of it
is run. The default draft and the deflater's words are parts of the format: others need another version.
"""

from __future__ import annotations

import binascii
import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardviz.drafts.document import from_document, to_document
from shardviz.drafts.form import CollectiveFields, ProblemForm
from shardviz.errors import QuestionError, quote

VERSION = 1
SCREENS = ("layout", "plan", "step", "compiler")
MAX_STRING = 64_000
"""Characters of a string that are read."""
MAX_JSON = 200_000
"""Bytes of the JSON behind it."""
MAX_STAGE = 99

_WORDS = (
    b'"axis_types":"explicit","device_order":"X,Y","parameters":{"perm":"(0,1),(1,0)","pieces":"2"'
    b'"algorithm":"bidirectional_ring"recursive_doubling"shape":"1024x1024","spec":"X_","dtype":"f32"'
    b'"collective":{"op":"all_to_all"ppermute"psum_scatter"all_gather"psum","axis":"X","data":"1,2,3,4"'
    b'"targets":"shardy,cpu,v5e:2x4,h100:8","axis_types":"explicit"},"screen":"step"layout"compiler"plan",'
    b'"lesson":"matmul-collective-","stage":1},"lesson":"all-gather","stage":2,"screen":"compiler","lesson":"'
    b'"einsum":"A[I, J] * B[J, K] -> C[I, K]","A[B, D] * W[D, F] -> Out[B, F]","specs":["XY","Y_","X_","_Y",'
    b'"__"],"sizes":"I=8,J=8,K=8","sizes":"B=8,D=2048,F=8192","dtype":"f32"},{"draft":{"mesh":"X=2,Y=4",'
)
"""The words of most strings, for deflate to point at."""
_START = re.compile(r"shardviz(\d{1,6})-")
_LESSON = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_AROUND = "\"'`<>()[]{}*.,;:!?"
"""Characters that a sentence puts around a string; base64 has none of them."""
_AGAIN = "copy the whole string, from shardviz1- to its end"


@dataclass(frozen=True)
class Shared:
    """A draft, the screen that shows it, and the lesson it belongs to: its name and the number of its stage,
    from 0; an empty name for a problem of its own."""

    draft: ProblemForm
    screen: str = "layout"
    lesson: str = ""
    stage: int = 0


def to_string(shared: Shared) -> str:
    """The string; letters, digits, ``-`` and ``_`` alone. Raises `QuestionError` for what none can hold."""
    document = to_shared_document(shared)
    from_shared_document(document)
    usual = to_shared_document(Shared(ProblemForm()))
    short = _different(document, usual)
    if "draft" in short:
        short["draft"] = _different(document["draft"], usual["draft"])
        if (collective := short["draft"].get("collective")) is not None:
            short["draft"]["collective"] = _different(collective, _usual_collective())
    text = json.dumps(short, ensure_ascii=False, separators=(",", ":")).encode()
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS, zdict=_WORDS)
    packed = deflate.compress(text) + deflate.flush()
    checked = _checksum(packed) + packed
    string = f"shardviz{VERSION}-{urlsafe_b64encode(checked).rstrip(b'=').decode()}"
    if len(text) > MAX_JSON or len(string) > MAX_STRING:
        raise QuestionError(
            "this problem is too long for a string", f"one has at most {MAX_STRING:,} characters"
        )
    return string


def from_string(text: str) -> Shared:
    """Read a string; white space, line breaks, quotes and backticks from a chat do not matter.

    Raises `QuestionError` for a string that is too long, cut, altered, of another version, or says what no
    shardviz has written.
    """
    if len(text) > 2 * MAX_STRING:
        raise QuestionError(
            f"a shared string has at most {MAX_STRING:,} characters; this has {len(text):,}", _AGAIN
        )
    # Chats break long words with characters that nobody sees, and a selection takes a dialog's frame along.
    string = "".join(text.encode("ascii", "ignore").decode().split()).strip(_AROUND)
    start = _START.match(string)
    if start is None:
        raise QuestionError(f"{quote(string, 30)} is not a shared string", "y in the application makes one")
    if int(start[1]) != VERSION:
        raise QuestionError(
            f"the string has version {int(start[1])}, and this shardviz reads version {VERSION}",
            "a newer shardviz may have made it: install that",
        )
    packed = string[start.end() :]
    try:
        checked = urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
    except (binascii.Error, ValueError):
        raise _damaged() from None
    # The decoder passes over what is not of its alphabet, and over bits that it has no byte for.
    if urlsafe_b64encode(checked).rstrip(b"=").decode() != packed or checked[:4] != _checksum(checked[4:]):
        raise _damaged()
    return from_shared_document(_whole(_json_of(checked[4:])))


def to_shared_document(shared: Shared) -> dict[str, Any]:
    """The readable form, in JSON's types: every field, also those that a string leaves out."""
    return {
        "screen": shared.screen,
        "lesson": shared.lesson,
        "stage": shared.stage,
        "draft": to_document(shared.draft),
    }


def from_shared_document(document: Mapping[str, object]) -> Shared:
    """Read what `to_shared_document` wrote. Raises `QuestionError` for other values."""
    screen, lesson, stage = document["screen"], document["lesson"], document["stage"]
    if screen not in SCREENS:
        raise _strange("screen", screen)
    if not isinstance(lesson, str) or (lesson and _LESSON.fullmatch(lesson) is None):
        raise _strange("lesson", lesson)
    if type(stage) is not int or not 0 <= stage <= (MAX_STAGE if lesson else 0):
        raise _strange("stage", stage)
    return Shared(from_document(document["draft"]), str(screen), lesson, stage)


def _json_of(packed: bytes) -> object:
    inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=_WORDS)
    try:
        text = inflate.decompress(packed, MAX_JSON + 1)
        if len(text) > MAX_JSON:
            raise QuestionError(
                f"the string holds more than {MAX_JSON:,} bytes", "shardviz did not make this string"
            )
        if not inflate.eof or inflate.unused_data:
            raise _damaged()
        return json.loads(text.decode())
    except (zlib.error, ValueError, RecursionError):
        raise QuestionError("the string holds no problem", "shardviz did not make this string") from None


def _whole(short: object) -> dict[str, Any]:
    """A document with all that the string leaves out."""
    document = _over(to_shared_document(Shared(ProblemForm())), short, "string")
    if isinstance(short, Mapping) and "draft" in short:
        usual = to_document(ProblemForm())
        document["draft"] = _over(usual, short["draft"], "draft")
        if (collective := document["draft"]["collective"]) is not None:
            document["draft"]["collective"] = _over(_usual_collective(), collective, "collective")
    return document


def _over(usual: dict[str, Any], short: object, what: str) -> dict[str, Any]:
    if not isinstance(short, Mapping):
        raise QuestionError(f"the {what} holds no object", "shardviz did not make this string")
    for name in short:
        if name not in usual:
            raise QuestionError(
                f"a shared {what} has no {quote(name, 30)}", "shardviz did not make this string"
            )
    return usual | dict(short)


def _different(document: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value != usual[name]}


def _usual_collective() -> dict[str, Any]:
    collective: dict[str, Any] = to_document(ProblemForm(collective=CollectiveFields()))["collective"]
    return collective


def _checksum(packed: bytes) -> bytes:
    return zlib.crc32(packed).to_bytes(4, "big")


def _damaged() -> QuestionError:
    return QuestionError("the shared string was cut or altered on its way", _AGAIN)


def _strange(name: str, value: object) -> QuestionError:
    shown = quote(value, 30) if isinstance(value, str) else type(value).__name__
    return QuestionError(f"the string has {shown} as its {name}", "shardviz did not make this string")
