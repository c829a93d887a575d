"""One command of the application, as the registry has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from textual.binding import Binding, BindingType
from textual.message import Message

EVERYWHERE = ("ctrl+q", "ctrl+z")
"""Keys that mean the same in fields and dialogs as well."""


@dataclass(frozen=True)
class Command:
    """Something that a person can do, with a key or from the palette.

    `name` is the action: ``action_<name>`` of the widget of `area` ("problem", "layout", "plan", "step" or
    "compiler"), or of the application ("app", "lesson"). `keys` are Textual's names of keys, the first the
    one that is shown, as `shown` where that is clearer. `title` names it in palette and help, `help` is a
    sentence. `footer` is its word in the footer; empty where it does not appear there.
    """

    area: str
    name: str
    keys: tuple[str, ...]
    title: str
    help: str
    footer: str = ""
    shown: str = ""

    @property
    def key_text(self) -> str:
        """The key as people know it."""
        return self.shown or (self.keys[0] if self.keys else "")

    def without(self, taken: Collection[str]) -> Command | None:
        """The command where some keys mean something else; None where it has no other."""
        keys = tuple(key for key in self.keys if key not in taken)
        if keys == self.keys:
            return self
        return replace(self, keys=keys, shown="") if keys else None


class CommandsChanged(Message):
    """Other commands of a part work now than before: sent by the part."""


def bindings(commands: Iterable[Command]) -> list[BindingType]:
    """Textual's bindings for the commands of one widget."""
    return [
        Binding(key, command.name, command.title, show=False, priority=key in EVERYWHERE)
        for command in commands
        for key in command.keys
    ]
