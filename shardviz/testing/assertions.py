"""Assertions on a program's collectives, bytes, seconds and memory, that it costs what its baseline says, a
summary in the user's repository, and that a model fits a chip."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal

from shardviz.api.inspecting import Report, inspect
from shardviz.documents.summaries import load_summary, save_summary, summary_text
from shardviz.errors import NotationError, QuestionError, did_you_mean, quote
from shardviz.hardware.chips import GPUS, TPUS
from shardviz.hardware.machine import assumed_machine
from shardviz.hardware.quantities import SIZE, TIME, Quantity
from shardviz.hlo.collective import Expected, tallies
from shardviz.reports.changes import ReportChanges, ReportSummary, broken_limits, parse_limits, report_changes
from shardviz.reports.program_report import ProgramReport, report_of
from shardviz.units import human_bytes, seconds as human_seconds
from shardviz.user_files import short_path

if TYPE_CHECKING:
    from shardviz.api.arguments import MachineLike, MeshLike
    from shardviz.api.modelling import ModelLike, RulesLike
    from shardviz.timeline.program_timeline import ProgramTimeline

Runs = int | EllipsisType
"""A number of runs; ``...`` is any number of them."""
Wanted = Runs | Mapping[str | tuple[str, ...], Runs] | None
"""Runs of an operation, in all or by mesh axis; None leaves the operation to `others`."""
TIMEOUT = 300.0
"""Seconds that a target's compiler may take."""
WIDTH = 80
SLACK = 1.01
"""A check that names no limits allows for so much: the figures are estimates."""
__tracebackhide__ = True  # pytest shows the line of the test alone
UPDATE = "SHARDVIZ_UPDATE"
"""The environment variable that has baselines written anew."""
RENEWED: dict[str, str] = {}
"""Why the baselines that this process has written are written, by path, until a test's report has them."""
AXES_HINT = "give mesh axes and runs, such as {'model': 2} or {('data', 'model'): 1}"


class BaselineChanged(AssertionError):
    """A program that differs from its baseline: a sentence, and a page of the changes."""

    def __init__(self, message: str, page: str) -> None:
        super().__init__(message, page)
        self.message = message
        self.page = page

    def __str__(self) -> str:
        return f"{self.message}\n\n{self.page}" if self.page else self.message


