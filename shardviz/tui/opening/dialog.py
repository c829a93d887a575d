"""The dialog of `o`: the files of a folder, and a field that takes a path, a command line, a string or a
sharding; and the profile that is read for Time."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.text import Text
from textual import work
from textual.widgets import Input
from textual.worker import Worker, get_current_worker

from shardviz.compiler.requests import Cancelled
from shardviz.errors import CompilerError, QuestionError, ShardvizError, quote
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.render.lines import printable
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, OPEN, FilteredList, ListRow
from shardviz.tui.opening.kinds import (
    KINDS,
    Openable,
    listed_folder,
    openables,
    read_options,
    typed,
    typed_path,
)
from shardviz.tui.registry import TABLES, bindings
from shardviz.tui.state import EditorState, OpenedProfile
from shardviz.units import human_bytes
from shardviz.user_files import is_folder, is_there

with LazyImports():
    from shardviz.hardware import machine_file
    from shardviz.hlo import text_file
    from shardviz.profiles import profile as profile_answer, trace_files


HELP = (
    "A compiled program (HLO, StableHLO, Shardy), a folder of XLA's dumps, a function of a Python file, a "
    "report of --save, a profile of jax.profiler, an Orbax checkpoint, a model's config.json or "
    "safetensors, a machine's TOML file, with options after it as after its command; or a sharding in any "
    "notation, a shardviz command line, a string that somebody has sent."
)
(COMPLETE,) = TABLES["OPEN"]


class OpenDialog(FilteredList):
    """Leaves with what was chosen, or with the profile that was read. Without `has_files` only texts are
    opened."""

    title_text = "Open"
    placeholder = "a file, a folder/, a sharding, a command line"
    typed_first = False  # the beginning of a file's name may be a sharding
    commands = (OPEN, COMPLETE, MOVES[0], CLOSE)
    taken = (COMPLETE,)
    BINDINGS = bindings(taken, priority=True)

    def __init__(self, state: EditorState, has_files: bool) -> None:
        super().__init__()
        self.state, self._has_files = state, has_files
        self._folder = ""
        self._reading: Worker[None] | None = None
        self._ends: list[Callable[[], object]] = []
        """What a reading waits for, ended with it."""

    @property
    def nothing(self) -> str:  # type: ignore[override]
        name = self.query_one(Input).value.strip()
        path = Path(Openable(name, "program").path)
        if self._has_files and is_there(path) and not (is_folder(path) or path.is_file()):
            return f"{quote(name)} is a device or a pipe, not a file."
        return "This is neither a file nor a known notation."

    def on_mount(self) -> None:
        self.show_rows(self._rows_of(""))
        guest = (
            "Type a sharding in any notation, a shardviz command line, or a string that somebody has sent."
        )
        if not self.rows:
            self.describe(Text(HELP if self._has_files else guest, "dim"))

    def _rows_of(self, folder: str) -> tuple[ListRow, ...]:
        kinds = openables(folder) if self._has_files else ()
        return tuple(_row(kind) for kind in kinds)

    def rows_for(self, typed: str) -> tuple[ListRow, ...]:
        folder = listed_folder(typed.strip())
        if folder == self._folder:
            return self.rows
        self._folder = folder
        rows = self._rows_of(folder)
        if self._has_files and not rows:
            self.describe(Text(_why_empty(folder)))
        return rows

    def row_of(self, text: str) -> ListRow | None:
        kind = typed(text, self._has_files)
        return None if kind is None else _row(kind)

    def about(self, row: ListRow) -> Text:
        kind: Openable = row.value
        name = printable(kind.name)
        return Text.assemble((f"{name}\n", "bold"), KINDS[kind.kind].words, (f"\n\n{HELP}", "dim"))

    def action_complete(self) -> None:
        """Write out the beginning that all listed names share which begin as what is typed, or the name under
        the cursor."""
        field, chosen = self.query_one(Input), self.chosen
        text = field.value.strip()
        names = [row.value.name for row in self.rows if row.value.name.startswith(text)]
        shared = os.path.commonprefix(names)  # noqa: RUF071 – of characters
        if len(shared) > len(text):
            self._write(shared)
        elif chosen is not None and chosen in self.rows:
            self._write(chosen.value.name)

    def _write(self, text: str) -> None:
        field = self.query_one(Input)
        field.value = text
        field.cursor_position = len(text)

    def leave_with(self, row: ListRow) -> None:
        kind: Openable = row.value
        if kind.kind == "folder":
            self._write(kind.name)
        elif kind.kind == "source":
            self._write(f"{kind.name}:")
        elif kind.kind == "profile":
            self._stop()
            self._reading = self._read(kind)
        else:
            self.dismiss(kind)

    @work(thread=True, exit_on_error=False)
    def _read(self, kind: Openable) -> None:
        worker = get_current_worker()

        def say(words: str) -> None:
            if worker.is_cancelled:
                raise Cancelled("reading was stopped")
            self.app.call_from_thread(self.describe, Text(f"{words} …", "dim"))

        try:
            say(f"reading {kind.name}")
            profile = read_profile(kind, self.state, say, self._ends.append)
            end: Callable[[], object] = partial(self.dismiss, profile)
        except Exception as error:
            if not isinstance(error, ShardvizError):
                error = ShardvizError(f"{quote(kind.name)} cannot be read: {type(error).__name__}: {error}")
            end = partial(self.describe, Text(f"✗ {error_words(error)}"))
        if not worker.is_cancelled:
            self._reading = None
            self.app.call_from_thread(end)

    def _stop(self) -> bool:
        if self._reading is None or self._reading.is_finished:
            return False
        self._reading.cancel()
        while self._ends:
            self._ends.pop()()
        return True

    def action_close(self) -> None:
        if self._stop():
            self.describe(Text("stopped; esc closes", "dim"))
        else:
            self.dismiss()

    def on_unmount(self) -> None:
        self._stop()


def _why_empty(folder: str) -> str:
    """A sentence on a folder, or a Python file, of which nothing is listed."""
    here, name = typed_path(folder.removesuffix(":") or "."), quote(folder.removesuffix(":") or "./")
    if folder.endswith(":"):
        return f"{name} has no function that takes a mesh, or is not valid Python."
    try:
        with os.scandir(here):
            return f"No file in {name} has a known name; type the name of any file in it."
    except (OSError, ValueError) as error:
        return f"{name} cannot be read: {getattr(error, 'strerror', None) or error}."


def _row(kind: Openable) -> ListRow:
    line = Text.assemble((printable(kind.label), "bold"), "  ", (KINDS[kind.kind].words, "dim"))
    return ListRow(line, kind.label, kind)


PATIENCE_S = 120.0
"""Seconds for XLA to write the text of a profile's programs."""
OPTIONS = ("--mesh", "--device-order", "--machine", "--hlo", "--step", "--device")


