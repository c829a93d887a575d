"""`shardviz.profiled`: what a block of Python runs on the devices, measured."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any

from shardviz.api.arguments import MachineLike, MeshLike, as_machine, as_mesh
from shardviz.api.shared_worker import module_texts
from shardviz.api.shown import ShownTimes
from shardviz.documents.fields import KINDS
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.targets import installed_versions, libtpu_mismatch, pip

with LazyImports():
    from shardviz.profiles import profile as profiles, trace_files
    from shardviz.render import profile_view

if TYPE_CHECKING:
    from os import PathLike

    from rich.text import Text

    from shardviz.profiles.collective_timing import CollectiveTiming
    from shardviz.render.palette import Palette
    from shardviz.timeline.program_timeline import ProgramTimeline


def profiled(
    folder: str | PathLike[str] | None = None,
    *,
    mesh: MeshLike | None = None,
    machine: MachineLike = None,
    device: str = "",
    step: int | None = None,
    timeout: float = 300.0,
) -> ProfileReport:
    """Profile the operations of a block on JAX's devices::

        with shardviz.profiled(mesh="X=2,Y=4") as p:
            for number in range(3):
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    jax.block_until_ready(step(state, batch))
        p                       # devices, steps, collectives, and a step as a timeline

    Wait for results with `jax.block_until_ready`: operations after the end of the block are not included.
    `folder` keeps the profile for TensorBoard and ``shardviz profile``; by default it is removed. In a job of
    several processes each one profiles its own devices.

    `mesh` names the axes, `machine` is the hardware to predict for, and `device` and `step` choose the
    timeline. `timeout` is in seconds, for the text of the programs.

    Raises `QuestionError` if JAX is not imported, or if profiling would end this process; at the end of the
    block also for a profile that cannot be read."""
    named, on = None if mesh is None else as_mesh(mesh), as_machine(machine)
    read = partial(profiles.profile_with_texts, mesh=named, machine=on, device=device, step=step)
    return ProfileReport(None if folder is None else str(folder), timeout, read)


class ProfileReport(ShownTimes):
    """The answer of `shardviz profile` for a block of Python; it exists when the block has ended."""

    def __init__(self, kept: str | None, timeout: float, read: Callable[..., profiles.Profile]) -> None:
        self._kept, self._timeout, self._read = kept, timeout, read
        self._stack = ExitStack()
        self._folder = ""
        self._profile: profiles.Profile | None = None

    def __enter__(self) -> ProfileReport:
        jax = sys.modules.get("jax")
        if jax is None:
            raise QuestionError("jax is not imported, so that nothing can run on its devices", "import jax")
        if mismatch := libtpu_mismatch(installed_versions()):
            raise QuestionError(
                mismatch, f"{pip('install', '-U', 'jax[tpu]')}, or {pip('uninstall', 'libtpu')}"
            )
        self._folder = self._kept or self._stack.enter_context(TemporaryDirectory(prefix="shardviz-"))
        Path(self._folder).mkdir(parents=True, exist_ok=True)
        options = jax.profiler.ProfileOptions()
        # Calls of Python tell nothing of devices, and slow down what they surround.
        options.python_tracer_level = 0
        if self._kept and jax.process_count() > 1:
            # Processes of one host would write into one file.
            self._folder = self._stack.enter_context(TemporaryDirectory(dir=self._kept, prefix="process-"))
        jax.profiler.start_trace(self._folder, profiler_options=options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            sys.modules["jax"].profiler.stop_trace()
            if self._kept and self._folder != self._kept:
                self._folder = self._among_others(self._kept)
            if kind is None:
                find_texts = partial(module_texts, timeout=self._timeout)
                self._profile = self._read(trace_files.read_trace(self._folder), find_texts)

    def _among_others(self, kept: str) -> str:
        """Move this process's files to those of others, under its own name; return its profile."""
        profile = kept
        for file in trace_files.profile_files(self._folder)[0].parent.iterdir():
            host = trace_files.host_name(file)
            process = f"{host}-p{sys.modules['jax'].process_index()}"
            session = Path(kept, "plugins", "profile", file.parent.name)
            session.mkdir(parents=True, exist_ok=True)
            moved = file.rename(session / f"{process}{file.name.removeprefix(host)}")
            profile = str(moved) if file.name.endswith(trace_files.XPLANE) else profile
        return profile

    @property
    def profile(self) -> profiles.Profile:
        """All of it. Raises `QuestionError` while the block runs, and where it has failed."""
        if self._profile is None:
            hint = "look at it after the with block, which must not fail"
            raise QuestionError("there is no profile yet", hint)
        return self._profile

    @property
    def steps(self) -> tuple[profiles.MeasuredStep, ...]:
        """The steps that the block marked, else the runs of the program that ran longest."""
        return self.profile.steps

    @property
    def collectives(self) -> tuple[CollectiveTiming, ...]:
        """The collectives as they ran, the most exposed time first."""
        return self.profile.collectives

    def lines(self, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
        return profile_view.profile_view(self.profile, width, palette, verbose)

    def document(self) -> dict[str, Any]:
        return KINDS["profile"].document(self.profile)

    @property
    def tellers(self) -> tuple[ProgramTimeline, ...]:
        """The step that is shown as it ran, and as it is predicted."""
        return self.profile.timelines

    def __repr__(self) -> str:
        return super().__repr__() if self._profile is not None else "<a profile that is being taken>"
