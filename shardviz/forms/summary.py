"""The problem on one line, in spans that name mesh axes or do not; and the questions of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shardviz.forms.form import COLLECTIVE_FIELDS, FLAG, PROBLEM_FIELDS, FormField, ProblemForm
from shardviz.forms.parsing import parsed
from shardviz.forms.resolve import ResolvedProblem
from shardviz.forms.spans import TextSpan, spec_spans, split_product

KEPT = 100
BESIDE = {"targets"}
"""The parts of a summary that change no figure of the plan."""


class SummaryPart(NamedTuple):
    """One field's text in spans; `kind` is the field's name, or "parameter"."""

    kind: str
    spans: tuple[TextSpan, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


def summary(resolved: ResolvedProblem) -> tuple[SummaryPart, ...]:
    """``bd,df->bf``, ``XY,Y_->X_``, ``X=2 Y=4``, ``bf16`` and the targets, of the draft that is shown. A
    product that was written in brackets has its subscripts, and no specs beside it. Device order, sizes, axis
    types and the machine are there where they are not the usual ones."""
    shown = resolved.shown
    names = ["device_order", "sizes", "dtype", "axis_types", "objective"]
    names += ["backward", "remat", "optimizer", "frozen"] if shown.backward == FLAG else []
    texts = {name: getattr(shown, name).strip() for name in names}
    texts |= {"sizes": texts["sizes"].replace(",", " "), "targets": shown.targets, "machine": shown.machine}
    for name in ("axis_types", "objective", "remat", "optimizer"):
        if texts.get(name) == getattr(ProblemForm, name):
            del texts[name]
    if "backward" in texts:
        texts["backward"] = "backward"
    return (*_problem(shown), SummaryPart("mesh", _mesh_spans(resolved)), *_parts(PROBLEM_FIELDS, texts))


def collective_summary(resolved: ResolvedProblem) -> tuple[SummaryPart, ...]:
    """``all_gather``, ``i=4``, ``3,9,5,2``, ``ring`` of a collective of its own, none of the problem. What
    was left to its default is not there, but for the algorithm. Empty where there is no such collective."""
    draft, question = resolved.shown, resolved.collective
    if draft.collective is None or question is None:
        return ()
    own = draft.collective
    texts = {name: getattr(own, name) for name in COLLECTIVE_FIELDS if name != "op"}
    texts |= {"algorithm": question.schedule.algorithm}
    return (
        SummaryPart("collective", (TextSpan(own.op),)),
        SummaryPart("mesh", _mesh_spans(resolved)),
        *_parts(PROBLEM_FIELDS, {"device_order": draft.device_order}),
        *_parts(COLLECTIVE_FIELDS, texts),
        *(SummaryPart("parameter", (TextSpan(f"{name} {text.strip()}"),)) for name, text in own.parameters),
    )


def _parts(fields: Mapping[str, FormField], texts: Mapping[str, str]) -> list[SummaryPart]:
    return [
        SummaryPart(name, (TextSpan(f"{fields[name].lead}{text.strip()}"),))
        for name, text in texts.items()
        if text.strip()
    ]


def _problem(draft: ProblemForm) -> list[SummaryPart]:
    read = parsed(draft)
    mesh, einsums = read.mesh, read.einsums
    assert mesh is not None
    assert einsums is not None
    specs = [spec for spec in read.specs if not isinstance(spec, str)]
    product = split_product(einsums, specs, mesh.shape)
    if product is not None:
        return [SummaryPart("einsum", product)]
    spans: list[TextSpan] = []
    if einsums.program is not None:
        for row, spec in zip(einsums.rows, specs, strict=True):
            if spec is not None and (spec.axes or spec.unreduced or row.role == "result"):
                spans += [TextSpan(f"{', ' * bool(spans)}{row.name}="), *spec_spans(spec)]
    for number, (operands, result) in enumerate(() if einsums.program else einsums.places):
        spans += [TextSpan("; ")] * bool(number)
        for operand in operands:
            spans += [TextSpan(",")] * bool(operand - operands[0])
            spans += spec_spans(specs[operand])
        if specs[result] is not None:
            spans += [TextSpan("->"), *spec_spans(specs[result])]
    return [SummaryPart("einsum", (TextSpan(draft.einsum),)), SummaryPart("specs", tuple(spans))]


def _mesh_spans(resolved: ResolvedProblem) -> tuple[TextSpan, ...]:
    spans: list[TextSpan] = []
    for name, size in resolved.problem.mesh.shape.items():
        spans += [TextSpan(" ")] * bool(spans)
        spans.append(TextSpan(f"{name}={size}", name))
    return tuple(spans)


class AskedQuestions:
    """The questions, the newest first; one that is asked again comes to the front."""

    def __init__(self) -> None:
        self.newest_first: tuple[ResolvedProblem, ...] = ()

    def take(self, resolved: ResolvedProblem) -> None:
        """Keep a valid problem whose plan is made, in place of the same one, whose plan may be another."""
        self.newest_first = (resolved, *self.before(resolved))[:KEPT]

    def before(self, resolved: ResolvedProblem) -> tuple[ResolvedProblem, ...]:
        """The questions other than this one."""
        return tuple(question for question in self.newest_first if not is_same_question(question, resolved))


def is_same_question(one: ResolvedProblem, other: ResolvedProblem) -> bool:
    """True for one problem on one machine, with one mesh: the targets only answer it."""
    return one is other or (one.problem, one.placed) == (other.problem, other.placed)


def what_differs(one: ResolvedProblem, other: ResolvedProblem) -> tuple[SummaryPart, ...]:
    """The parts of a question's summary that another one has not; all of them where it has only fewer."""
    parts = [part for part in summary(one) if part.kind not in BESIDE]
    others = summary(other)
    return tuple(part for part in parts if part not in others) or tuple(parts)
