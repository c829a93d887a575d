"""Where in the user's program an instruction comes from.

Older XLA writes ``metadata={op_name="..." source_file="a.py" source_line=12}``. Current XLA writes
``stack_frame_id=5`` and, in the module's header, the tables that lead from a frame to a location and from
there to a file and a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

_FILE = re.compile(r'^(\d{1,9}) "((?:[^"\\]|\\.)*+)"?', re.MULTILINE)
_LOCATION = re.compile(r"^(\d{1,9}) \{file_name_id=(\d{1,9}).{0,200}? line=(\d{1,9})", re.MULTILINE)
_FRAME = re.compile(r"^(\d{1,9}) \{file_location_id=(\d{1,9})", re.MULTILINE)


class StackFrames:
    """The tables in the `head` of a text; looks a frame's innermost location up. Read when first asked."""

    def __init__(self, head: str) -> None:
        self._head = head

    def location(self, frame: str) -> str:
        """``file:line`` of a frame, or ""."""
        return self._locations.get(frame, "") if frame else ""

    @cached_property
    def _locations(self) -> dict[str, str]:
        files = {m[1]: m[2] for m in _FILE.finditer(self._table("FileNames"))}
        places = {
            m[1]: f"{files[m[2]]}:{m[3]}"
            for m in _LOCATION.finditer(self._table("FileLocations"))
            if m[2] in files
        }
        return {m[1]: places.get(m[2], "") for m in _FRAME.finditer(self._table("StackFrames"))}

    def _table(self, name: str) -> str:
        start = self._head.find(f"\n{name}\n")
        if start < 0:
            return ""
        end = self._head.find("\n\n", start)
        return self._head[start:end] if end >= 0 else self._head[start:]


def source_of(attributes: Mapping[str, str], frames: StackFrames) -> str:
    """``file:line`` where the text has it, else the op name, else ""."""
    if location := frames.location(attributes.get("stack_frame_id", "")):
        return location
    if (file := attributes.get("source_file")) and (line := attributes.get("source_line")):
        return f"{file}:{line}"
    return attributes.get("op_name", "")
