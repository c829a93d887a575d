"""The timelines that are known of the problem on screen, and which are to be worked out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.tui.time.timelines import PLAN, PROFILE, TimelineQuestion, ToldTimelines, tell_profile

if TYPE_CHECKING:
    from shardviz.profiles.profile import Profile
    from shardviz.tui.state import EditorState


class KnownTimelines:
    """The timelines of the profile, the plan and the targets' programs by name: as they were last `told`, and
    the questions that they answer or are to answer, of which each is asked once."""

    def __init__(self, state: EditorState) -> None:
        self._state = state
        self.told: dict[str, ToldTimelines] = {}
        self._asked: dict[str, TimelineQuestion] = {}

    @property
    def names(self) -> list[str]:
        """The profile, the plan and the targets, in the order in which they are chosen."""
        profile = [PROFILE] if self._state.profile is not None else []
        return [*profile, PLAN, *(name for name in self._state.queries.answers if name != "shardy")]

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

    def ask(self, first: str) -> list[tuple[str, TimelineQuestion]]:
        """The questions to work out that are not under way; what a failed target had told is forgotten."""
        answers = self._state.queries.answers
        failed = {
            name for name, answer in answers.items() if answer.compiled and answer.compiled.status != "ok"
        }
        kept = {*self.names} - failed
        self.told = {name: told for name, told in self.told.items() if name in kept}
        self._asked = {name: question for name, question in self._asked.items() if name in kept}
        wanted = {name: self.question(name) for name in dict.fromkeys((first, *self.names))}
        new = [(name, asked) for name, asked in wanted.items() if asked and asked != self._asked.get(name)]
        self._asked.update(new)
        return new

    def take(self, name: str, told: ToldTimelines) -> bool:
        """Keep timelines, unless another question was asked meanwhile; return whether they are kept."""
        if self._asked.get(name) != told.question:
            return False
        self.told[name] = told
        return True

    def take_profile(self, profile: Profile) -> ToldTimelines:
        """Keep the timelines of a profile in place of another's."""
        told = tell_profile(profile)
        self.told[PROFILE], self._asked[PROFILE] = told, told.question
        return told
