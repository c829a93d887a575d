"""All benchmarks: ``python tests/benchmarks``. They print; they assert nothing."""

from __future__ import annotations

import collectives
import differences
import first_frame
import frames
import layouts
import own_program
import program_times
import reading
import startup
import targets

for benchmark in (
    startup,
    first_frame,
    frames,
    targets,
    own_program,
    layouts,
    collectives,
    reading,
    program_times,
    differences,
):
    benchmark.report()
