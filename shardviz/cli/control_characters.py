"""Characters that a terminal obeys instead of showing them, such as those of a file: written as escapes.

They move the cursor, change colours and titles, end lines, or turn the direction of writing.
"""

from __future__ import annotations

import re

_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
PICTURES = re.compile(rf"(\x1b\[(?:[0-9;]*[mHJK]|\?[0-9]+[hl]))|{_CONTROL}")
"""Control characters, but for the sequences of coloured pictures and of `play`, which are the group."""
NARRATION = re.compile(rf"(\A\r\x1b\[2K)|{_CONTROL}")
"""Control characters, but for `CLEAR_LINE` at the beginning."""
_IN_JSON = re.compile(_CONTROL)


def escaped(text: str, control: re.Pattern[str]) -> str:
    """The text with ``\\x1b`` and the like for each control character; what the pattern's group is stays."""
    if text.isprintable():
        return text
    return control.sub(lambda found: found[1] or found[0].encode("unicode_escape").decode(), text)


def escaped_json(text: str) -> str:
    """A JSON text that says the same with ``\\u009b`` and the like for each control character."""
    import json

    return _IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)
