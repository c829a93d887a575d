"""The timelines of the problem on screen: those that are known, those that are to be worked out, and the one
or two of them that are shown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from shardviz.tui.registry import TIME
from shardviz.tui.time.parts import ChartPart
from shardviz.tui.time.timelines import PLAN, PROFILE, Teller, TimelineQuestion, ToldTimelines, tell_profile

if TYPE_CHECKING:
    from shardviz.timeline.program_timeline import ProgramTimeline
    from shardviz.tui.compiler_queries import ShownAnswer
    from shardviz.tui.state import EditorState
    from shardviz.tui.time.timelines import OpenedProfile


class ShownTimelines:
    """The timelines of the profile, the plan and the targets' programs by name: as they were last `told`, and
    the questions that they answer or are to answer, of which each is asked once.

    One of them is `chosen`, by a `teller` where it has that one; what is `below` it for comparison has a
    teller of its own.
    """

    def __init__(self, state: EditorState) -> None:
        self._state = state
        self.told: dict[str, ToldTimelines] = {}
        self.chosen = PLAN
        self.teller: Teller = "model"
        self.below: tuple[str, Teller] | None = None
        self._asked: dict[str, TimelineQuestion] = {}
        self._profile: OpenedProfile | None = None

    @property
    def names(self) -> list[str]:
        """The profile, the plan and the targets, in the order in which they are chosen."""
        profile = [PROFILE] if self._state.profile is not None else []
        return [*profile, PLAN, *(name for name in self._state.queries.answers if name != "shardy")]

    @property
    def answer(self) -> ShownAnswer | None:
        """The answer of the chosen target."""
        return self._state.queries.answers.get(self.chosen)

    @property
    def chosen_told(self) -> ToldTimelines | None:
        """The timelines of the chosen one, as far as they are here."""
        return self.told.get(self.chosen)

    @property
    def timeline(self) -> ProgramTimeline | None:
        """The chosen one by its teller, as far as it is here."""
        return None if self.chosen_told is None else self.chosen_told.by(self.teller)

    @property
    def others(self) -> list[tuple[str, Teller]]:
        """Those that may stand below the chosen one: its other teller, then the others by the same."""
        told = self.chosen_told
        tellers = [teller for teller, _ in told.timelines] if told is not None else []
        own = [(self.chosen, teller) for teller in tellers if told and teller != told.teller(self.teller)]
        return [*own, *((name, self.teller) for name in self.names if name != self.chosen)]

    @property
    def idle(self) -> Collection[str]:
        """The actions that do nothing with what is shown."""
        told, timeline, idle = self.chosen_told, self.timeline, set()
        if told is None or not told.timelines:
            idle |= {command.action for command in TIME} - {"target", "ask"}
        elif len(told.timelines) < 2 or self.chosen == PROFILE:
            idle.add("teller")
        if self.chosen == PROFILE:
            idle |= {"open_line", "ask"}
        if len(self.names) < 2:
            idle |= {"target", "compare"}
        if not self._state.queries.answers:
            idle.add("ask")
        if timeline is None or not timeline.savings:
            idle.add("saving")
        if timeline is None or timeline.memory is None or not timeline.memory.curve:
            idle.add("memory")
        if timeline is None or not timeline.critical_path:
            idle.add("follow")
        return idle

    def next_teller(self) -> None:
        """The chosen one by its other teller; what is below goes along, or has the teller that was above."""
        before, self.teller = self.teller, "model" if self.teller == "scheduler" else "scheduler"
        if self.below is not None:
            name = self.below[0]
            self.below = name, before if name == self.chosen else self.teller

    def next_below(self) -> None:
        """The next of the others below; after the last one, none."""
        others = self.others
        index = others.index(self.below) + 1 if self.below in others else 0
        self.below = others[index] if index < len(others) else None

    def parts(self, before: Sequence[ChartPart]) -> list[ChartPart]:
        """The chosen one and the one below, as far as they are here; prepared once for as long as they are
        shown."""
        shown = [(self.chosen, self.teller), *([self.below] if self.below else [])]
        parts = []
        for name, teller in shown:
            told = self.told.get(name)
            timeline = told.by(teller) if told is not None else None
            if told is not None and timeline is not None:
                known = (part for part in before if part.timeline is timeline)
                own = told.teller(teller) if name == PROFILE else None
                parts.append(next(known, None) or ChartPart(timeline, own or name))
        return parts

    def question(self, name: str) -> TimelineQuestion | None:
        """The question of the profile, of the plan on screen, or of the target's answer to it, if it has a
        program."""
        if name == PROFILE:
            return self._asked[PROFILE]
        resolved, answer = self._state.resolved, self._state.queries.answers.get(name)
        compiled = answer.compiled if answer is not None else None
        if name != PLAN and (compiled is None or compiled.status != "ok"):
            return None
        return TimelineQuestion(compiled or resolved.plan, resolved.shown.machine, resolved.targets)

    def is_current(self, name: str) -> bool:
        """True if the timelines of that name are those of the problem on screen."""
        told = self.told.get(name)
        return told is not None and told.question == self.question(name)

    def ask(self) -> list[tuple[str, TimelineQuestion]]:
        """The questions to work out that are not under way; what a failed target had told is forgotten, and
        what is there no more is shown no more."""
        self._take_profile()
        answers, names = self._state.queries.answers, self.names
        if self.chosen not in names:
            self.chosen = PLAN
        if self.below not in self.others:
            self.below = None
        failed = {
            name for name, answer in answers.items() if answer.compiled and answer.compiled.status != "ok"
        }
        kept = {*names} - failed
        self.told = {name: told for name, told in self.told.items() if name in kept}
        self._asked = {name: question for name, question in self._asked.items() if name in kept}
        wanted = {name: self.question(name) for name in dict.fromkeys((self.chosen, *names))}
        new = [(name, asked) for name, asked in wanted.items() if asked and asked != self._asked.get(name)]
        self._asked.update(new)
        return new

    def take(self, name: str, told: ToldTimelines) -> bool:
        """Keep timelines, unless another question was asked meanwhile; return whether they are kept."""
        if self._asked.get(name) != told.question:
            return False
        self.told[name] = told
        return True

    def _take_profile(self) -> None:
        """Choose the profile that was opened, once; what was predicted stands below it from the start."""
        opened = self._state.profile
        if opened is None or opened is self._profile:
            return
        told = tell_profile(opened.profile)
        self.told[PROFILE], self._asked[PROFILE] = told, told.question
        self._profile, self.chosen = opened, PROFILE
        self.below = next(iter(self.others), None) if len(told.timelines) > 1 else None
