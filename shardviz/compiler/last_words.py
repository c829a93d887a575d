"""What a compiler said when it died, out of all that it printed."""

from __future__ import annotations

import re

MAX_WORDS = 200

_PREFIX = r"(?:\w\d{4} [\d:.]{8,20} ++\d++ )?(?:[\w/.-]{1,80}:\d++\] )?(?:RAW: )?"
"""What C++ puts before a line that it logs: time, thread, source."""
_TELLING = (
    re.compile(r"^F\d{4} [^\]\n]{1,200}\] *+([^\n]++)", re.MULTILINE),
    re.compile(r"((?:Check failed|RET_CHECK failure|Unknown flag|Assertion)[^\n]++)"),
    re.compile(r"^ *what\(\): *+([^\n]++)", re.MULTILINE),
    re.compile(r"^((?:[A-Za-z_]\w{0,40}\.){0,4}[A-Z]\w{0,40}(?:Error|Exception): [^\n]++)", re.MULTILINE),
)
"""Lines that give the reason, the best first."""
_FUNCTION = re.compile(r"^PC: @ +\S++ +\S++ +(?!\(unknown\))([\w:~<>{}()]{3,120})$", re.MULTILINE)
"""Where the processor stood, from a stack trace."""
_NOISE = re.compile(
    rf"^{_PREFIX}(?:$|WARNING: |Failed to find host bounds|INVALID_ARGUMENT: Error: unexpected worker|"
    r"=== Source Location|learning/|https://symbolize|\*\*\* |@ |PC: @|Remote crash data|Skipping coredump|"
    r"Coroner |Sending fingerprint|Cannot send fingerprint|Dumping core|Raising signal|Fatal Python error|"
    r"Current thread|Thread 0x|Extension modules|File \"|Refusing to write|Could not create directory)"
)
"""What libtpu prints on any machine without a TPU, and around a stack trace."""


def last_words(log: str) -> str:
    """What explains a death, on one line; "" when nothing does."""
    for pattern in _TELLING:
        if found := pattern.findall(log):
            return _short(found[-1])
    if found := _FUNCTION.findall(log):
        return f"in {_short(found[-1])}"
    for line in reversed(log.splitlines()):
        if not _NOISE.match(line.strip()):
            return _short(re.sub(f"^{_PREFIX}", "", line))
    return ""


def _short(words: str) -> str:
    words = "".join(c if c.isprintable() else "�" for c in " ".join(words.split()))
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"
