"""The problem that a form states and its plan, or the errors of its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, cast

from shardviz.errors import QuestionError, ShardvizError, plural, quote
from shardviz.forms.form import FLAG, PROBLEM_FIELDS, ArrayRow, FieldError, ProblemForm
from shardviz.forms.parsing import Einsums, looks_like_command, parsed, reader_errors
from shardviz.lazy_names import LazyImports
from shardviz.planner.plan import Plan
from shardviz.planner.problem import Objective, Problem, Statement, dtypes
from shardviz.planner.problem.reading import program_problem, with_layers
from shardviz.planner.problem.sizes import padded
from shardviz.planner.problem.training import Training, parse_frozen, parse_optimizer, parse_remat
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.targets import Target, parse_targets

with LazyImports():
    from shardviz.forms import collective as collectives, command_line
    from shardviz.hardware import machine, machine_file
    from shardviz.planner import planner, training
    from shardviz.planner.pricing import costs
    from shardviz.targets import hardware

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine, PlacedMesh
    from shardviz.planner.planner import Planner
    from shardviz.stepping.question import CollectiveQuestion

MAX_PARTS = 32
"""Einsums of a chain; planning a longer one takes longer than a key may."""
MOST_DEVICES_AT_ONCE = 8
"""On so many devices one einsum is planned before anybody notices that it was not."""

FindPlan = Callable[["Problem", "PlacedMesh"], "Plan | None"]
"""The plan of a problem on a placed mesh; None while it is being made. Raises `ShardvizError`."""


@dataclass(frozen=True)
class ResolvedProblem:
    """A form with the problem that it states, its plan, and the last valid ones where it has errors or its
    plan is still being made.

    `rows` are the form's, one for each of its specs. `problem` with `plan`, `targets` and `collective` are
    each the form's where its fields are valid, else the last valid ones; `faults` say why not. `collective`
    is the question of a collective of its own, or None. `shown` is the form that problem, targets and
    collective came from: where there is no error, `draft` itself. `named` is the mesh on the machine of its
    field; None where that is empty or wrong. `planning` is the form's own problem while its plan is made;
    the plan of one as it is given has no steps yet."""

    draft: ProblemForm
    problem: Problem
    plan: Plan
    rows: tuple[ArrayRow, ...]
    targets: tuple[Target, ...]
    collective: CollectiveQuestion | None
    shown: ProblemForm
    faults: tuple[FieldError, ...] = ()
    named: PlacedMesh | None = None
    planning: Problem | None = None

    @property
    def is_as_given(self) -> bool:
        """True for a problem that is shown before it is planned."""
        return self.planning is self.problem

    @property
    def stated(self) -> ResolvedProblem:
        """The same with the form's own problem in place of the last one, also while its plan is made."""
        if self.planning is None:
            return self
        shown = replace(self.draft, targets=self.shown.targets, collective=self.shown.collective)
        return replace(self, problem=self.planning, shown=shown)

    @cached_property
    def placed(self) -> PlacedMesh:
        """The mesh on the machine that prices it."""
        return self.named or hardware.placed_for(None, self.targets, self.problem.mesh)

    @cached_property
    def cost(self) -> costs.PlanCost:
        return costs.price(self.plan, self.placed)

    @property
    def machine(self) -> Machine:
        """The machine that prices the problem: the field's, else the first target's, else an assumed one."""
        return self.placed.machine


