"""A subject as one page for a browser, light and dark. It loads nothing, and its policy allows only its own
styles and script, by their hashes; without scripts the rounds follow one another."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape

from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from shardviz.errors import QuestionError
from shardviz.forms.form import one_line
from shardviz.render.exports import Subject, template
from shardviz.render.exports.sections import WIDTH, Section, sections
from shardviz.render.palette import ON_LIGHT, TRUECOLOR

MORE = "Reasons, arithmetic and assumptions"
"""Opens what a page has beside its answer."""
MAX_CHARACTERS = 8_000_000
"""Of a page that browsers open at once."""


def html(subject: Subject, width: int = WIDTH) -> str:
    """One HTML file of at most `width` columns; rounds have a player. `QuestionError` if it is too long."""
    styles = Styles()
    is_played = subject.run is not None
    title = escape(one_line(subject.title))
    body = [f"<h1>{title}</h1>"]
    if subject.command:
        body.append(f"<p><code>{escape(one_line(subject.command))}</code></p>")
    for number, part in enumerate(sections(subject, width, TRUECOLOR)):
        body += part_html(part, f"part-{number}", styles, "round" if is_played and number else "")
        if is_played and not number:
            body.append(template("player.html"))
    return document(title, body, styles.css(), template("player.js") if is_played else "")


def part_html(part: Section, name: str, styles: Styles, kind: str = "") -> list[str]:
    """A part of a page under the heading `name`; a wide picture scrolls in its own frame, by tab key too."""
    lines, more = ("\n".join(map(styles.html, said)) for said in (part.lines, part.more))
    return [
        f'<section class="{kind}">' if kind else "<section>",
        f'<h2 id="{name}">{escape(part.heading)}</h2>',
        f'<pre tabindex="0" aria-labelledby="{name}">{lines}</pre>',
        f'<details><summary>{MORE}</summary>\n<pre tabindex="0">{more}</pre></details>' if more else "",
        "</section>",
    ]


def document(title: str, body: Sequence[str], style: str, script: str = "") -> str:
    """The page with this title and style, its script last. `QuestionError` if it is too long."""
    policy = f"default-src 'none'; style-src {_hashed(style)}; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src {_hashed(script)}"
    content = "\n".join([*body, "</main>", *[f"<script>{script}</script>"] * bool(script)])
    page = template("page.html").format(policy=policy, title=title, style=style, content=content)
    if len(page) > MAX_CHARACTERS:
        raise QuestionError(
            f"the page would have {len(page):,} characters, and browsers open {MAX_CHARACTERS:,} at once",
            "take a smaller mesh, an algorithm with fewer rounds, or a narrower page",
        )
    return page


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


_AXES = {Color.parse(colour): index for index, colour in enumerate(TRUECOLOR.axes)}


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
            if rules:
                name = self._classes.setdefault(rules, f"s{len(self._classes)}")
                words = f'<span class="{name}">{words}</span>'
            pieces.append(words)
        return "".join(pieces)

    def css(self) -> str:
        """The rules of pages and all classes, and the colours of mesh axes on light and on dark pages."""
        light, dark = (
            " ".join(f"--axis-{index}: {colour};" for index, colour in enumerate(palette.axes))
            for palette in (ON_LIGHT, TRUECOLOR)
        )
        scheme = f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        return (
            template("page.css")
            + scheme
            + "".join(f".{name} {{ {rules} }}\n" for rules, name in self._classes.items())
        )


def _rules(style: Style) -> str:
    """The declarations of a style; a mesh axis has its own colour on a light page."""
    rules = []
    if style.color is not None and not style.color.is_default:
        index = _AXES.get(style.color)
        colour = style.color.get_truecolor().hex if index is None else f"var(--axis-{index})"
        rules.append(f"color: {colour};")
    elif style.dim:
        rules.append("color: var(--dim);")
    if style.bgcolor is not None and not style.bgcolor.is_default:
        rules.append(f"background: {style.bgcolor.get_truecolor().hex};")
    rules += ["font-weight: bold;"] * bool(style.bold) + ["font-style: italic;"] * bool(style.italic)
    return " ".join(rules + ["text-decoration: underline;"] * bool(style.underline))
