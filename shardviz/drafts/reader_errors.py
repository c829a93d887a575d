"""Whatever a reader raises, as an error that a field can show: no text that is typed ends the application."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shardviz.errors import QuestionError, ShardvizError


@contextmanager
def reader_errors() -> Iterator[None]:
    """Raise a `ShardvizError` as it is, and a `QuestionError` for any other exception of the block.

    As a decorator it does so for a function.
    """
    try:
        yield
    except ShardvizError:
        raise
    except Exception as error:
        raise QuestionError(
            f"this text cannot be read: {type(error).__name__}", "write it in another way; this is a bug"
        ) from error
