"""A line of text that is typed: what keys do, they do in the order in which they were pressed."""

from __future__ import annotations

from textual import events
from textual.binding import Binding
from textual.widgets import Input

ACTIONS = {
    key: binding.action
    for binding in Input.BINDINGS
    if isinstance(binding, Binding)
    for key in binding.key.split(",")
}
"""The actions of the keys that mean something to every input."""


class TextInput(Input):
    """An input for fast typists and slow lines.

    Textual inserts a letter at once, but looks for the meaning of any other key only when that has gone up to
    the application: `ctrl+u` would delete what was typed behind it as well.
    """

    async def _on_key(self, event: events.Key) -> None:
        action = ACTIONS.get(event.key)
        if action is not None and await self.app.run_action(action, self):
            event.stop()
            event.prevent_default()
