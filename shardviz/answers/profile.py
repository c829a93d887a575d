"""A profile of what ran, from a profiler's files, with the text of the programs that they bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shardviz.profiles.profile import profile_of, programs_that_ran, texts_by_program

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.profiles.profile import Profile
    from shardviz.profiles.trace_files import ProfileFiles
    from shardviz.sharding import Mesh


def profile_with_texts(
    files: ProfileFiles,
    find_texts: Callable[[Sequence[bytes]], Sequence[str]],
    *,
    hlo: str = "",
    mesh: Mesh | None = None,
    machine: Machine | None = None,
    device: str = "",
    step: int | None = None,
) -> Profile:
    """The numbers of a profile. `hlo` is the main program's text; without one `find_texts` is asked for the
    texts of the serialized programs in the files, "" for one that has none.

    Raises what `profile_of` raises.
    """
    records = () if hlo else programs_that_ran(files)
    texts = find_texts([each.proto for each in records]) if records else ()
    programs = texts_by_program(records, texts)
    return profile_of(files, programs, hlo=hlo, mesh=mesh, machine=machine, device=device, step=step)
