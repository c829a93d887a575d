"""A form as a JSON object, and as one short string that fits a chat message: ``shardviz1-`` and, in base64's
alphabet for URLs, a CRC-32 before the deflated JSON of what differs from the default form. None of it is run.
The default form and the deflater's words are parts of the format: others need another version."""

from __future__ import annotations

import binascii
import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from shardviz.errors import QuestionError, quote
from shardviz.forms.form import SCREENS, CollectiveFields, ProblemForm, parameter_names
from shardviz.strict_table import StrictTable, kind_of

SCHEMA = "shardviz-draft/1"
MAX_TEXT = 20_000
"""Characters of all texts of a form together."""
MAX_SPECS = 1000
"""Specs of a form, which may have more of them than arrays."""
VERSION = 1
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
_AROUND = "\"'`<>()[]{}*.,;:!?"
"""Characters that a sentence puts around a string; base64 has none of them."""
_NOT_OURS = "shardviz did not make this string"
_AGAIN = "copy the whole string, from shardviz1- to its end"


class UnknownVersion(QuestionError):
    """A problem that another shardviz wrote."""


def to_document(form: ProblemForm) -> dict[str, Any]:
    """The form in JSON's types, under its schema."""
    document: dict[str, Any] = {"schema": SCHEMA}
    document |= {field.name: getattr(form, field.name) for field in fields(ProblemForm)}
    document["specs"] = list(form.specs)
    if form.collective is not None:
        collective = {field.name: getattr(form.collective, field.name) for field in fields(CollectiveFields)}
        document["collective"] = collective | {"parameters": dict(form.collective.parameters)}
    return document


def from_document(document: StrictTable) -> ProblemForm:
    """The form that `to_document` wrote; its fields may have errors, as they may have had then. Raises
    `UnknownVersion` for another schema, and the table's errors for other keys, types and texts."""
    schema = document.values.get("schema")
    if schema != SCHEMA:
        shown = quote(schema, 30) if isinstance(schema, str) else kind_of(schema)
        problem = f"the problem has the schema {shown}, and this shardviz reads {SCHEMA}"
        raise UnknownVersion(problem, "a newer shardviz may have written it: install that")
    known = [field.name for field in fields(ProblemForm)]
    document.exactly(["schema", *known])
    texts: dict[str, Any] = {
        name: document.line(name, MAX_TEXT) for name in known if name not in ("specs", "collective")
    }
    specs = document.listed("specs", MAX_SPECS)
    texts["specs"] = tuple(specs.line(number, MAX_TEXT) for number in specs.values)
    collective = None
    if document.values["collective"] is not None:
        table = document.table("collective")
        table.exactly(own := [field.name for field in fields(CollectiveFields)])
        given = table.table("parameters")
        given.only(parameter_names())
        parameters = [(name, given.line(name, MAX_TEXT)) for name in parameter_names() if name in given]
        lines = {name: table.line(name, MAX_TEXT) for name in own if name != "parameters"}
        collective = CollectiveFields(**lines, parameters=tuple(parameters))
    form = ProblemForm(**texts, collective=collective)
    length = sum(_length(document.values[name]) for name in known)
    if length > MAX_TEXT:
        document.fail(None, f"the problem has {length:,} characters", f"at most {MAX_TEXT:,} are read")
    return form


def _length(document: object) -> int:
    if isinstance(document, Mapping):
        document = list(document.values())
    return sum(map(_length, document)) if isinstance(document, list) else len(str(document or ""))


@dataclass(frozen=True)
class Shared:
    """A form, the screen that shows it, and the name and stage (from 0) of its lesson, "" for none."""

    draft: ProblemForm
    screen: str = "layout"
    lesson: str = ""
    stage: int = 0


def to_string(shared: Shared) -> str:
    """The string; letters, digits, ``-`` and ``_`` alone. Raises `QuestionError` for what none can hold."""
    document = to_shared_document(shared)
    _read_shared(document)
    short = _shortened(document, to_shared_document(Shared(ProblemForm())))
    text = json.dumps(short, ensure_ascii=False, separators=(",", ":")).encode()
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS, zdict=_WORDS)
    packed = deflate.compress(text) + deflate.flush()
    checked = zlib.crc32(packed).to_bytes(4, "big") + packed
    string = f"shardviz{VERSION}-{urlsafe_b64encode(checked).rstrip(b'=').decode()}"
    if len(text) > MAX_JSON or len(string) > MAX_STRING:
        problem = "this problem is too long for a string"
        raise QuestionError(problem, f"one has at most {MAX_STRING:,} characters")
    return string