def assert_collectives(
    program: Any,
    /,
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    all_gather: Wanted = None,
    all_reduce: Wanted = None,
    reduce_scatter: Wanted = None,
    all_to_all: Wanted = None,
    ragged_all_to_all: Wanted = None,
    collective_permute: Wanted = None,
    collective_broadcast: Wanted = None,
    others: int | None = None,
    max_bytes: float | str | None = None,
    max_seconds: float | str | None = None,
    max_memory: float | str | None = None,
    target: str | None = None,
    timeout: float = TIMEOUT,
) -> None:
    """Check a program's collectives: how often each runs, and what they cost.

    `program` and its arguments are those of `shardviz.inspect`, with keyword arguments in `kwargs`; a
    `Report` is accepted as well. The program is compiled, not run: for the devices of its arguments, or for a
    `target` such as ``"v5e:4x4"``, for at most `timeout` seconds.

    Numbers count runs of HLO's operations:

    - in a loop of four, a collective counts four times; all branches of a conditional count;
    - a combined collective of several arrays counts once, and so do a start and its done;
    - a collective matmul counts as its permutes;
    - compilers differ: the CPU's has an all-reduce and a slice where a GPU's has a reduce-scatter.

    ``all_gather={"model": 2}`` is two over the mesh axis model and none over any other;
    ``{("data", "model"): 1}`` is one over both together, in any order. Operations that are not named are not
    checked. `others` is the number of their runs together; with ``others=0``, ``...`` allows any number of an
    operation.

    `max_bytes` limits the bytes that one device sends in all collectives, `max_memory` the peak of one
    device: numbers, or text such as ``"64MiB"``. `max_seconds`, a number or ``"1.5ms"``, limits the estimated
    time on the target.

    Raises `AssertionError` with the expected and actual collectives and their source lines, also if a loop of
    unknown length or unreadable text leaves a number unknown. Raises `QuestionError` if nothing is checked,
    for an axis that the mesh does not have, and for `max_seconds` without a target."""
    expected = {
        "all-gather": all_gather,
        "all-reduce": all_reduce,
        "reduce-scatter": reduce_scatter,
        "all-to-all": all_to_all,
        "ragged-all-to-all": ragged_all_to_all,
        "collective-permute": collective_permute,
        "collective-broadcast": collective_broadcast,
    }
    named = {op: _expected(op, given) for op, given in expected.items() if given is not None}
    rest = None if others is None else _number("others", others)
    most_bytes = _most("max_bytes", max_bytes, SIZE)
    most_seconds = _most("max_seconds", max_seconds, TIME)
    most_memory = _most("max_memory", max_memory, SIZE)
    counts = rest is not None or any(number is not None for number in named.values())
    if not counts and most_bytes is most_seconds is most_memory is None:
        hint = "give all_gather=0, all_reduce=2, …, others=0 for none at all, or max_bytes='64MiB'"
        raise QuestionError("no operation is named, so there is nothing to check", hint)
    report = report_on(program, args, kwargs, target, timeout)
    _check_axes(named, report)
    counted = tallies(report.collectives, named, rest)
    if not all(tally.is_met for tally in counted) or report.module.unread:
        from shardviz.render.programs.changes_view import expectation_text

        raise AssertionError(expectation_text(report.module, report.mesh, counted))
    if most_bytes is most_seconds is most_memory is None:
        return
    if most_seconds is not None and report.compiled is None:
        raise QuestionError("seconds are those of a machine, and none is named", "give target='v5e:4x4'")
    timeline = None if most_seconds is None else report.timeline().timeline
    cost = report_of(report.module, timeline)
    problem, memory = "" if most_bytes is None else _too_many_bytes(cost, most_bytes), None
    if most_seconds is not None and timeline is not None:
        problem = problem or _too_many_seconds(timeline, most_seconds)
    if most_memory is not None and not problem:
        # The compiler's account, else an estimate from the order of the program.
        memory = report.timeline().memory if report.compiled is None else report.memory
        if memory is None:
            raise QuestionError("the memory of this program is not known", "give target='v5e:4x4'")
        if report.compiled is None:
            # The order is that of an assumed machine, whose limit is not the program's.
            memory = replace(memory, limit_bytes=None)
        if memory.peak_bytes > most_memory:
            taken, most = human_bytes(memory.peak_bytes), human_bytes(round(most_memory))
            problem = f"takes {taken} per device: at most {most} are expected"
    if problem:
        from shardviz.render.programs.changes_view import excess_text

        raise AssertionError(excess_text(cost, report.mesh, problem, memory))


def report_on(
    program: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    target: str | None,
    timeout: float,
    options: Mapping[str, Any] | None = None,
) -> Report:
    """The report on a program of a test; one that is a report is not compiled again."""
    if not isinstance(program, Report):
        named = dict(kwargs or {})
        return inspect(program, *args, target=target, options=options, timeout=timeout, kwargs=named)
    if args or kwargs or target is not None or options:
        problem = "a report is of a program that is compiled already"
        raise QuestionError(problem, "leave out arguments, target and options, or give the function")
    return program


def _expected(op: str, given: Runs | Mapping[str | tuple[str, ...], Runs]) -> Expected:
    if not isinstance(given, Mapping):
        return _number(op, given)
    by_axes: dict[tuple[str, ...], int | None] = {}
    for key, runs in given.items():
        axes = (key,) if isinstance(key, str) else key
        if not isinstance(axes, tuple) or not axes or not all(isinstance(axis, str) for axis in axes):
            raise QuestionError(f"{op.replace('-', '_')}: {quote(repr(key))} is not a mesh axis", AXES_HINT)
        if any(frozenset(axes) == frozenset(other) for other in by_axes):
            raise QuestionError(f"{op.replace('-', '_')} names {', '.join(axes)} twice", AXES_HINT)
        by_axes[axes] = _number(f"{op} over {', '.join(axes)}", runs)
    if not by_axes:
        raise QuestionError(f"{op.replace('-', '_')}={{}} names no axis", AXES_HINT)
    return by_axes


