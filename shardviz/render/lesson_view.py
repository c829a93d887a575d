"""A lesson on the screen (bar, words of each stage, goal), as a page, and the course as a list. `fits` checks
that every text can be read at once in a terminal of 80×24."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO

from rich.text import Text

from shardviz.forms.command_line import to_command_line
from shardviz.forms.wording import as_sentence
from shardviz.lessons.attempt import TITLES, UNKNOWN, Attempt, begin, stages
from shardviz.lessons.hand_in import Grade
from shardviz.lessons.lesson import Lesson, Prediction
from shardviz.lessons.measures import answer_of, choices, is_right, typed_form
from shardviz.lessons.progress import CourseEntry, State
from shardviz.lessons.writing import WritingCheck
from shardviz.render.command_lines import command_lines
from shardviz.render.lines import sentence, sentences
from shardviz.render.tables import giving_way, table

WAYS = {
    "a": "plays the next algorithm",
    "i": "opens its line: --axis, --data, --algorithm, …",
    "u": "undoes the last change",
}
"""The keys that change a collective, where that is the sandbox."""
CURSOR, RIGHT, WRONG = "▸", "✓", "✗"
MARKS: dict[State, str] = {"new": "○", "begun": "◐", "solved": "●"}
COLUMNS, LINES = 80, 24
GUIDE = (34, LINES - 4)
"""Columns and lines of the guide: above it stand the lesson, the problem and the screens, below the keys."""
STRIP = COLUMNS - 2


@dataclass(frozen=True)
class StageFacts:
    """The facts that a stage's words depend on besides the attempt. `choices` are without `UNKNOWN`,
    `reasons` say why those but the `answer` are wrong, and `chosen` is the number of the one under the
    cursor, or -1. `typed` is None where an answer is chosen. `after` is the title of the next lesson, if any.
    `text` or `file` is what is written, its `check` None while that runs; `hints` counts those shown."""

    choices: Sequence[str] = ()
    answer: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    chosen: int = -1
    typed: str | None = None
    after: str = ""
    text: str = ""
    file: str = ""
    check: WritingCheck | None = None
    hints: int = 0


def stage_facts(prediction: Prediction, seed: str = "") -> StageFacts:
    """A prediction's choices, in the order of a learner's `seed`. `ShardvizError` if it has no answer."""
    answer = answer_of(prediction)
    reasons = {answer.shown(text): reason for text, reason in prediction.wrong.items()}
    return StageFacts(tuple(map(answer.shown, choices(prediction, seed))), answer.text, reasons)


def heading(attempt: Attempt) -> str:
    """``Predict 1 of 2``."""
    kind, number = attempt.stage
    count = len(attempt.lesson.predictions)
    numbered = f" {number + 1} of {count}" if kind in ("predict", "reveal") and count > 1 else ""
    again = ", new numbers" if attempt.prediction is not None and number in attempt.again else ""
    return f"{TITLES[kind]}{numbered}{again}"


def guide_page(
    attempt: Attempt, facts: StageFacts, width: int, height: int, is_wide_set: bool = False
) -> tuple[list[Text], int]:
    """The stage's words, without blank lines where `height` is too low, and the number of the line to see."""
    blocks, at = _blocks(attempt, facts, width, is_wide_set)
    blocks.insert(0, [Text(heading(attempt), "bold")])
    count = sum(map(len, blocks)) + len(blocks) - 1
    gap = [Text()] if count <= height else []
    seen = sum(len(block) + len(gap) for block in blocks[:at])
    lines = [line for block in blocks for line in (*block, *gap)]
    return lines[: len(lines) - len(gap)], seen


