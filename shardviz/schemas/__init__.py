"""The JSON documents of shardviz as a contract: the head of each, and a JSON Schema of each kind.

vocabulary   the pieces that a schema is made of
plans        problems, plans, rankings, layouts and translations
programs     what compilers answer: collectives, passes, HLO
rounds       collectives round by round
course       lessons and shared problems
kinds        every kind by name, and its schema as a document of JSON Schema 2020-12
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA = "shardviz/1"
"""The version of all documents; what a schema promises of one stays so under this name."""


def document(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A document of a kind that `shardviz.schemas.kinds` describes, its fields after its head."""
    return {"schema": SCHEMA, "kind": kind, **fields}