def from_string(text: str) -> Shared:
    """Read a string; white space, line breaks, quotes and backticks from a chat do not matter. Raises
    `QuestionError` for a string that is too long, cut, altered, of another version, or says what no shardviz
    has written."""
    if len(text) > 2 * MAX_STRING:
        problem = f"a shared string has at most {MAX_STRING:,} characters; this has {len(text):,}"
        raise QuestionError(problem, _AGAIN)
    # Chats break long words with characters that nobody sees, and a selection takes a dialog's frame along.
    string = "".join(text.encode("ascii", "ignore").decode().split()).strip(_AROUND)
    start = re.match(r"shardviz(\d{1,6})-", string)
    if start is None:
        raise QuestionError(f"{quote(string, 30)} is not a shared string", "y in the application makes one")
    if int(start[1]) != VERSION:
        problem = f"the string has version {int(start[1])}, and this shardviz reads version {VERSION}"
        raise QuestionError(problem, "a newer shardviz may have made it: install that")
    packed = string[start.end() :]
    try:
        checked = urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
    except (binascii.Error, ValueError):
        raise _damaged() from None
    # The decoder passes over what is not of its alphabet, and over bits that it has no byte for.
    again = urlsafe_b64encode(checked).rstrip(b"=").decode()
    if again != packed or checked[:4] != zlib.crc32(checked[4:]).to_bytes(4, "big"):
        raise _damaged()
    usual = to_shared_document(Shared(ProblemForm()))
    return _read_shared(_completed(StrictTable(_json_of(checked[4:]), _error_at), usual))


def to_shared_document(shared: Shared) -> dict[str, Any]:
    """The readable form, in JSON's types: every field, also those that a string leaves out."""
    return {
        "screen": shared.screen,
        "lesson": shared.lesson,
        "stage": shared.stage,
        "draft": to_document(shared.draft),
    }


def _read_shared(document: dict[str, Any]) -> Shared:
    table = StrictTable(document, _error_at)
    screen = table.choice("screen", SCREENS)
    lesson = table.line("lesson", 60)
    if lesson and re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", lesson) is None:
        table.fail("lesson", f"{quote(lesson, 30)} is not the name of a lesson")
    stage = table.count("stage", MAX_STAGE if lesson else 0)
    return Shared(from_document(table.table("draft")), screen, lesson, stage)


def _json_of(packed: bytes) -> object:
    inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=_WORDS)
    try:
        text = inflate.decompress(packed, MAX_JSON + 1)
        if len(text) > MAX_JSON:
            raise QuestionError(f"the string holds more than {MAX_JSON:,} bytes", _NOT_OURS)
        if not inflate.eof or inflate.unused_data:
            raise _damaged()
        return json.loads(text.decode())
    except (zlib.error, ValueError, RecursionError):
        raise QuestionError("the string holds no problem", _NOT_OURS) from None


def _shortened(document: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _shortened(value, _usual(key, usual)) if key in _INNER and value else value
        for key, value in document.items()
        if value != usual[key]
    }


def _completed(short: StrictTable, usual: Mapping[str, Any]) -> dict[str, Any]:
    short.only(list(usual))
    return {**usual, **short.values} | {
        key: _completed(short.table(key), _usual(key, usual))
        for key in _INNER
        if key in short and (key, short.values[key]) != ("collective", None)
    }


_INNER = ("draft", "collective")
"""Keys of documents within a document."""


def _usual(key: str, usual: Mapping[str, Any]) -> Mapping[str, Any]:
    """The usual document of a key; a problem usually has no collective of its own."""
    whole = to_document(ProblemForm(collective=CollectiveFields())) if key == "collective" else usual
    inner: Mapping[str, Any] = whole[key]
    return inner


def _error_at(key: str, reason: str, _hint: str) -> QuestionError:
    return QuestionError(": ".join(filter(None, (key, reason))), _NOT_OURS)


def _damaged() -> QuestionError:
    return QuestionError("the shared string was cut or altered on its way", _AGAIN)
