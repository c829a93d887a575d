"""A field of the form that offers names to choose from."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.widgets import Input


class ChoiceField(Input):
    """Takes any text; `space` puts the next choice in its place, or the first that begins as it does."""

    choices: Sequence[str] = ()

    async def _on_key(self, event: events.Key) -> None:
        if event.key != "space":
            return
        event.stop()
        event.prevent_default()
        if self.value in self.choices:
            place = self.choices.index(self.value) + 1
            self.value = self.choices[place % len(self.choices)]
        else:
            self.value = next((name for name in self.choices if name.startswith(self.value)), self.value)
        self.cursor_position = len(self.value)
