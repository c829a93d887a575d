"""The text of a lesson's file → the lesson, or the key that is wrong and why."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.forms.form import SCREENS, TABLE_KEYS, CollectiveFields, ProblemForm, parameter_names
from shardviz.forms.options import form_from_table
from shardviz.hlo.collective import OPS as OPS_OF_HLO
from shardviz.lessons.lesson import Goal, Lesson, Prediction, TextFigure, Writing
from shardviz.lessons.measures.answers import percent
from shardviz.lessons.measures.plan import OPS
from shardviz.notation.mesh import parse_mesh
from shardviz.strict_table import StrictTable, closest, parsed_table

MAX_TEXT = 64_000
"""Characters of a lesson's file."""
MAX_DOTS = 1000
MAX_WORDS = 60
MAX_HINTS = 3
MAX_NAME = 400
"""Characters of a file's name that a message shows."""
MAX_WRONG = 3

_KEYS = ("title", "see", "screen", "explain", "hints", "program")
_KEYS_OF_TABLES = ("setup", "predict", "goal", "solution", "figures", "write")
_GOAL = ("text", "mesh", "holds", "collectives", "ends", "at_most", "axis_types", "may_change")
_CONDITIONS = _GOAL[1:-1]
_WRITE = ("task", "starter", "solution", "hints", "mesh", "target", "collectives", "bytes", "reference")
_WRITE_FIELD = (*_WRITE[:4], "target", "collectives", "field", "with", "goal")
_SETUP = (*TABLE_KEYS, "collective")
_COLLECTIVE = tuple(field.name for field in fields(CollectiveFields))

T = TypeVar("T")
Options = dict[str, Any]
"""A table as `form_from_table` takes it."""


class LessonError(QuestionError):
    """An error of a lesson: of the file `name`, at `key` (empty: the whole), with a `reason`."""

    def __init__(self, name: str, key: str, reason: str, hint: str = "") -> None:
        super().__init__(": ".join(filter(None, (quote_name(name), key, reason))), hint)
        self.name, self.key, self.reason = name, key, reason


def read_lesson(text: str, name: str, number: int = 0) -> Lesson:
    """The lesson that a file says; `name` is the file's, with its number and ending or without. Raises
    `LessonError` for text that is not TOML, a key that is missing, unknown or of a wrong type, and a problem
    that cannot be read; `checking` says whether the lesson is valid."""
    if len(text) > MAX_TEXT:
        reason = f"it has {len(text):,} characters"
        raise LessonError(name, "", reason, f"a lesson has at most {MAX_TEXT:,}")
    if max(line.count(".") for line in text.split("\n")) > MAX_DOTS:
        # Python's reader takes long for a key of so many parts.
        raise LessonError(name, "", f"a line has more than {MAX_DOTS:,} dots", "break it")
    whole = parsed_table(text, tomllib.loads, "TOML", "look at that line", partial(LessonError, name))
    whole.only(_KEYS + _KEYS_OF_TABLES)
    title, see = whole.text("title"), whole.text("see", words=MAX_WORDS, lines=True)
    screen = whole.choice("screen", SCREENS)
    setup = _options(whole.table("setup"))
    draft = _draft(whole, "setup", setup)
    asked = whole.tables("predict")
    if not asked:
        whole.fail("predict", "nothing is asked", "write [[predict]] and its keys below")
    told = whole.tables("figures") if "figures" in whole else ()
    return Lesson(
        name=re.sub(r"^\d+-|\.toml$", "", name),
        number=number,
        title=title,
        see=see,
        screen=screen,
        setup=draft,
        predictions=tuple(_prediction(table, setup, draft, screen) for table in asked),
        explain=whole.text("explain", words=MAX_WORDS, lines=True),
        goal=_goal(whole.table("goal"), setup),
        hints=whole.texts("hints", MAX_HINTS),
        solution=_varied(whole, "solution", setup),
        program=_code(whole, "program") if "program" in whole else "",
        writing=_writing(whole.table("write"), setup, draft) if "write" in whole else None,
        figures=tuple(_figure(table, setup, asked) for table in told),
    )