def _check_axes(expected: Mapping[str, Expected], report: Report) -> None:
    """Raise `QuestionError` for an axis that the mesh lacks: nothing ever runs over it."""
    mesh = report.mesh
    if mesh is None:
        return
    for op, wanted in expected.items():
        for axis in (axis for axes in wanted for axis in axes) if isinstance(wanted, Mapping) else ():
            if not {axis, axis.partition(":")[0]} & {*mesh.axis_names}:
                problem = f"{op.replace('-', '_')}: the mesh {mesh} has no axis {quote(axis)}"
                raise QuestionError(problem, did_you_mean(axis, mesh.axis_names) + AXES_HINT)


def _number(op: str, given: Any) -> int | None:
    if given is ...:
        return None
    try:
        number = operator.index(given)
    except TypeError:
        number = -1
    if number < 0:
        problem = f"{op.replace('-', '_')}={given!r} is not a number of runs"
        raise QuestionError(problem, "give 0, 1, 2, …, or ... for any number")
    return number


def _most(name: str, given: float | str | None, quantity: Quantity) -> float | None:
    if given is None:
        return None
    try:
        value = quantity.parse(given) if isinstance(given, str) else float(given)
    except NotationError as error:
        raise QuestionError(f"{name}={given!r}: {error.message}", error.hint) from None
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value < float("inf"):
        raise QuestionError(f"{name}={given!r} is not a {quantity.name}", quantity.hint)
    return value


def _too_many_bytes(cost: ProgramReport, most: float) -> str:
    entries = [entry for entry in cost.entries if not entry.collective.is_host_transfer]
    expected = f"at most {human_bytes(round(most))} are expected"
    if any(entry.runs is None for entry in entries):
        return f"has collectives in loops of unknown length: {expected}"
    sent = sum(entry.all_wire_bytes or 0 for entry in entries)
    return "" if sent <= most else f"sends {human_bytes(sent)} ({sent:,} bytes) per device: {expected}"


def _too_many_seconds(timeline: ProgramTimeline, most: float) -> str:
    took, unknown = timeline.seconds, timeline.unknown
    if took > most:
        written = human_seconds(took), human_seconds(most)
        return f"takes {written[0]} on {timeline.machine}: at most {written[1]} are expected"
    if not unknown:
        return ""
    return f"has operations of unknown time, such as {quote(unknown[0])}: no limit can be checked"


def assert_fits(
    model: ModelLike,
    rules: RulesLike,
    mesh: MeshLike,
    chip: MachineLike,
    *,
    dtype: str = "",
    batch: int | None = None,
    sequence: int | None = None,
    inputs: str = "",
    backward: bool = True,
    remat: Literal["none", "layer", "dots"] = "layer",
    optimizer: str = "adam",
) -> None:
    """Check that a model fits the memory of a chip: a train step, or without `backward` the parameters and
    the KV cache of all tokens.

    The other arguments are those of `shardviz.model`. `chip` is a machine of the mesh's size (``"v5e:4x4"``)
    or a chip (``"v5e"``). If only names and shapes of a model are known, activations do not count.

    Raises `AssertionError` with a table of the memory if it does not fit with all that a compiler may
    allocate beyond the estimate. Raises `QuestionError` as `shardviz.model` does, and for a chip whose memory
    is unknown."""
    from shardviz.api.modelling import model as model_report

    report = model_report(
        model,
        rules=rules,
        mesh=mesh,
        # That of a chip's name alone has a ring for each mesh axis.
        machine=assumed_machine(chip) if chip in TPUS or chip in GPUS else chip,
        dtype=dtype,
        batch=batch,
        sequence=sequence,
        inputs=inputs,
        backward=backward,
        remat=remat,
        optimizer=optimizer,
    )
    memory = report.memory
    if memory.limit is None:
        raise QuestionError(f"the memory of {chip} is not known", "name a chip, such as v5e")
    if memory.over(memory.allocated_bytes(memory.training if backward else memory.serving)):
        from shardviz.render.model_view import memory_text

        raise AssertionError(memory_text(report))