def read_profile(
    kind: Openable,
    state: EditorState,
    say: Callable[[str], object],
    end_by: Callable[[Callable[[], object]], object],
) -> OpenedProfile:
    """A profile, with the program's text as far as XLA reads what it brings, on the machine of the problem
    where no other is named.

    `say` is told how far it is, and raises `Cancelled` where nobody waits any more; `end_by` takes what ends
    a request. Raises `QuestionError` for a file that is no profile, and for options that it does not have."""
    now, worker = state.resolved, state.queries.worker
    own = {"--machine": now.shown.machine} if now.named is not None else {}
    options = {**own, **read_options(kind.options, OPTIONS)}
    if "--device-order" in options and "--mesh" not in options:
        raise QuestionError("--device-order needs a mesh", "add --mesh X=2,Y=4")
    mesh = parse_mesh(options["--mesh"], options.get("--device-order")) if "--mesh" in options else None
    machine = machine_file.named_machine(options["--machine"]) if "--machine" in options else None
    step = options.get("--step")
    if step and not step.isdecimal():
        raise QuestionError(f"{quote(step)} is not a step number", "write --step 3")
    hlo = text_file.read_text_file(options["--hlo"]).text if "--hlo" in options else ""

    def say_bytes(done: int, size: int) -> None:
        say(f"reading {kind.name}: {human_bytes(done)} of {human_bytes(size)}")

    def find_texts(protos: Sequence[bytes]) -> Sequence[str]:
        asked = worker.module_texts(protos)
        end_by(asked.cancel)
        try:
            return asked.result(PATIENCE_S)
        except (CompilerError, TimeoutError):
            return [""] * len(protos)
        finally:
            say(f"reading {kind.name}")

    profile = profile_answer.profile_with_texts(
        trace_files.read_trace(kind.path, say_bytes),
        find_texts,
        hlo=hlo,
        mesh=mesh,
        machine=machine,
        device=options.get("--device", ""),
        step=int(step) if step else None,
    )
    words = [word for option in options.items() for word in option]
    return OpenedProfile(profile, shlex.join(["shardviz", "profile", kind.path, *words]))