def _prediction(table: StrictTable, setup: Options, draft: ProblemForm, screen: str) -> Prediction:
    table.only(("question", "ask", "wrong", "with", "before", "screen", "tolerance", "again"))
    asked = Prediction(
        question=table.text("question"),
        ask=table.text("ask"),
        wrong=_wrong(table, 1),
        draft=_varied(table, "with", setup) if "with" in table else draft,
        before=table.choice("before", SCREENS, ""),
        screen=table.choice("screen", SCREENS, screen),
        tolerance=_tolerance(table, None),
    )
    if "again" not in table:
        return asked
    again, own = table.table("again"), _put_over(_options(table.table("with", {})), setup)
    again.only(("question", "wrong", "with", "tolerance"))
    tolerance = _tolerance(again, asked.tolerance)
    return replace(
        asked,
        again=replace(
            asked,
            question=again.text("question", asked.question),
            wrong=_wrong(again, tolerance is None),
            draft=_varied(again, "with", own),
            tolerance=tolerance,
        ),
    )


def _wrong(table: StrictTable, least: int) -> dict[str, str]:
    wrong = table.table("wrong", None if least else {})
    if not least <= len(wrong.values) <= MAX_WRONG:
        table.fail("wrong", f"it has {len(wrong.values)} answers", f"there are 1 to {MAX_WRONG} likely ones")
    for answer in wrong.values:
        wrong.check_shown(answer, answer.replace("\n", "\0"))
    return {answer: wrong.text(answer) for answer in wrong.values}


def _tolerance(table: StrictTable, default: Fraction | None) -> Fraction | None:
    return _read(table, "tolerance", percent) if "tolerance" in table else default


def _read(table: StrictTable, key: str, read: Callable[[str], T]) -> T:
    text = table.text(key)
    try:
        return read(text)
    except ShardvizError as error:
        table.fail(key, error.message, error.hint)


def _figure(table: StrictTable, setup: Options, asked: Sequence[StrictTable]) -> TextFigure:
    """A figure of the text; its problem is the setup, or that of a question, with keys put over it."""
    table.only(("says", "ask", "question", "with"))
    options = setup
    if "question" in table:
        number = table.count("question", len(asked))
        if not number:
            table.fail("question", "questions count from 1")
        question = asked[number - 1]
        options = _put_over(_options(question.table("with")), setup) if "with" in question else setup
    draft = _varied(table, "with", options) if "with" in table else form_from_table(options)
    return TextFigure(table.text("says"), table.text("ask"), draft)


def _goal(table: StrictTable, setup: Options) -> Goal:
    table.only(_GOAL)
    if not any(key in table for key in _CONDITIONS):
        table.fail(None, "it wants nothing", f"give one or more of {', '.join(_CONDITIONS)}")
    known = tuple(field.name for field in fields(ProblemForm))
    may_change = table.texts("may_change", len(known))
    for name in may_change:
        if name not in known:
            table.fail("may_change", f"a problem has no field {name}", closest(name, known))
    ends = None
    if "ends" in table:
        over = {"op": CollectiveFields.op} | _collective(table.table("ends"))
        ends = _draft(table, "ends", _put_over({"collective": over}, setup))
    return Goal(
        text=table.text("text"),
        mesh=str(_read(table, "mesh", parse_mesh)) if "mesh" in table else None,
        holds=table.settings("holds") if "holds" in table else None,
        collectives=_collectives(table) if "collectives" in table else None,
        ends=ends,
        at_most=table.settings("at_most") if "at_most" in table else None,
        axis_types=table.choice("axis_types", ("auto", "explicit")) if "axis_types" in table else None,
        may_change=may_change or (("collective",) if "collective" in setup else ("specs",)),
    )


