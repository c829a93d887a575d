"""The looks of a page: its own style sheet, and classes for the styles that its pictures use."""

from __future__ import annotations

from html import escape

from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from shardviz.drafts.form import one_line
from shardviz.render.palette import ON_LIGHT, TRUECOLOR

PAGE = """
:root { color-scheme: light dark; --page: #fbfaf7; --text: #1c1d26; --dim: #65676f; --line: #d9d7d0;
--raised: #fff; }
@media (prefers-color-scheme: dark) {
:root { --page: #11121a; --text: #d6dae8; --dim: #8b8fa3; --line: #2c2f40; --raised: #191b26; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem clamp(0.75rem, 3vw, 2.5rem) 3rem; }
h1 { margin: 0; font-size: clamp(1.25rem, 3vw, 1.75rem); line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 1.75rem 0 0.5rem; font-size: 1rem; color: var(--dim); font-weight: 600; }
p { margin: 0.5rem 0 0; }
code { overflow-wrap: anywhere; color: var(--dim); }
code, pre { font-family: "DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace; }
code { font-size: 0.875rem; }
pre { margin: 0; padding: 0.75rem 1rem; overflow-x: auto; line-height: 1.2; background: var(--raised);
border: 1px solid var(--line); border-radius: 0.5rem; font-size: clamp(0.6rem, 1.5vw, 0.9rem); }
:focus-visible { outline: 2px solid var(--axis-0); outline-offset: 2px; }
.player { position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center;
padding: 0.75rem 0; margin-top: 0.5rem; background: var(--page); }
.player[hidden], .played .round { display: none; }
.played .round.shown { display: block; }
.played .round h2 { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.player button { min-width: 3rem; padding: 0.35rem 0.9rem; font: inherit; color: inherit;
background: var(--raised); border: 1px solid var(--line); border-radius: 0.5rem; cursor: pointer; }
.player button:hover { border-color: var(--dim); }
.player input { flex: 1 1 10rem; accent-color: var(--axis-0); }
.player output { font-variant-numeric: tabular-nums; min-width: 8rem; }
.player p { flex-basis: 100%; margin: 0; font-size: 0.8rem; color: var(--dim); }
@media print { .player { display: none; } .played .round { display: block; break-inside: avoid; } }
"""
_AXES = {Color.parse(colour): place for place, colour in enumerate(TRUECOLOR.axes)}


class Styles:
    """The classes for the styles that have been met, each told once."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}
        self._console = Console(color_system="truecolor", force_terminal=True, _environ={})

    def html(self, line: Text) -> str:
        """A line of a picture, its words escaped and its styles as classes."""
        pieces = []
        # Rich leaves out the style of a text that has no spans.
        for segment in Text.assemble(line).render(self._console):
            words = escape(one_line(segment.text))
            rules = "" if segment.style is None else _rules(segment.style)
            pieces.append(f'<span class="{self._class(rules)}">{words}</span>' if rules else words)
        return "".join(pieces)

    def css(self) -> str:
        """The rules of all classes, and the colours of mesh axes for a light page and a dark one."""
        light, dark = (
            " ".join(f"--axis-{place}: {colour};" for place, colour in enumerate(palette.axes))
            for palette in (ON_LIGHT, TRUECOLOR)
        )
        scheme = f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        return scheme + "".join(f".{name} {{ {rules} }}\n" for rules, name in self._classes.items())

    def _class(self, rules: str) -> str:
        return self._classes.setdefault(rules, f"s{len(self._classes)}")


def _rules(style: Style) -> str:
    """The declarations of a style; a mesh axis has its own colour on a light page."""
    rules = []
    if style.color is not None and not style.color.is_default:
        place = _AXES.get(style.color)
        rules.append(f"color: {_hex(style.color) if place is None else f'var(--axis-{place})'};")
    elif style.dim:
        rules.append("color: var(--dim);")
    if style.bgcolor is not None and not style.bgcolor.is_default:
        rules.append(f"background: {_hex(style.bgcolor)};")
    rules += ["font-weight: bold;"] * bool(style.bold) + ["font-style: italic;"] * bool(style.italic)
    return " ".join(rules + ["text-decoration: underline;"] * bool(style.underline))


def _hex(colour: Color) -> str:
    return colour.get_truecolor().hex
