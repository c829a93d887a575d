"""`shardviz.explain`, `rank`, `vary` and `search`: a plan, all shardings, costs over sizes, best meshes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from shardviz.answers import plans
from shardviz.answers.plans import ExplainAnswer, PricedProblem
from shardviz.api.arguments import (
    MachineLike,
    MeshLike,
    SpecsLike,
    as_machine,
    as_mesh,
    check_timeout,
    given_arrays,
    merged_sizes,
    target_text,
)
from shardviz.api.shared_worker import ask
from shardviz.api.shown import Shown, TimelineReport
from shardviz.documents.fields import KINDS
from shardviz.documents.plans import ranking_document, search_document
from shardviz.documents.programs import explain_document
from shardviz.errors import QuestionError, quote
from shardviz.forms.form import ProblemForm
from shardviz.lazy_names import LazyImports
from shardviz.notation.numbers import parse_sizes
from shardviz.planner.problem import Objective, Problem
from shardviz.planner.problem.training import Remat
from shardviz.reports.program_report import TargetTimes
from shardviz.targets import parse_targets
from shardviz.timeline.of_plan import plan_timeline

with LazyImports():
    from shardviz.answers import search as searching
    from shardviz.planner.search import mesh_choices, mesh_ranking
    from shardviz.render import plan_pages, plans_compared, search_view, sweep_view
    from shardviz.render.programs import target_answers

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.models.serving import ServedMesh
    from shardviz.planner.pricing.costs import Sweep
    from shardviz.planner.ranking import Candidate
    from shardviz.render.palette import Palette


@dataclass(frozen=True, repr=False)
class Explanation(Shown, ExplainAnswer):
    """The answer of `shardviz explain`: the plan with its cost, each target's answer, and its differences."""

    def timeline(self, target: str | None = None, machine: MachineLike = None) -> TimelineReport:
        """Return when each operation of a target's program, or of the plan, runs, and the live memory.

        A target's program is timed on its own hardware or `machine`, the plan on the machine of its `cost`.
        ``explain(…, times=True)`` adds the compiler's own schedule and memory. Raises `QuestionError` for a
        target without figures or without an answer."""
        if target is None:
            return TimelineReport(TargetTimes(plan_timeline(self.cost)))
        return TimelineReport(self.times(self.target(target), as_machine(machine)).found())

    def lines(self, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
        return [
            *plan_pages.explain_view(self.cost, width, palette, verbose=verbose),
            *target_answers.targets_table(self.told, self.problem, width, palette),
            *(target_answers.targets_view(self.told, self.problem, width, palette) if verbose else ()),
            *(() if verbose else plan_pages.assumption_lines(self.cost, width)),
        ]

    def document(self) -> dict[str, Any]:
        return explain_document(self.cost, self.compiled, self.differences)


def explain(
    einsum: str,
    *,
    mesh: MeshLike | None = None,
    specs: SpecsLike = None,
    sizes: Mapping[str, int] | str | None = None,
    dtype: str | None = None,
    target: str | Sequence[str] = ProblemForm.targets,
    device_order: str | Sequence[int] | None = None,
    axis_types: Literal["auto", "explicit"] = "auto",
    machine: MachineLike = None,
    timeout: float = 300.0,
    times: bool = False,
    objective: Objective = "given",
    backward: bool = False,
    remat: Remat = "none",
    optimizer: str | None = None,
    frozen: str = "",
) -> Explanation:
    """Return the collectives that an einsum needs on a mesh, and those that the compilers insert.

    - `einsum`: an einsum, several joined by semicolons, or a product such as ``A[I_X, J] * B[J, K]``, which
      has its own specs.
    - `mesh`: text, sizes by axis, a shardviz Mesh or a jax Mesh. `device_order`: device ids by row-major
      position.
    - `specs`: text, or for each operand a `PartitionSpec`, `NamedSharding`, `jax.Array` or
      `jax.ShapeDtypeStruct`; the mesh, sizes and dtype of these are used.
    - `sizes`: elements by dimension. `dtype`: the element type, also of single arrays: "bf16,W1=int8".
    - `target`: names as for ``--target``, or a list of them; "none" asks the planner only. `timeout`: seconds
      per target.
    - `machine`: the hardware that times are for; default: the first TPU or GPU target, else an assumed v5e.
    - `times`: also ask the compilers for their schedule and memory, for `Explanation.timeline`.
    - `objective`: "given" minimises time with the work divided as the arrays are, "time" with any division
      of the work, and "bytes" minimises the bytes sent.
    - `backward`: plan a whole train step. `remat` is what backward computes again: "layer", or "dots" for
      all but the matrix products. `optimizer`: as for ``--optimizer``. `frozen`: arguments without gradients.

    The answer has the error of a compiler that fails. Raises `QuestionError` for a question that cannot be
    read or does not fit, `TargetError` for targets that do not exist or cannot compile it."""
    check_timeout(timeout)
    asked = parse_targets(target_text(target))
    forward = decided_problem(
        einsum, mesh, specs, sizes, dtype, device_order, axis_types=axis_types, objective=objective
    )
    problem = plans.train_step(forward, backward, remat, optimizer or "none", frozen)
    answer = Explanation.planned(PricedProblem(problem, as_machine(machine), asked))
    for result in ask(problem, asked, timeout, target == ProblemForm.targets, times) if asked else ():
        answer = answer.with_result(result)
    return answer


def decided_problem(*question: Any, **options: Any) -> Problem:
    """The problem as of `problem_of`, whose operands all have specs; `QuestionError` where one has none."""
    problem = problem_of(*question, **options)
    if any(array.spec is None for array in problem.arguments):
        hint = "give specs='XY,Y_->X_', or compare all ways with shardviz.rank(…)"
        raise QuestionError("the arrays have no specs", hint)
    return problem


def problem_of(
    einsum: str,
    mesh: MeshLike | None,
    specs: SpecsLike,
    sizes: Mapping[str, int] | str | None,
    dtype: str | None,
    device_order: str | Sequence[int] | None = None,
    **options: Any,
) -> Problem:
    """The problem in the words of Python; `options` are those of `plans.problem_of`, which raises."""
    if not isinstance(einsum, str):
        raise QuestionError(f"{quote(repr(einsum))} is not an einsum", "give text such as 'bd,df->bf'")
    text, meshes, known_sizes, dtypes = given_arrays(einsum, specs)
    asked = as_mesh(next(iter(meshes), ProblemForm.mesh) if mesh is None else mesh, device_order)
    for other in map(as_mesh, meshes):
        if other.shape != asked.shape:
            problem = f"the shardings are on the mesh {other}, and the question on {asked}"
            raise QuestionError(problem, "use one mesh for all")
    if dtype is None:
        if len(dtypes) > 1:
            raise QuestionError(f"the arrays have the dtypes {', '.join(dtypes)}", "say dtype='bf16'")
        dtype = next(iter(dtypes), "bf16")
    written = _sizes_text(sizes)
    if known_sizes:
        written = _sizes_text(merged_sizes(known_sizes, parse_sizes(written)))
    return plans.problem_of(einsum, asked, specs=text, sizes=written, dtype=dtype, **options)


def _sizes_text(sizes: Mapping[str, int] | str | None) -> str:
    if sizes is None or isinstance(sizes, str):
        return sizes or ""
    return ",".join(f"{dim}={size}" for dim, size in sizes.items())


SHOWN, SHOWN_MESHES = 20, 10
"""Candidates and meshes that are shown; `Ranking.candidates` and `SearchReport.found` have all."""


@dataclass(frozen=True, repr=False)
class Ranking(Shown):
    """The answer of `shardviz rank`: the candidates, each with its plan, by time."""

    problem: Problem
    candidates: tuple[Candidate, ...]

    def lines(self, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
        return plans_compared.ranking_view(self.problem, self.candidates, width, palette, SHOWN, verbose)

    def document(self) -> dict[str, Any]:
        return ranking_document(self.candidates)


def rank(
    einsum: str,
    *,
    mesh: MeshLike | None = None,
    specs: SpecsLike = None,
    sizes: Mapping[str, int] | str | None = None,
    dtype: str | None = None,
    machine: MachineLike = None,
) -> Ranking:
    """Rank the shardings of an einsum's operands by time, by the planner alone.

    The parameters are those of `explain`. `specs` may fix some operands: ``?`` or None is ranked, as in
    ``X_,?->X_``; without `specs` all are. Raises `QuestionError` for a question that cannot be read, or that
    has too many shardings."""
    problem = problem_of(einsum, mesh, specs, sizes, dtype, ranked=True)
    return Ranking(problem, PricedProblem(problem, as_machine(machine)).ranking())


@dataclass(frozen=True, repr=False)
class CostCurve(Shown):
    """The answer of `shardviz sweep`: `sweep` has the cost at every size, and the crossings."""

    sweep: Sweep

    def lines(self, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
        return sweep_view.sweep_view(self.sweep, width, palette, verbose)

    def document(self) -> dict[str, Any]:
        return KINDS["sweep"].document(self.sweep)


def vary(
    einsum: str,
    over: str,
    *,
    mesh: MeshLike | None = None,
    specs: SpecsLike = None,
    sizes: Mapping[str, int] | str | None = None,
    dtype: str | None = None,
    machine: MachineLike = None,
) -> CostCurve:
    """Return compute and communication of an einsum's plan over a range of sizes, and where they cross.

    `over` is a dimension or a mesh axis with its range: ``"b=1Ki:1Mi"`` doubles, ``"b=1Ki:1Mi:4"``
    quadruples. Only the assumed machine can vary an axis. The other parameters are those of `explain`. Raises
    `QuestionError` for a question that cannot be read, a size that axes do not divide, or an unknown time."""
    problem = decided_problem(einsum, mesh, specs, sizes, dtype)
    return CostCurve(PricedProblem(problem, as_machine(machine)).sweep(over))


@dataclass(frozen=True, repr=False)
class SearchReport(Shown):
    """The answer of `shardviz search`: `ranking` has every mesh with its best sharding, the fastest first,
    and `served` the first of them with the tokens of a model, if it serves."""

    ranking: mesh_ranking.MeshRanking
    served: tuple[ServedMesh, ...] = ()

    @property
    def found(self) -> tuple[mesh_choices.MeshSharding, ...]:
        return self.ranking.found

    def lines(self, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
        return search_view.search_view(
            self.ranking, width, palette, SHOWN_MESHES, verbose=verbose, served=self.served
        )

    def document(self) -> dict[str, Any]:
        return search_document(self.ranking, served=self.served)


def search(
    program: str,
    *,
    machine: MachineLike,
    axes: str = "",
    sizes: Mapping[str, int] | str | None = None,
    dtype: str = "bf16",
    keep: str = "",
    backward: bool = False,
    remat: Literal["none", "layer", "dots", "any"] = "none",
    optimizer: str | None = None,
    frozen: str = "",
    overlap: Literal["parameters", "none", "all"] = "parameters",
    microbatches: int | None = None,
    interleave: int | None = None,
    batch: int | None = None,
    sequence: int | None = None,
    serve: bool = False,
    cache: str = "",
    activations: str = "",
    load: str | float = "",
    offload: str = "any",
) -> SearchReport:
    """Return the meshes and shardings that run a program fastest on a machine.

    - `program`: an einsum, several joined by semicolons, or statements; ``x 32`` at the end repeats a layer.
      Or a model, ``"llama-3-70b"`` or the path of a config.json, with `batch` sequences of `sequence` tokens.
    - `axes`: those of the meshes, with kinds or sizes if needed: ``data,X=fsdp``, ``tensor=8``.
    - `keep`: fixed shardings, such as ``W1=_ tensor``.
    - `backward`, `remat`, `optimizer` and `frozen`: those of `explain`; a `remat` of "any" is chosen.
    - `microbatches` and `interleave` of a pipeline: None, and the best are found.
    - `serve`: a token of a model, with a KV cache and activations in the dtypes `cache` and `activations`.
    - `load`: that of a model's fullest expert, over the mean: ``1.5``; ``"1.5,1.25"`` with a capacity factor.
    - `offload`: "optimizer" keeps its state in the host's memory, "none" on devices; "any" chooses.

    Raises `QuestionError` for a question that cannot be read."""
    named = as_machine(machine)
    if named is None:
        raise QuestionError("a search needs a machine", "give machine='v5p:4x4x8'")
    question = searching.search_question(
        program,
        named,
        axes,
        sizes=_sizes_text(sizes),
        dtype=dtype,
        keep=keep,
        backward=backward,
        remat=remat,
        optimizer=optimizer or "none",
        frozen=frozen,
        overlap=overlap,
        microbatches=microbatches,
        interleave=interleave,
        batch=batch,
        sequence=sequence,
        serve=serve,
        cache=cache,
        activations=activations,
        load=load,
        offload=offload,
    )
    answer, served = mesh_ranking.best_meshes(question), list["ServedMesh"]()
    if serve and answer.found:
        *_, (answer, served, _) = searching.served_meshes(answer, program, SHOWN_MESHES, load=load)
    return SearchReport(mesh_ranking.with_smallest_machine(answer), tuple(served))
