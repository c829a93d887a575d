"""The words of the package: a public class name stands once, and what is said better now does not come back.

A pattern finds a slip in docstrings, in other strings and in names; the reader's eye judges the sentences.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import shardviz

ROOT = Path(shardviz.__file__).parent
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
Slips = Iterator[tuple[str, int, str]]
"""File, line, and the words that are not said any more, with some around them."""


@cache
def trees() -> dict[str, ast.Module]:
    """The package's modules, by file."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(ROOT.rglob("*.py"))
    }


def test_a_public_class_name_stands_once() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{file}:{node.lineno}")
    several = {name: places for name, places in found.items() if len(places) > 1}
    assert several == {}, "give all but one of them another name"


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string with its line, white space in it as one space; … for what an f-string puts in."""
    within: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            within.update(node.values)
            yield node.lineno, " ".join("".join(map(str, parts)).split())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in within:
            yield node.lineno, " ".join(node.value.split())


PHRASES = {
    "is not a …": r"(?<!here )\b(?:is|are) no\b(?! (?:longer|more)\b)",
    "the thing meant": r"\b(?:what|who|which|when|where)ever\b",
    "the smallest array with the same schedule": r"\bstood for by\b",
    "exits with": r"\bleaves? with (?:0|1|2|its|an? exit)\b",
    "make room": r"\bmakes? place\b",
    "atomically": r"\bas a whole or not at all\b",
    "cannot be combined": r"\bdifferent answers\b",
    "no permission": r"\bnot for everybody\b",
    "convert between notations": r"\bin other words\b",
    "is valid": r"\bkeeps? its word\b",
    "cannot express": r"\bno word for\b",
    "the same layout": r"\blies alike\b",
    "the details of": r"\ball there is to say\b",
    "source line unknown": r"\bfrom no line\b",
    "no errors": r"\bnothing to complain about\b",
}
"""What to write, and a pattern of what was written in its place."""
OPENING = re.compile(r"(?:What|Whether|Who|Whom|Whose|How)\b")
"""A docstring begins with a noun or a verb: "The collectives of …", "Return …"."""
PRIVATE_WORDS = {
    *("bury", "classroom", "clerk", "curtain", "desk", "errand", "judge", "judgement", "plate"),
}
"""Words of no definition's, argument's or constant's name: the field has others."""


def phrases() -> Slips:
    some = re.compile("|".join(PHRASES.values()), re.IGNORECASE)
    for file, tree in trees().items():
        for line, text in strings(tree):
            for better, pattern in PHRASES.items() if some.search(text) else ():
                for found in re.finditer(pattern, text, re.IGNORECASE):
                    around = text[max(0, found.start() - 30) : found.end() + 30]
                    yield file, line, f"“{around}”: say “{better}”"


def openings() -> Slips:
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, (*DEFINITIONS, ast.Module)):
                docstring = ast.get_docstring(node) or ""
                if OPENING.match(docstring):
                    yield file, getattr(node, "lineno", 1), docstring.partition("\n")[0]


def words_of(name: str) -> set[str]:
    """``{"all", "gather"}`` of ``AllGather``, ``all_gather`` and ``ALL_GATHERS``."""
    split = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return {word.lower() for word in split} | {word.lower().removesuffix("s") for word in split}


def names() -> Slips:
    for file, tree in trees().items():
        yield from ((file, 1, part) for part in Path(file).parts if words_of(part) & PRIVATE_WORDS)
        for node in ast.walk(tree):
            name = ""
            if isinstance(node, DEFINITIONS):
                name = node.name
            elif isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                name = node.id if isinstance(node, ast.Name) else node.attr
            if words_of(name) & PRIVATE_WORDS:
                yield file, node.lineno, name


CHECKS = {"phrases": phrases, "openings": openings, "names": names}
NOT_YET: dict[str, set[str]] = {
    "phrases": {"hlo", "tui"},
    "openings": set(),
    "names": {"tui"},
}
"""Rooms that a check does not hold in yet."""


def test_what_is_said_better_does_not_come_back() -> None:
    for check, slips_of in CHECKS.items():
        slips: defaultdict[str, list[str]] = defaultdict(list)
        for file, line, words in slips_of():
            slips[Path(file).parts[0].removesuffix(".py")].append(f"{file}:{line}: {words}")
        new = [slip for room, found in slips.items() if room not in NOT_YET[check] for slip in found]
        assert not new, "\n" + "\n".join(new)
        assert NOT_YET[check] - slips.keys() == set(), f"{check}: take the rooms of which nothing is left off"


SAYS_IT_ALL = '''
"""What a module holds."""
class DeskClerk:
    def ask(self, errand): return f"{errand} is no parameter; it leaves with 0"
'''


def test_the_checks_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "trees", lambda: {"new/file.py": ast.parse(SAYS_IT_ALL)})
    found = [
        (check, line) for check, look in CHECKS.items() for file, line, _ in look() if file == "new/file.py"
    ]
    assert found == [("phrases", 4), ("phrases", 4), ("openings", 1), ("names", 3), ("names", 4)]


@pytest.mark.parametrize("words", ["there is no mesh", "it is no longer there", "sixteen templates"])
def test_good_words_are_none_of_these(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        globals(), "trees", lambda: {"new/file.py": ast.parse(f"{words.replace(' ', '_')} = {words!r}")}
    )
    assert [slip for look in CHECKS.values() for slip in look() if slip[0] == "new/file.py"] == []