def _blocks(
    attempt: Attempt, facts: StageFacts, width: int, is_wide_set: bool
) -> tuple[list[list[Text]], int]:
    """The blocks below the heading, and which of all has to be seen."""
    kind, prediction = attempt.stage.kind, attempt.prediction
    if kind == "predict" and prediction is not None:
        question = sentence(prediction.question, width, style="bold")
        if facts.typed is not None:
            said = sentence(f"{facts.typed}▏", width, lead=f"{CURSOR} ", style="bold")
            way = f"Type {typed_form(prediction)}. enter alone says: I don't know."
            way = "enter answers, esc clears." if facts.typed else way
            return [question, said, sentence(way, width, style="dim")], 2
        texts = [*facts.choices, UNKNOWN] if facts.chosen >= 0 else facts.choices
        choices = []
        for number, text in enumerate(texts):
            mark, style = (CURSOR, "bold") if number == facts.chosen else (" ", "")
            choices.append(sentence(text, width, lead=f"{mark} ", style=style))
        if is_wide_set:
            return [question, *choices], 2 + max(facts.chosen, 0)
        return [question, [line for choice in choices for line in choice]], 1
    if kind == "reveal" and prediction is not None:
        question = sentence(prediction.question, width, style="dim")
        return [question, *_verdict(attempt, prediction, facts, width)], 2
    if kind == "code":
        after = f"n opens the next lesson: {facts.after}." if facts.after else "That was the last lesson."
        verb = "saw" if attempt.lesson.program else "made"
        code = f"This is what you {verb}, as a JAX program. It runs unchanged, on simulated devices."
        return [sentence(said, width) for said in (code, "c opens it to copy or to save.", after)], 0
    if kind == "change":
        ways = [line for key, way in WAYS.items() for line in sentence(way, width, lead=f"{key}  ")]
        return [sentence("You can change the collective in the picture.", width), ways], 0
    if kind == "write" and (writing := attempt.lesson.writing) is not None:
        task = [sentence(part, width) for part in writing.task.split("\n")]
        check = facts.check or WritingCheck(())
        said = written_lines(attempt.lesson, check, width, facts.hints, "Checking …" * (facts.check is None))
        if writing.goal is not None:
            return [*task, sentence(facts.text, width, lead="enter  "), said], len(task) + 2
        if not facts.file:
            way = f"shardviz lesson {attempt.lesson.number} --watch FILE.py"
            return [*task, sentence(f"It is checked in a terminal of your own: {way}", width)], len(task) + 1
        edit = sentence("Edit this file in your editor. It is checked at every save:", width)
        return [*task, edit, sentence(facts.file, width, style="bold"), said], len(task) + 3
    text = attempt.lesson.explain if kind == "explain" else attempt.lesson.see
    return [sentence(part, width) for part in text.split("\n") if part], 0


def _verdict(attempt: Attempt, prediction: Prediction, facts: StageFacts, width: int) -> list[list[Text]]:
    said = attempt.answers[attempt.stage.number]
    is_so = said is not None and is_right(prediction, said)
    right = f"{said} is right." if said == facts.answer else f"It is {facts.answer}."
    if is_so and said != facts.answer:
        right = f"{said} is close enough: it is {facts.answer}."
    verdict = sentence(right, width, lead=f"{RIGHT} ", style="bold")
    if said not in (None, UNKNOWN) and not is_so:
        wrong = sentence(f"You said {said}.", width, lead=f"{WRONG} ")
        reason = facts.reasons.get(said or "")
        if reason is not None:
            return [[*wrong, *verdict], sentence(reason, width)]
        verdict = [*wrong, *verdict]
    # Without a mistake of their own, readers learn what is wrong with the likeliest one.
    likeliest = [f"Why not {text}? {reason}" for text, reason in facts.reasons.items()][:1]
    return [verdict, *(sentence(words, width) for words in likeliest)]


def written_lines(
    lesson: Lesson, check: WritingCheck, width: int, hints: int, instead: str = ""
) -> list[Text]:
    """The right parts of a text, and its first fault, or `instead` of one; then the last of so many hints."""
    lines = [line for said in check.right for line in sentence(as_sentence(said), width, lead=f"{RIGHT} ")]
    if not check.wrong:
        lead, style = ("", "dim") if instead else (f"{RIGHT} ", "bold")
        lines += sentence(instead or "What you wrote passes.", width, lead=lead, style=style)
    else:
        lines += sentence(as_sentence(check.wrong), width, lead=f"{WRONG} ")
        lines += sentence(as_sentence(check.hint), width, indent=2, style="dim")
    told = lesson.writing.hints if lesson.writing is not None and (check.wrong or instead) else ()
    if shown := told[:hints]:
        lines += sentence(shown[-1], width, lead=f"Hint {len(shown)} of {len(told)}  ")
    return lines


