"""A table of options, as the files of examples and lessons have them → a draft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shardviz.drafts.draft import CollectiveDraft, Draft
from shardviz.drafts.options import draft_from_options
from shardviz.drafts.parsing import mesh_of, spec_texts
from shardviz.errors import QuestionError, plural, quote

PROBLEM_KEYS = ("mesh", "device_order", "einsum", "specs", "sizes", "dtype", "axis_types", "targets")
"""Keys with a text each; `collective` beside them is a table of its own."""


def draft_from_table(table: Mapping[str, Any]) -> Draft:
    """The draft of some of `PROBLEM_KEYS`, the others as `draft_from_options` has them, and of a
    ``collective`` with the fields of `CollectiveDraft`, its parameters a table.

    `specs` beside an einsum in brackets are put over its subscripts. Raises `ShardvizError` for a problem
    that cannot be read; what is wrong with a collective is a fault of the draft.
    """
    given = {name: table[name] for name in PROBLEM_KEYS if name in table}
    if "targets" in given:
        given["target"] = given.pop("targets")
    specs = given.pop("specs") if "[" in given.get("einsum", "") and "specs" in given else None
    draft = draft_from_options(**given)
    if specs is not None:
        draft = replace(draft, specs=_all_specs(specs, draft))
    if "collective" not in table:
        return draft
    collective = dict(table["collective"])
    parameters = tuple(collective.pop("parameters", {}).items())
    return replace(draft, collective=CollectiveDraft(**collective, parameters=parameters))


def _all_specs(text: str, draft: Draft) -> tuple[str, ...]:
    """The specs of all rows of a draft, from ``XY,Y_->X_``."""
    from shardviz.notation import parse_specs

    mesh = mesh_of(draft)
    assert mesh is not None
    parts = parse_specs(text, mesh.axis_names)
    specs = spec_texts([spec for part in parts for spec in (*part.operands, part.result)])
    if len(specs) != len(draft.specs):
        said, arrays = plural(len(specs), "spec"), plural(len(draft.specs), "array")
        raise QuestionError(
            f"{quote(text)} has {said}, and there are {arrays}", "write one for each array: XY,Y_->X_"
        )
    return specs
