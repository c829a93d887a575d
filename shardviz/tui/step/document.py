"""The JSON document of the collective on the step screen."""

from __future__ import annotations

from shardviz.documents.fields import Document
from shardviz.documents.rounds import step_document
from shardviz.errors import QuestionError
from shardviz.stepping.collective_run import CollectiveRun


def whole_document(walk: CollectiveRun) -> Document:
    """Every number and every send of a collective. Raises `QuestionError` for a long one."""
    if walk.unlisted:
        words = f"the document would list {walk.unlisted}"
        raise QuestionError(words, "take a smaller mesh or array")
    return step_document(walk, None)
