"""Errors as the application words them: whole sentences, with its fields and keys in place of options."""

from __future__ import annotations

import re

from shardviz.errors import ShardvizError
from shardviz.forms.form import COLLECTIVE_FIELDS, PROBLEM_FIELDS, SPECS

_FIELDS = {
    field.flag.removeprefix("--"): field.label
    for field in (*COLLECTIVE_FIELDS.values(), *PROBLEM_FIELDS.values(), SPECS)
    if field.flag
} | {"rank": "rank", "round": "round", "timeout": "time limit", "topology": "links"}
"""The application's names for the options of the command line."""
_KEYS = {
    "ask again to start it anew": "press r to start it anew",
    "give it longer with a larger --timeout": "press r to ask again",
}
"""Advice that is a key in the application."""
_NAMES = "|".join(sorted(_FIELDS, key=len, reverse=True))
_GIVEN = re.compile(rf"(?:\b(?:use|ask|add) |(?<=\bor ))--({_NAMES}) ")
_NAMED = re.compile(rf"--({_NAMES})\b")
_SMALL = re.compile(r"([a-z])(?:[a-z]+)?(?=[ ,;:]|$)")
"""A word that may take a capital."""
_SMALL_NAMES = re.compile(r"(?!a )[a-z]\b|(?:cpu|psum|pmean|pmax|pmin|ppermute|pbroadcast|python|shardviz)\b")
"""Dimensions and names that keep their small letter."""


def as_sentence(text: str) -> str:
    """A message or hint as a whole sentence; "" stays that.

    >>> as_sentence("add --axis-types explicit")
    'Set axes to explicit.'"""
    # An example of what can be typed keeps its options.
    own, mark, example = text.strip().partition("for example")
    for advice, key in _KEYS.items():
        own = own.replace(advice, key)
    own = _GIVEN.sub(lambda match: f"set {_FIELDS[match[1]]} to ", own)
    own = _NAMED.sub(lambda match: _FIELDS[match[1]], own)
    said = own + mark + example
    if _SMALL.match(said) and not _SMALL_NAMES.match(said):
        said = said[0].upper() + said[1:]
    return said if not said or said.endswith((".", "!", "?", "…")) else f"{said}."


def error_words(error: ShardvizError) -> str:
    """An error and its hint, in sentences."""
    return " ".join(filter(None, (as_sentence(error.message), as_sentence(error.hint))))
