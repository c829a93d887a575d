"""The user's line that an instruction comes from, out of its metadata and the tables in front of a module."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

MAX_FRAMES = 64
"""Calls around an instruction, looked at at most; JAX writes down ten."""

_FILE = re.compile(r'^(\d{1,9}) "((?:[^"\\]|\\.)*+)"?', re.MULTILINE)
_USED = re.compile(r"stack_frame_id=(\d{1,9})[^\n]*+")
_LOCATION = re.compile(r"^(\d{1,9}) \{file_name_id=(\d{1,9}).{0,200}? line=(\d{1,9})", re.MULTILINE)
_FRAME = re.compile(
    r"^(\d{1,9}) \{file_location_id=(\d{1,9})(?:[^}\n]{0,200}? parent_frame_id=(\d{1,9}))?", re.MULTILINE
)
LIBRARY = re.compile(
    r"(?!.*[/\\]shardviz[/\\]examples[/\\])(?:[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|"
    r"^<frozen |[/\\]shardviz[/\\]compiler[/\\]\w+\.py$)"
)
"""In paths of installed packages, but for examples that ship, and of what has JAX trace a program."""
_CELL = re.compile(r"<ipython-input-(\d+)-\w*>|.*[/\\]ipykernel_\d+[/\\](\d+)\.py")


class SourceLocations:
    """The locations of a module's text, of which `head` is what stands in front of its computations.

    An instruction's place is the innermost line of the user's own, outside of installed packages. A line of
    a helper that several lines call is not told: each call is told by the first of its callers in which it
    differs from the others. The callers of the whole program, which all instructions share, are no such
    caller: JAX leaves out the frames between them and a checkpoint. Older XLA has no tables there, but
    writes file and line into the metadata of each instruction."""

    def __init__(self, text: str, head: str | None = None) -> None:
        head = text if head is None else head
        files = {m[1]: m[2] for m in _FILE.finditer(_table(head, "FileNames"))}
        places = {m[1]: (m[2], m[3]) for m in _LOCATION.finditer(_table(head, "FileLocations"))}
        frames = {int(m[1]): m for m in _FRAME.finditer(_table(head, "StackFrames"))}
        # XLA counts frames from 1 and prints their callers from 2: a frame would be its own caller.
        shift = int(any(m[3] is not None and int(m[3]) >= number for number, m in frames.items()))
        own: dict[int, tuple[str, ...]] = {}
        innermost: dict[int, str] = {}
        for number, frame in sorted(frames.items()):
            file, line = places.get(frame[2], ("", ""))
            caller = int(frame[3] or 0) - shift
            outer = own.get(caller, ()) if caller < number else ()
            path = files.get(file, "")
            innermost[number] = f"{_named(path)}:{line}" if path else ""
            is_own = path and not LIBRARY.search(path)
            own[number] = _called(innermost[number], outer) if is_own else outer
        used = own.keys() & {int(number) for number in {*_USED.findall(text)}} if own else set()
        # The callers of the whole program are the outermost lines of all.
        around = _shared({own[number][::-1] for number in used if own[number]})
        own = {number: lines[: max(1, len(lines) - around)] for number, lines in own.items()}
        calls: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for number in used:
            calls["".join(own[number][:1])].add(own[number])
        shared = {line: _shared(stacks) for line, stacks in calls.items()}
        self._of_frame = {
            str(number): next(iter(lines[shared.get(lines[0], 0) :] or lines), "")
            if lines
            else innermost[number]
            for number, lines in own.items()
        }
        """``file:line`` of each stack frame."""

    def of(self, attributes: Mapping[str, str]) -> str:
        """``file:line`` of an instruction with these attributes, else its op name, else ""."""
        if location := self._of_frame.get(attributes.get("stack_frame_id", "")):
            return location
        if (file := attributes.get("source_file")) and (line := attributes.get("source_line")):
            return f"{_named(file)}:{line}"
        return attributes.get("op_name", "")


def _called(line: str, around: tuple[str, ...]) -> tuple[str, ...]:
    """The lines of a call, innermost first, with one more: several frames of one line, as tracing leaves
    them, are one, and of a chain that comes to a line again, as gradients' do, no more is known."""
    if around[:1] == (line,):
        return around
    known = around.index(line) if line in around else MAX_FRAMES
    return (line, *around[:known])[:MAX_FRAMES]


def _shared(calls: set[tuple[str, ...]]) -> int:
    """The number of innermost lines that all of some calls have in common, 0 for a single one."""
    if len(calls) == 1:
        return 0
    columns = zip(*calls, strict=False)
    return next((depth for depth, column in enumerate(columns) if len({*column}) > 1), 0)


def _named(file: str) -> str:
    """The path of a file; a notebook's cell by its number, or by that of its contents."""
    cell = _CELL.fullmatch(file)
    return file if cell is None else f"In[{cell[1]}]" if cell[1] else f"cell {cell[2]}"


def _table(head: str, name: str) -> str:
    start = head.find(f"\n{name}\n")
    stop = head.find("\n\n", start)
    return "" if start < 0 else head[start : stop if stop >= 0 else len(head)]