def resolve(
    draft: ProblemForm, last: ResolvedProblem | None = None, find_plan: FindPlan | None = None
) -> ResolvedProblem:
    """The problem of a form. Where fields have errors, all that depends on them is that of `last`, and so is
    the problem as long as `find_plan` has no plan of it; without `find_plan` the plan is made here.

    Every field that is wrong has an error, as far as it can be told while others are wrong. Raises the
    first error as a `ShardvizError` when there is no `last`."""
    resolver = _Resolver(draft, last, find_plan)
    mesh = resolver.mesh()
    einsums = resolver.einsums()
    # The machine is looked for once the problem is known to be valid, and its errors come after those.
    named_machine = cache(lambda: resolver.named(mesh))
    named_targets = cache(resolver.targets)
    solved = resolver.problem(
        mesh, einsums, lambda mesh: named_machine() or hardware.placed_for(None, named_targets() or (), mesh)
    )
    targets, named = named_targets(), named_machine()
    collective = resolver.collective(mesh)
    shown = draft
    if resolver.errors or resolver.planning is not None:
        if last is None:
            if resolver.errors:
                raise next(iter(resolver.errors.values()))
            last = resolve(ProblemForm())
        if solved is None:
            kept = [name for name in (*PROBLEM_FIELDS, "specs") if name != "targets"]
            shown = replace(shown, **{name: getattr(last.shown, name) for name in kept})
            solved, named = (last.problem, last.plan), last.named
        if targets is None:
            shown, targets = replace(shown, targets=last.shown.targets), last.targets
        if draft.collective is not None and collective is None:
            shown, collective = replace(shown, collective=last.shown.collective), last.collective
        if named is None:
            shown = replace(shown, machine="")
    assert solved is not None
    assert targets is not None
    faults = tuple(FieldError(name, error.message, error.hint) for name, error in resolver.errors.items())
    rows = einsums.rows if einsums else _rows_of(draft, last)
    return ResolvedProblem(draft, *solved, rows, targets, collective, shown, faults, named, resolver.planning)


def resolve_as_given(draft: ProblemForm) -> ResolvedProblem | None:
    """The problem of a form before it is planned, for a first picture of its arrays. None where a field is
    wrong, where the plan says how an array is split, or a machine or a collective is named; and where the
    plan may take longer than a picture without it should stand."""
    if draft.machine.strip() or draft.collective is not None:
        return None
    resolver = _Resolver(draft, None)
    mesh, einsums, targets = resolver.mesh(), resolver.einsums(), resolver.targets()
    try:
        problem = resolver.stated(mesh, einsums)
    except ShardvizError:
        return None
    if problem is None or einsums is None or targets is None or problem.mesh.size > MOST_DEVICES_AT_ONCE:
        return None
    if len(problem.parts) > 1 or any(array.spec is None for array in problem.arrays):
        return None
    assert problem.result.spec is not None
    plan = Plan(problem, (), problem.result.spec, ())
    return ResolvedProblem(draft, problem, plan, einsums.rows, targets, None, draft, planning=problem)


def resolve_first(draft: ProblemForm, find_plan: FindPlan | None = None) -> ResolvedProblem:
    """The problem of the first form: for what has errors, or no plan yet, the default form is shown."""
    try:
        return resolve(draft, None, find_plan)
    except ShardvizError:
        return resolve(draft, resolve(ProblemForm()), find_plan)