def bar(attempt: Attempt, width: int) -> Text:
    """``3  Rows, columns, replicas      ●●◉○○○○○  Predict``; what does not fit is left out from the right."""
    lesson = attempt.lesson
    number = f"{lesson.number}  " if lesson.number else ""
    line = Text.assemble((f"{number}{lesson.title}", "bold"))
    count = len(stages(lesson))
    dots = f"{'●' * attempt.place}◉{'○' * (count - attempt.place - 1)}"
    name = TITLES[attempt.stage.kind]
    solved = "  ✓ solved" if attempt.is_solved else ""
    ends = (f"{dots}  {name}{solved}", f"{dots}  {name}", dots)
    end = next((end for end in ends if line.cell_len + len(end) + 2 <= width), f"  {dots}")
    line.truncate(max(width - len(end), 1), overflow="ellipsis")
    return line.append(" " * (width - line.cell_len - len(end))).append(end)


def strip_lines(
    attempt: Attempt, difference: str | None, hint: int, is_asked: bool, width: int, most: int
) -> list[Text]:
    """At most `most` lines: the goal, the hint that is looked at (its number from 1, or 0), and the first
    `difference` between the sandbox and the goal, if any. Where not all of it fits, a hint that has just been
    asked for comes first, in an untouched sandbox the goal, and after an edit the difference."""
    goal = sentence(attempt.lesson.goal.text, width, lead="Goal  ")
    count = len(attempt.lesson.hints)
    shown = sentence(attempt.lesson.hints[hint - 1], width, lead=f"Hint {hint} of {count}  ") if hint else []
    if difference is None:
        last = sentence("The goal is met. n continues.", width, lead=f"{RIGHT} ", style="bold")
    else:
        last = sentence(difference, width, lead=f"{WRONG} ")
        last += sentence("The goal was met. n continues.", width, style="dim") if attempt.is_solved else []
    if len(goal) + len(shown) + len(last) <= most:
        return [*goal, *shown, *last]
    if is_asked:
        return [*_cut(shown, most, width), *_cut(last, most - len(shown), width)]
    if attempt.draft == attempt.lesson.setup:
        goal = _cut(goal, most - min(len(last), 2), width)
        return [*goal, *_cut(last, most - len(goal), width)]
    last = _cut(last, most - 1, width)
    return [*_cut(goal, most - len(last), width), *last]


def _cut(lines: list[Text], most: int, width: int) -> list[Text]:
    if len(lines) <= most:
        return lines
    if most <= 0:
        return []
    kept = [*lines[: most - 1], lines[most - 1].copy()]
    kept[-1].append(" …")
    kept[-1].truncate(width, overflow="ellipsis")
    return kept


def fits(lesson: Lesson) -> list[str]:
    """The texts that do not fit, a sentence each."""
    letters, faults = len(lesson.title), []
    if letters > 46:  # beside the dots of the stages
        faults.append(f"title has {letters} letters; 46 fit")
    faults += _stages(lesson)
    texts = {"goal.text": ("Goal  ", lesson.goal.text)}
    texts |= {f"hints.{i}": (f"Hint {i} of 3  ", hint) for i, hint in enumerate(lesson.hints, 1)}
    for name, (lead, text) in texts.items():
        if len(sentence(text, STRIP, lead=lead)) > 2:
            faults.append(f"{name} takes more than 2 lines of {STRIP} columns")
    return faults


def _stages(lesson: Lesson) -> Iterator[str]:
    width, height = GUIDE
    too_long: set[int] = set()
    first = begin(lesson)
    second = replace(first, again=frozenset(range(len(lesson.predictions))))
    places = ((start, index) for start in (first, second) for index, _ in enumerate(stages(lesson)))
    for at in (replace(start, place=index) for start, index in places):
        stage = at.stage
        if at.again and (at.prediction is None or at.prediction is lesson.predictions[stage.number]):
            continue
        # A question that is too long is so again above each answer.
        if stage.kind == "change" or (stage.kind == "reveal" and stage.number in too_long):
            continue
        tellings: list[tuple[str | None, StageFacts]] = [(None, StageFacts())]
        if at.prediction is not None:
            typed = None if at.prediction.tolerance is None else ""
            facts = replace(stage_facts(at.prediction), chosen=0, typed=typed)
            # A reveal has something to say to each answer.
            every = (None,) if stage.kind == "predict" else (*facts.choices, UNKNOWN)
            tellings = [(said, facts) for said in every]
        for said, facts in tellings:
            answered = replace(at, answers=(said,) * len(lesson.predictions))
            lines, _ = guide_page(answered, facts, width, height)
            where = stage.kind if said is None else f"predict.{stage.number + 1} after the answer {said!r}"
            widest = max(line.cell_len for line in lines)
            if stage.kind == "predict":
                where = f"predict.{stage.number + 1}.question with its choices"
                too_long |= {stage.number} if widest > width or len(lines) > height else set()
            if widest > width:
                yield f"{where} has a word of {widest} columns; {width} fit"
            elif len(lines) > height:
                yield f"{where} takes {len(lines)} lines of {width} columns; {height} fit"


