"""The user's line that an instruction comes from, out of its metadata and the tables in front of a module."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FILE = re.compile(r'^(\d{1,9}) "((?:[^"\\]|\\.)*+)"?', re.MULTILINE)
_LOCATION = re.compile(r"^(\d{1,9}) \{file_name_id=(\d{1,9}).{0,200}? line=(\d{1,9})", re.MULTILINE)
_FRAME = re.compile(r"^(\d{1,9}) \{file_location_id=(\d{1,9})", re.MULTILINE)


class SourceLocations:
    """The locations of a module, of which `head` is the text in front of its computations.

    Older XLA has no tables there, but writes file and line into the metadata of each instruction.
    """

    def __init__(self, head: str) -> None:
        files = {m[1]: m[2] for m in _FILE.finditer(_table(head, "FileNames"))}
        places = {
            m[1]: f"{files[m[2]]}:{m[3]}"
            for m in _LOCATION.finditer(_table(head, "FileLocations"))
            if m[2] in files
        }
        self._of_frame = {m[1]: places.get(m[2], "") for m in _FRAME.finditer(_table(head, "StackFrames"))}
        """``file:line`` of each stack frame's innermost location."""

    def of(self, attributes: Mapping[str, str]) -> str:
        """``file:line`` of an instruction with these attributes, else its op name, else ""."""
        if location := self._of_frame.get(attributes.get("stack_frame_id", "")):
            return location
        if (file := attributes.get("source_file")) and (line := attributes.get("source_line")):
            return f"{file}:{line}"
        return attributes.get("op_name", "")


def _table(head: str, name: str) -> str:
    start = head.find(f"\n{name}\n")
    stop = head.find("\n\n", start)
    return "" if start < 0 else head[start : stop if stop >= 0 else len(head)]
