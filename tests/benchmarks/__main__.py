"""All benchmarks: ``python tests/benchmarks``. They print; they assert nothing."""

from __future__ import annotations

import collectives
import differences
import first_frame
import frames
import layouts
import reading
import startup
import targets

for benchmark in (
    startup,
    first_frame,
    frames,
    targets,
    layouts,
    collectives,
    reading,
    differences,
):
    benchmark.report()
