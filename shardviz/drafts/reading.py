"""Draft → scene: the problem and its plan, or what is wrong and in which field."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from shardviz.drafts.draft import Draft, Fault, Row
from shardviz.drafts.parsing import ellipsis_rank, read_mesh, read_spec
from shardviz.drafts.reader_errors import reader_errors
from shardviz.drafts.rows import Einsums, read_einsums
from shardviz.drafts.scene import Scene
from shardviz.errors import QuestionError, ShardvizError, plural, quote

if TYPE_CHECKING:
    from shardviz.compiler import Target
    from shardviz.planner import Contraction, Plan, Planner, Problem
    from shardviz.sharding import Mesh, PartitionSpec
    from shardviz.stepping.question import CollectiveQuestion

MAX_PARTS = 32
"""Einsums of a chain; planning a longer one takes longer than a key may."""
PROBLEM_FIELDS = ("mesh", "einsum", "specs", "sizes", "dtype", "axis_types", "device_order")


def read(draft: Draft, last: Scene | None = None) -> Scene:
    """The scene of a draft. Where fields have faults, all that depends on them is that of `last`.

    Every field with a fault has one that says so, as far as it can be told while others are wrong. Raises the
    first fault as a `ShardvizError` when there is no `last`.
    """
    reader = _Reader(draft, last)
    mesh = reader.mesh()
    einsums = reader.einsums(mesh)
    found = reader.problem(mesh, einsums)
    targets = reader.targets()
    collective = reader.collective(mesh)
    shown = draft
    if reader.errors:
        if last is None:
            raise next(iter(reader.errors.values()))
        shown, found, targets, collective = _with_last(draft, last, found, targets, collective)
    assert found is not None
    assert targets is not None
    faults = tuple(Fault(name, error.message, error.hint) for name, error in reader.errors.items())
    rows = einsums.rows if einsums and len(einsums.rows) == len(draft.specs) else _rows_of(draft, last)
    return Scene(draft, *found, rows, targets, collective, shown, faults)


def first_scene(draft: Draft) -> Scene:
    """The scene of a draft that nothing came before: of what has faults the usual draft is shown."""
    try:
        return read(draft)
    except ShardvizError:
        return read(draft, read(Draft()))


def _with_last(
    draft: Draft,
    last: Scene,
    found: tuple[Problem, Plan] | None,
    targets: tuple[Target, ...] | None,
    collective: CollectiveQuestion | None,
) -> tuple[Draft, tuple[Problem, Plan], tuple[Target, ...], CollectiveQuestion | None]:
    """What is shown of a draft with faults: what they leave valid, else the last."""
    shown = draft
    if found is None:
        values = {name: getattr(last.shown, name) for name in PROBLEM_FIELDS}
        shown, found = replace(shown, **values), (last.problem, last.plan)
    if targets is None:
        shown, targets = replace(shown, targets=last.shown.targets), last.targets
    if draft.collective is not None and collective is None:
        shown, collective = replace(shown, collective=last.shown.collective), last.collective
    return shown, found, targets, collective


@dataclass
class _Reader:
    """Reads the fields one after another, and keeps the first error of each."""

    draft: Draft
    _last: Scene | None
    errors: dict[str, ShardvizError] = field(default_factory=dict)

    @contextmanager
    def _field(self, name: str, text: str = "") -> Iterator[None]:
        try:
            with reader_errors():
                yield
        except ShardvizError as error:
            self.errors.setdefault(name, _better(error, text))

    def mesh(self) -> Mesh | None:
        """The mesh in the devices' order; None where one of both cannot be read."""
        mesh = None
        with self._field("mesh", self.draft.mesh):
            mesh = read_mesh(self.draft.mesh, "")
        if mesh is None or not self.draft.device_order.strip():
            return mesh
        with self._field("device_order", self.draft.device_order):
            return read_mesh(self.draft.mesh, self.draft.device_order)
        return None

    def einsums(self, mesh: Mesh | None) -> Einsums | None:
        """The einsums, if their text can be read and there is a spec for every row."""
        from shardviz.drafts.lines import looks_like_command
        from shardviz.notation import parse_sizes

        draft = self.draft
        sizes: dict[str, int] = {}
        with self._field("sizes", draft.sizes):
            sizes = parse_sizes(draft.sizes)
        if "sizes" in self.errors and "..." in draft.einsum:
            return None
        with self._field("einsum", draft.einsum):
            if looks_like_command(draft.einsum):
                # Its words may well be letters of an einsum.
                raise QuestionError("this is a whole command line", "enter it again, and it is read as one")
            names = None if mesh is None else mesh.axis_names
            einsums = read_einsums(draft.einsum, ellipsis_rank(sizes), names)
            if einsums.written_specs is not None:
                raise QuestionError(
                    f"the subscripts of {quote(draft.einsum)} say how its arrays are split, as their rows do",
                    "enter it again, and its subscripts go to the rows",
                )
            if len(einsums.parts) > MAX_PARTS:
                raise QuestionError(
                    f"a chain of {len(einsums.parts)} einsums is too long to be planned while one types",
                    f"edit up to {MAX_PARTS} of them; `shardviz explain` takes more",
                )
            if len(einsums.rows) != len(draft.specs):
                raise QuestionError(
                    f"{plural(len(draft.specs), 'spec')} for {plural(len(einsums.rows), 'array')}",
                    "enter the einsum again",
                )
            return einsums
        return None

    def problem(self, mesh: Mesh | None, einsums: Einsums | None) -> tuple[Problem, Plan] | None:
        """The problem and its plan."""
        from shardviz.planner import Problem
        from shardviz.planner.problem import dimension_sizes
        from shardviz.sharding import canonical_dtype

        draft = self.draft
        dtype = ""
        with self._field("dtype", draft.dtype):
            dtype = canonical_dtype(draft.dtype)
        with self._field("axis_types", draft.axis_types):
            if draft.axis_types not in ("auto", "explicit"):
                raise QuestionError(
                    f"{quote(draft.axis_types)} is not an axis type", "the axis types are auto and explicit"
                )
        specs = None if mesh is None else self._specs(mesh, einsums)
        size: dict[str, int] = {}
        if einsums is not None and "sizes" not in self.errors:
            with self._field("sizes", draft.sizes):
                size = dimension_sizes(einsums.parts, draft.sizes)
        if einsums is None or mesh is None or specs is None or "sizes" in self.errors:
            return None
        parts = list(self._parts(mesh, einsums, specs, size, dtype or Draft().dtype))
        if self.errors:
            return None
        problem = Problem(mesh, tuple(parts), "explicit" if draft.axis_types == "explicit" else "auto")
        if self._last is not None and self._last.problem == problem:
            return self._last.problem, self._last.plan
        try:
            return problem, _planner(mesh).plan(problem)
        except ShardvizError as error:
            # It names the result that cannot be had.
            named = [n for n, row in enumerate(einsums.rows) if error.message.startswith(f"{row.name} ")]
            self.errors[f"specs.{(named or [len(einsums.rows) - 1])[0]}"] = error
        return None

    def _specs(self, mesh: Mesh, einsums: Einsums | None) -> list[PartitionSpec | None]:
        """The spec of every row; without einsums, only whether each is one."""
        specs: list[PartitionSpec | None] = []
        for number, text in enumerate(self.draft.specs):
            row = None if einsums is None else einsums.rows[number]
            specs.append(None)
            with self._field(f"specs.{number}", text):
                specs[-1] = spec = read_spec(text, mesh, row)
                if row is None:
                    continue
                if spec is None and row.role == "operand":
                    raise QuestionError(
                        f"the spec of {row.name} is open, but a program is given its operands",
                        "? may stand for results and intermediates; _ leaves a dimension whole",
                    )
                if spec is not None and spec.rank != len(row.dims):
                    raise QuestionError(
                        f"{quote(text)} has {plural(spec.rank, 'entry', 'entries')}, but {row.name} has "
                        f"{plural(len(row.dims), 'dimension')}",
                        "write one entry for each dimension; _ leaves a dimension whole",
                    )
        return specs

    def _parts(
        self,
        mesh: Mesh,
        einsums: Einsums,
        specs: list[PartitionSpec | None],
        size: dict[str, int],
        dtype: str,
    ) -> Iterator[Contraction]:
        """The contractions; a size that axes do not divide is the fault of the sizes where they are given,
        else of the spec."""
        from shardviz.planner import Contraction
        from shardviz.planner.problem import uneven_dims
        from shardviz.sharding import ShardedArray

        arrays = []
        for number, (row, spec) in enumerate(zip(einsums.rows, specs, strict=True)):
            with self._field("sizes"):
                shape = tuple(size[dim] for dim in row.dims)
                arrays.append(ShardedArray(row.name, row.dims, shape, dtype, spec))
                for error in uneven_dims(arrays[-1], mesh, self.draft.sizes):
                    with self._field("sizes" if self.draft.sizes.strip() else f"specs.{number}"):
                        raise error
        if len(arrays) == len(einsums.rows):
            for part, (operands, result) in zip(einsums.parts, einsums.places, strict=True):
                yield Contraction(part, tuple(arrays[place] for place in operands), arrays[result])

    def targets(self) -> tuple[Target, ...] | None:
        """Who is asked."""
        from shardviz.compiler import parse_targets

        with self._field("targets", self.draft.targets):
            return parse_targets(self.draft.targets)
        return None

    def collective(self, mesh: Mesh | None) -> CollectiveQuestion | None:
        """The collective of its own; that of the last scene where nothing of it has changed."""
        from shardviz.drafts.collective_question import collective_question

        draft, last = self.draft, self._last
        if draft.collective is None or mesh is None:
            return None
        if last is not None and last.collective is not None:
            same_mesh = last.collective.layout.mesh == mesh
            if same_mesh and last.shown.collective == draft.collective:
                return last.collective
        with self._field("collective", draft.collective.op):
            return collective_question(draft.collective, mesh)
        return None


@lru_cache(maxsize=1)  # most edits leave the mesh, and a planner remembers reshardings on its own
def _planner(mesh: Mesh) -> Planner:
    from shardviz.planner import Planner

    return Planner(mesh)


def _better(error: ShardvizError, text: str) -> ShardvizError:
    """What is wrong with a text; with the command line that it is, where it is one."""
    from shardviz.drafts.lines import draft_from_line, looks_like_command

    if not looks_like_command(text):
        return error
    try:
        draft_from_line(text, Draft())
    except ShardvizError as wrong:
        return wrong
    return error


def _rows_of(draft: Draft, last: Scene | None) -> tuple[Row, ...]:
    """Rows for the specs of an einsum that cannot be read: the last ones, if they are as many."""
    if last is not None and len(last.rows) == len(draft.specs):
        return last.rows
    count = len(draft.specs)
    return tuple(
        Row(0, place, f"array {place + 1}", (), "operand" if place + 1 < count else "result")
        for place in range(count)
    )
