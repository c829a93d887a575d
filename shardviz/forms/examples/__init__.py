"""Problems to begin with, each named by what it shows, read from the tables beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from shardviz.errors import QuestionError, quote
from shardviz.forms.options import form_from_table
from shardviz.forms.form import TABLE_KEYS, ProblemForm

DOCUMENTS = "matmul_cases collectives layouts tensor_parallel fully_sharded layers einshard scaling_book"
"""The tables, in the order of the menu."""


@dataclass(frozen=True)
class Example:
    """A draft to begin with: `title` says what it shows, `look` what to look for, `screen` where.

    `document` is the subject of the document that it comes from. `expect` is what it claims, for those who
    check it: `collectives` of the plan ("op array axes"), `shard_shape` and `holders` of arrays, the `result`
    of a collective, or its `rounds`. `name` is what a command calls it by, "" where none does."""

    document: str
    title: str
    look: str
    screen: str
    entry: Mapping[str, Any] = field(repr=False, hash=False)
    name: str = ""

    @property
    def expect(self) -> Mapping[str, Any]:
        expected: Mapping[str, Any] = self.entry.get("expect", {})
        return expected

    @property
    def options(self) -> dict[str, Any]:
        """The fields that it has, as texts, by their names."""
        return {key: self.entry[key] for key in TABLE_KEYS if key in self.entry}

    @cached_property
    def draft(self) -> ProblemForm:
        """The fields, with a collective of its own where the example is about one."""
        return form_from_table(self.entry)


@cache
def examples() -> tuple[Example, ...]:
    """All examples, in the order of the menu."""
    return tuple(
        Example(
            document["title"], entry["title"], entry["look"], entry["screen"], entry, entry.get("name", "")
        )
        for name in DOCUMENTS.split()
        for document in [tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))]
        for entry in document["example"]
    )


def named_examples() -> dict[str, Example]:
    """The examples that have a name, in the order of the menu."""
    return {example.name: example for example in examples() if example.name}


def named_example(name: str) -> Example:
    """The example of a name. Raises `QuestionError`."""
    by_name = named_examples()
    if name not in by_name:
        raise QuestionError(f"there is no example {quote(name)}", f"choose one of {', '.join(by_name)}")
    return by_name[name]
