"""The palette: every command of the registry, found by typing a part of its name."""

from __future__ import annotations

from functools import partial
from typing import Any

from textual.await_complete import AwaitComplete
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape

from shardviz.tui.registry import AREAS, COMMANDS, Command

FOUND = [command for command in COMMANDS if command.name != "command_palette"]
"""All but the one that opens the palette itself."""


class CommandMenu(CommandPalette):
    """Textual's palette, of these commands alone, which is left once."""

    def __init__(self) -> None:
        super().__init__([CommandSearch])

    def dismiss(self, result: None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()


class CommandSearch(Provider):
    """Offers the commands of all screens; one of another screen puts that on first."""

    async def discover(self) -> Hits:
        for command in FOUND:
            yield DiscoveryHit(_shown(command), self._run(command), _name(command), escape(command.help))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in FOUND:
            score = matcher.match(_name(command))
            if score > 0:
                title = matcher.highlight(_name(command))
                yield Hit(score, title, self._run(command), _name(command), escape(command.help))

    def _run(self, command: Command) -> partial[Any]:
        return partial(self.app.run_action, ("app", "run_command", (command,)))


def _name(command: Command) -> str:
    """``Compiler: Next target  (n)``: what is looked through."""
    area = "" if command.area == "app" else f"{AREAS[command.area].lstrip('1234 ')}: "
    key = f"  ({command.key_text})" if command.key_text else ""
    return f"{area}{command.title}{key}"


def _shown(command: Command) -> Content:
    return Content(_name(command))