def course_line(entry: CourseEntry) -> Text:
    """``●  3  Rows, columns, replicas   solved``."""
    words = "solved" * (entry.state == "solved")
    if entry.state == "begun" and entry.stage:
        words = f"at {entry.stage}"
    line = Text.assemble(f"{MARKS[entry.state]} ", (f"{entry.number:>2}  ", "dim"), entry.title)
    return line.append(f"  {words}", "dim") if words else line


def course_page(entries: Sequence[CourseEntry], width: int) -> list[Text]:
    """A line for each lesson, then how many are solved and the command that opens the next one."""
    counts = Counter(entry.state for entry in entries)
    lines = [Text("Lessons", "bold"), Text()]
    lines += [line[:width] for line in map(course_line, entries)]
    legend = "   ".join(f"{mark} {counts[state]} {state}" for state, mark in MARKS.items() if counts[state])
    lines += [Text(), *sentence(legend, width, style="dim")]
    begun = next((entry for entry in entries if entry.state == "begun"), None)
    following = begun or next((entry for entry in entries if entry.state == "new"), None)
    if following is None:
        return [*lines, *sentence("All lessons are solved; shardviz lesson 1 opens the first again.", width)]
    verb = "goes on with" if begun else "opens"
    return [*lines, *sentence(f"shardviz lesson {following.number} {verb} “{following.title}”.", width)]


def grades_page(rows: Sequence[Grade], width: int) -> list[Text]:
    """A line for each pupil, with the remarks below it; narrow pages lack the hints, then the minutes."""
    first, *heads = _heads()[: Grade._fields.index("remarks")]
    cells = [[*map(str, row[: 1 + len(heads)])] for row in rows]
    lines = table(cells, width, 0, (first, *map(">{}".format, heads)), giving_way("hints", "minutes"))
    remarks = [f"{row.pupil}: {row.remarks}" for row in rows if row.remarks]
    return [*lines, *[Text()] * bool(remarks), *sentences(remarks, width)]


def _heads() -> list[str]:
    return [name.replace("_", " ") for name in Grade._fields]


def grades_csv(rows: Sequence[Grade]) -> str:
    """The table for a spreadsheet, in which no text is taken for a formula."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_heads())
    for row in rows:
        writer.writerow([f"'{cell}" if str(cell).startswith(tuple("=+-@")) else cell for cell in row])
    return file.getvalue()


def lesson_page(lesson: Lesson, width: int) -> list[Text]:
    """A lesson as text: what to see and its command, the questions, the goal, and last the answers."""
    number = f"{lesson.number}  " if lesson.number else ""
    lines = [*sentence(lesson.title, width, lead=number, style="bold"), Text()]
    lines += sentences(lesson.see.split("\n"), width)
    command = to_command_line(lesson.setup, "explain" if lesson.setup.collective is None else "step")
    lines += [Text.assemble("  ", (line, "dim")) for line in command_lines(command, width - 2)]
    answers = []
    for index, prediction in enumerate(lesson.predictions, 1):
        facts = stage_facts(prediction)
        lines += [Text(), *sentence(prediction.question, width, lead=f"Predict {index}  ")]
        is_typed = prediction.tolerance is not None
        choices = (typed_form(prediction),) if is_typed else (*facts.choices, UNKNOWN)
        lines += sentences(choices, width, 2, "· ")
        answers.append(f"{index}: {facts.answer}.")
    lines += [Text(), *sentence(lesson.goal.text, width, lead="Change  "), Text()]
    if lesson.writing is not None:
        lines += [*sentence(lesson.writing.task.replace("\n", " "), width, lead="Write  "), Text()]
    lines += sentence("  ".join(answers), width, lead="Answers  ")
    lines += sentences(lesson.explain.split("\n"), width)
    opened = f"shardviz lesson {lesson.number}" if lesson.number else "the same command"
    end = f"In a terminal, {opened} shows the pictures, hints and a sandbox."
    return [*lines, Text(), *sentence(end, width, style="dim")]