@dataclass
class _Resolver:
    """Checks the fields one after another, and keeps the first error of each."""

    draft: ProblemForm
    _last: ResolvedProblem | None
    _find_plan: FindPlan | None = None
    errors: dict[str, ShardvizError] = field(default_factory=dict)
    planning: Problem | None = None
    """The problem of which there is no plan yet."""

    def __post_init__(self) -> None:
        self._parsed = parsed(self.draft)

    @contextmanager
    def _field(self, name: str, text: str = "") -> Iterator[None]:
        """Keep the error of a field, or of the command line that its text is."""
        try:
            with reader_errors():
                yield
        except ShardvizError as error:
            if looks_like_command(text):
                try:
                    command_line.form_from_line(text, ProblemForm())
                except ShardvizError as of_command:
                    self.errors.setdefault(name, of_command)
            self.errors.setdefault(name, error)

    def _check_parsed(self, name: str, text: str) -> None:
        with self._field(name, text):
            if name in self._parsed.errors:
                raise self._parsed.errors[name]

    def _check_choice(self, name: str, problem: str, hint: str) -> None:
        """Keep the error of a field that has none of its choices."""
        text = getattr(self.draft, name)
        with self._field(name, text):
            if text not in PROBLEM_FIELDS[name].choices:
                raise QuestionError(f"{quote(text)} {problem}", hint)

    def mesh(self) -> Mesh | None:
        """The mesh in the devices' order; None where one of both cannot be read."""
        self._check_parsed("mesh", self.draft.mesh)
        self._check_parsed("device_order", self.draft.device_order)
        return None if self.errors else self._parsed.mesh

    def einsums(self) -> Einsums | None:
        """The einsums, if their text can be read and there is a spec for every row."""
        draft = self.draft
        self._check_parsed("sizes", draft.sizes)
        if "sizes" in self.errors and "..." in draft.einsum:
            return None
        with self._field("einsum", draft.einsum):
            if looks_like_command(draft.einsum):
                # Its words may well be letters of an einsum.
                raise QuestionError("this is a whole command line", "enter it again, and it is read as one")
            einsums = self._parsed.einsums
            if einsums is None:
                raise self._parsed.errors["einsum"]
            if einsums.written_specs is not None:
                raise QuestionError(
                    f"the subscripts of {quote(draft.einsum)} say how its arrays are split, as their rows do",
                    "enter it again, and its subscripts go to the rows",
                )
            if len(einsums.parts) > MAX_PARTS:
                raise QuestionError(
                    f"a program of {len(einsums.parts)} statements is too long to be planned while you type",
                    f"edit up to {MAX_PARTS} of them; `shardviz explain` takes more",
                )
            if self._parsed.rows is None:
                problem = f"{plural(len(draft.specs), 'spec')} for {plural(len(einsums.rows), 'array')}"
                raise QuestionError(problem, "enter the einsum again")
            return einsums
        return None

    def stated(self, mesh: Mesh | None, einsums: Einsums | None) -> Problem | None:
        """The problem; None where a field that it needs is wrong."""
        draft = self.draft
        given = dtypes.Dtypes()
        with self._field("dtype", draft.dtype):
            given = dtypes.parse_dtypes(draft.dtype)
        self._check_choice("axis_types", "is not an axis type", "the axis types are auto and explicit")
        self._check_choice("objective", "is not an objective", "the objectives are given, time and bytes")
        train = None if mesh is None else self._training(mesh)
        specs = None if mesh is None else self._specs(einsums)
        size: dict[str, int] = {}
        if einsums is not None and "sizes" not in self.errors:
            with self._field("sizes", draft.sizes):
                size = einsums.elements(draft.sizes)
        if einsums is None or mesh is None or specs is None or "sizes" in self.errors:
            return None
        arrays = []
        for row, spec in zip(einsums.rows, specs, strict=True):
            with self._field("sizes"):
                shape = tuple(size[dim] for dim in row.dims)
                arrays.append(ShardedArray(row.name, row.dims, shape, given.usual, spec))
        if self.errors:
            return None
        axis_types: Literal["auto", "explicit"] = "explicit" if draft.axis_types == "explicit" else "auto"
        if einsums.program is not None:
            by_name = {array.name: array.spec for array in arrays}
            usual = dtypes.Dtypes(given.usual)
            problem = program_problem(einsums.program, mesh, by_name, size, usual, axis_types)
        else:
            parts = (
                Statement(part, tuple(arrays[operand] for operand in operands), arrays[result])
                for part, (operands, result) in zip(einsums.parts, einsums.places, strict=True)
            )
            problem = Problem(mesh, tuple(parts), axis_types)
        with self._field("dtype", draft.dtype):
            problem = dtypes.with_dtypes(problem, given.own)
        objective = cast("Objective", draft.objective)
        with self._field("einsum", draft.einsum):
            problem = with_layers(problem, einsums.layers)
        with self._field("specs"):
            problem = replace(padded(problem), objective=objective)
        if self.errors:
            return None
        if train is not None:
            with self._field("frozen" if train.frozen else "backward"):
                problem = training.with_backward(problem, train)
            if self.errors:
                return None
        return problem

    def problem(
        self, mesh: Mesh | None, einsums: Einsums | None, placed: Callable[[Mesh], PlacedMesh]
    ) -> tuple[Problem, Plan] | None:
        """The problem and its plan, for the mesh as it is placed."""
        problem = self.stated(mesh, einsums)
        if problem is None or mesh is None or einsums is None:
            return None
        where = placed(mesh)
        try:
            if self._find_plan is None:
                last = self._last
                if last is not None and last.problem == problem and last.placed == where:
                    return last.problem, last.plan
                return problem, planned(problem, where)
            if (plan := self._find_plan(problem, where)) is not None:
                return problem, plan
            self.planning = problem
        except ShardvizError as error:
            # It names the result that cannot be had.
            named = [n for n, row in enumerate(einsums.rows) if error.message.startswith(f"{row.name} ")]
            self.errors[f"specs.{(named or [len(einsums.rows) - 1])[0]}"] = error
        return None

    def _training(self, mesh: Mesh) -> Training | None:
        """The choices of a train step; the fields beside `backward` say nothing without it."""
        draft = self.draft
        self._check_choice("backward", "is neither yes nor no", "enter yes or no")
        if draft.backward != FLAG:
            return None
        with self._field("remat"):
            remat = parse_remat(draft.remat)
        with self._field("optimizer"):
            optimizer = parse_optimizer(draft.optimizer, mesh)
        return None if self.errors else Training(remat, optimizer, parse_frozen(draft.frozen))

    def _specs(self, einsums: Einsums | None) -> list[PartitionSpec | None]:
        """The spec of every row; without einsums, only the errors of those that are not specs."""
        specs: list[PartitionSpec | None] = []
        for number, text in enumerate(self.draft.specs):
            name, spec = f"specs.{number}", self._parsed.specs[number]
            self._check_parsed(name, text)
            specs.append(None if isinstance(spec, str) else spec)
            if einsums is None or isinstance(spec, str):
                continue
            row = einsums.rows[number]
            with self._field(name, text):
                if spec is None and row.role == "operand":
                    problem = f"the operand {row.name} needs a spec"
                    hint = "? is for results and intermediates; _ leaves a dimension unsharded"
                    raise QuestionError(problem, hint)
                if spec is not None and spec.open_dims:
                    raise QuestionError(
                        f"dimension {row.dims[spec.open_dims[0]]} of {row.name} is left open, which one plan "
                        "does not decide",
                        "`shardviz rank` ranks all shardings; _ leaves a dimension unsharded",
                    )
                if spec is not None and spec.rank != len(row.dims):
                    raise QuestionError(
                        f"{quote(text)} has {plural(spec.rank, 'entry', 'entries')}, but {row.name} has "
                        f"{plural(len(row.dims), 'dimension')}",
                        "write one entry for each dimension; _ leaves a dimension unsharded",
                    )
        return specs

    def targets(self) -> tuple[Target, ...] | None:
        mesh = self._parsed.mesh
        with self._field("targets", self.draft.targets):
            return parse_targets(self.draft.targets, mesh.size if mesh else 0)
        return None

    def named(self, mesh: Mesh | None) -> PlacedMesh | None:
        """The mesh on the machine that is named; None where none is."""
        last, text = self._last, self.draft.machine
        if mesh is None or not text.strip():
            return None
        with self._field("machine", text):
            if last is not None and last.named is not None and last.shown.machine == text:
                if last.problem.mesh == mesh:
                    return last.named
                return machine.place_mesh(last.named.machine, mesh)
            return machine.place_mesh(machine_file.named_machine(text, mesh.size), mesh)
        return None

    def collective(self, mesh: Mesh | None) -> CollectiveQuestion | None:
        """The collective of its own; the last one where nothing of it has changed."""
        draft, last = self.draft, self._last
        if draft.collective is None or mesh is None:
            return None
        was = None if last is None or last.shown.collective != draft.collective else last.collective
        if was is not None and was.layout.mesh == mesh:
            return was
        with self._field("collective", draft.collective.op):
            return collectives.collective_question(draft.collective, mesh)
        return None


def planned(problem: Problem, placed: PlacedMesh) -> Plan:
    """The plan of a problem on a placed mesh. Raises `QuestionError`."""
    return _planner(problem.mesh, placed, problem.objective).plan(problem)


@lru_cache(maxsize=1)  # most edits leave the mesh, and a planner remembers prices on its own
def _planner(mesh: Mesh, placed: PlacedMesh, objective: Objective) -> Planner:
    return planner.Planner(mesh, placed, objective)


def _rows_of(draft: ProblemForm, last: ResolvedProblem | None) -> tuple[ArrayRow, ...]:
    """Rows for the specs of an einsum that cannot be read: the last ones, if they are as many."""
    if last is not None and len(last.rows) == len(draft.specs):
        return last.rows
    roles = [*["operand"] * (len(draft.specs) - 1), "result"][: len(draft.specs)]
    return tuple(ArrayRow(0, f"array {index + 1}", (), role) for index, role in enumerate(roles))
