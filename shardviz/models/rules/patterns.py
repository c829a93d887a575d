"""Patterns × names: the first that is found in each name, within a limit of time.

Python's regular expressions go back and try again, for longer than the universe is old where a pattern is
``(.*)*z``, and a search cannot be stopped from within its process. So patterns that may go back are searched
in a process of their own, by the same `re`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from functools import lru_cache

SECONDS = 5.0
"""The longest that all patterns of a set may take together: a thousand times what those of a model need."""
_NEVER_BACK = re.compile(r"(?:[^\\*+?{(]|\\.|\+\+)*+", re.DOTALL)
"""Patterns without groups, and without repeats but ``++``, which gives nothing back."""
_SEARCH = """
import json, re, sys
patterns, names = json.load(sys.stdin)
found = [-1] * len(names)
for number, pattern in enumerate(patterns):
    print(number, flush=True)
    search = re.compile(pattern).search
    for place, name in enumerate(names):
        if found[place] < 0 and search(name):
            found[place] = number
print(json.dumps(found))
"""
"""Prints the number of each pattern before its search, and at the end that of the pattern of each name."""


class PatternSearchError(Exception):
    """The search for pattern `number` has not come to its end, for a `reason`."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(number, reason)
        self.number, self.reason = number, reason


def pattern_error(pattern: str) -> str:
    """Why a text is not a pattern of `re`; "" where it is one."""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, OverflowError) as error:
        return str(error)
    except RecursionError:
        return "its groups are too deep"
    return ""


@lru_cache(maxsize=32)
def first_found(patterns: tuple[str, ...], names: tuple[str, ...]) -> Sequence[int]:
    """Of each name the number of the first pattern that is found in it, -1 where none is.

    Raises `PatternSearchError` for one that takes too long, and where no process can search.
    """
    if all(map(_NEVER_BACK.fullmatch, patterns)):
        searches = [re.compile(pattern).search for pattern in patterns]
        return [next((number for number, each in enumerate(searches) if each(name)), -1) for name in names]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-W", "ignore", "-c", _SEARCH],
            input=json.dumps((patterns, names)).encode(),
            stdout=subprocess.PIPE,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise PatternSearchError(_last_number(error.stdout), f"takes more than {SECONDS:g} s") from None
    except subprocess.CalledProcessError as error:
        raise PatternSearchError(_last_number(error.stdout), "takes too much memory") from None
    except OSError as error:
        raise PatternSearchError(0, f"cannot start a process: {error.strerror}") from None
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _last_number(printed: bytes | None) -> int:
    return int((printed or b"0").split()[-1])