def check_baseline(
    program: Any,
    /,
    *args: Any,
    path: str | os.PathLike[str],
    target: str | None = None,
    fail_on: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
) -> None:
    """Check that a program's costs are those of its baseline, the file at `path`.

    `program`, its arguments, `target`, `options` and `timeout` are those of `shardviz.inspect`, with keyword
    arguments in `kwargs`; a `Report` is accepted as well. The program is compiled, not run.

    The first run writes the file: commit it. If the environment variable CI is set, the test fails instead.
    ``SHARDVIZ_UPDATE=1`` rewrites it. The file is JSON with a line per kind of collective, and with seconds
    if there is a `target`. A relative `path` starts at the folder of the calling file.

    `fail_on` has the limits of `shardviz diff`, such as ``"new-collective,bytes+5%,seconds+5%,memory+1GiB"``.
    By default any change of a collective fails, an argument or output that is split in another way, and
    seconds or memory that differ by more than 1 %. Another mesh or machine always fails.

    Raises `BaselineChanged`, an `AssertionError`, with the changes, and `QuestionError` for a file or limits
    that cannot be read."""
    __tracebackhide__ = True

    limits = parse_limits("seconds+1%,memory+1%" if fail_on is None else fail_on)
    caller = Path(sys._getframe(1).f_code.co_filename)
    # A notebook has no folder, and starts at the current one.
    file = ((caller.parent if caller.exists() else Path.cwd()) / path).resolve()
    renews = os.environ.get(UPDATE, "") not in ("", "0")
    before = None
    if not renews:
        with suppress(FileNotFoundError):
            before = load_summary(file)
    if before is None and not renews and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise AssertionError(
            f"there is no baseline {short_path(file)}: run the test on your own machine, and commit the file"
        )
    report = report_on(program, args, kwargs, target, timeout, options)
    if report.module.unread:  # its baseline would be short
        raise QuestionError(f"the program cannot be read in full: {report.module.unread[0]}")
    after = report.summary()
    for limit in limits if fail_on is not None else ():
        if limit.quantity in ("seconds", "memory") and getattr(after, limit.quantity) is None:
            problem = f"{quote(limit.text)} is a limit of {limit.quantity}, and no machine is named"
            raise QuestionError(problem, "give target='v5e:4x4'")
    if before is None:
        _write(after, file, renews)
        return
    changes = report_changes(before, after)
    broken = broken_limits(limits, changes)
    if changes.is_same_hardware and not broken and (fail_on is not None or not _differs(changes)):
        return
    from shardviz.render.programs.changes_view import changes_view

    raise BaselineChanged(
        f"the program differs from {short_path(file)}; to accept the changes, run again with {UPDATE}=1",
        "\n".join(line.plain.rstrip() for line in changes_view(changes, broken, WIDTH)),
    )


def _write(after: ReportSummary, file: Path, renews: bool) -> None:
    old = None
    with suppress(OSError, UnicodeDecodeError):
        old = file.read_text(encoding="utf-8")
    if old == summary_text(after):
        return
    save_summary(after, file)
    reason = "written anew" if renews and old is not None else "written for the first time, commit it"
    RENEWED[short_path(file)] = reason
    print(f"shardviz: {quote(short_path(file), 200)} is {reason}", file=sys.stderr)


def _differs(changes: ReportChanges) -> bool:
    """Return whether collectives or splits have changed, or a figure fell; what rises breaks a limit."""
    before, after = changes.before, changes.after
    figures = (before.seconds, after.seconds), (before.memory, after.memory)
    has_fallen = (old is not None and new is not None and new * SLACK < old for old, new in figures)
    return bool(changes.changes or changes.arrays) or any(has_fallen)
