"""A profile of what ran, from a profiler's files, with the text of the programs that they bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shardviz.profiles.profile import Profile, profile_of, programs_that_ran
from shardviz.profiles.trace_files import ProfileFiles


def profile_with_texts(
    files: ProfileFiles, find_texts: Callable[[Sequence[bytes]], Sequence[str]], hlo: str = "", **asked: Any
) -> Profile:
    """The numbers of a profile, as `profile_of` has them, with what is `asked` of that. `hlo` is the main
    program's text; without one `find_texts` is asked for the texts of the serialized programs in the files,
    "" for one that has none."""
    records = () if hlo else programs_that_ran(files)
    texts = find_texts([record.proto for record in records]) if records else ()
    known = {record.program: text for record, text in zip(records, texts, strict=True) if text}
    return profile_of(files, known, hlo=hlo, **asked)