def _collectives(table: StrictTable) -> tuple[str, ...]:
    texts = table.texts("collectives", 100)
    for number, text in enumerate(texts, 1):
        words = text.split()
        if len(words) != 3:
            reason = "it is not an operation, an array and its axes"
            table.fail(f"collectives.{number}", reason, "write for example all_gather A X")
        if words[0] not in OPS:
            table.fail(f"collectives.{number}", f"no plan has {words[0]}", closest(words[0], OPS))
    return texts


def _options(table: StrictTable) -> Options:
    """The keys of a setup, or of what is put over one."""
    table.only(_SETUP)
    options: Options = {key: table.setting(key) for key in table.values if key != "collective"}
    if "axis_types" in options and options["axis_types"] not in ("auto", "explicit"):
        table.fail("axis_types", "it is neither auto nor explicit")
    if "collective" in table:
        options["collective"] = _collective(table.table("collective"))
    return options


def _collective(table: StrictTable) -> Options:
    table.only(_COLLECTIVE)
    options: Options = {key: table.setting(key) for key in table.values if key != "parameters"}
    if "parameters" in table:
        parameters = table.table("parameters")
        known = parameter_names()
        parameters.only(known)
        options["parameters"] = {name: parameters.setting(name) for name in known if name in parameters}
    return options


def _varied(table: StrictTable, key: str, setup: Options) -> ProblemForm:
    return _draft(table, key, _put_over(_options(table.table(key)), setup))


def _put_over(over: Options, setup: Options) -> Options:
    """A table's keys over those of the setup, those of a collective too; an einsum may bring its specs."""
    merged = setup | over
    if "collective" in setup and "collective" in over:
        merged["collective"] = setup["collective"] | over["collective"]
    if "[" in over.get("einsum", "") and "specs" not in over:
        merged.pop("specs", None)
    return merged


def _draft(table: StrictTable, key: str, options: Options) -> ProblemForm:
    try:
        return form_from_table(options)
    except ShardvizError as error:
        own = table.table(key)
        own.fail(_culprit(options, own, error), error.message, error.hint)


def _culprit(options: Options, own: StrictTable, error: ShardvizError) -> str | None:
    """The key of a table without which the error would not be; None where it is not one of the table's."""
    for key in reversed(_SETUP):
        if key not in options or key not in own:
            continue
        try:
            form_from_table({name: value for name, value in options.items() if name != key})
        except ShardvizError as other:
            if other.message == error.message:
                continue
        return key
    return None


def _code(table: StrictTable, key: str) -> str:
    table.text(key, lines=True)
    code: str = table.values[key]
    return f"{code.strip(chr(10))}\n"


def _writing(table: StrictTable, setup: Options, draft: ProblemForm) -> Writing:
    is_field = "field" in table
    table.only(_WRITE_FIELD if is_field else _WRITE)
    options = _put_over(_options(table.table("with")), setup) if "with" in table else setup
    limits = table.table("collectives") if "collectives" in table else None
    if limits is not None:
        limits.only(OPS_OF_HLO)
    return Writing(
        task=table.text("task", words=MAX_WORDS, lines=True),
        starter=_code(table, "starter"),
        solution=_code(table, "solution"),
        hints=table.texts("hints", MAX_HINTS),
        mesh=_read(table, "mesh", parse_mesh) if "mesh" in table else parse_mesh(draft.mesh),
        target=table.text("target", "cpu"),
        collectives=None if limits is None else {op: limits.count(op, 1000) for op in limits.values},
        most_bytes=table.count("bytes", 2**40) if "bytes" in table else None,
        reference=table.text("reference", ""),
        goal=_goal(table.table("goal"), options) if is_field else None,
        field=table.choice("field", ("specs", "einsum")) if is_field else "",
        options=options,
    )


def quote_name(name: str) -> str:
    """A file's name as messages show it."""
    return name if name.isprintable() and len(name) <= MAX_NAME else quote(name, MAX_NAME)
