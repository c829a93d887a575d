"""A subject as a page for a browser, light and dark, or as an SVG picture; any lines for a notebook. All load
nothing. A page's policy allows only its own styles and script, by their hashes; without scripts the rounds
follow one another."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from zlib import crc32

from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from shardviz.errors import QuestionError
from shardviz.forms.form import one_line
from shardviz.render.exports import Subject, template
from shardviz.render.exports.sections import WIDTH, Section, sections
from shardviz.render.lines import Lines
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
    frame = f'<pre tabindex="0" aria-labelledby="{name}">'
    return [
        f'<section class="{kind}">' if kind else "<section>",
        f'<h2 id="{name}">{escape(part.heading)}</h2>',
        f"{frame}{lines}</pre>",
        f"<details><summary>{MORE}</summary>\n{frame}{more}</pre></details>" if more else "",
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


MAX_LINES = 4000
"""Lines of a picture that viewers still show."""


def svg(subject: Subject, width: int = WIDTH) -> str:
    """One SVG file of at most `width` columns, described by its text. `QuestionError` if it is too long."""
    lines: list[Text] = []
    for section in sections(subject, width, TRUECOLOR):
        lines += [*[Text()] * bool(lines), *section.lines]
    if len(lines) > MAX_LINES:
        problem = f"the picture would have {len(lines):,} lines; viewers show up to {MAX_LINES:,}"
        raise QuestionError(problem, "use a smaller mesh, or export html")
    words = "\n".join(one_line(line.plain) for line in lines)
    console = recorder(max(line.cell_len for line in lines) + 1)
    console.print(Text("\n").join(lines), soft_wrap=True)
    return recorded_svg(console, f"{crc32(words.encode()):08x}", one_line(subject.title), words)


ASPECT = 0.602
"""Width of a character over its height in DejaVu Sans Mono; others are within a hundredth of it."""

THEME = TerminalTheme(
    (17, 18, 26),
    (214, 218, 232),
    [
        (54, 58, 79),
        (237, 135, 150),
        (166, 218, 149),
        (238, 212, 159),
        (138, 173, 244),
        (198, 160, 246),
        (139, 213, 202),
        (184, 192, 224),
    ],
)
"""Colours for what has none of its own: background, foreground, and the eight of a terminal."""


def recorded_svg(console: Console, name: str, title: str = "", words: str = "") -> str:
    """The SVG of a `recorder`'s output, its styles set apart by `name`; `title` and `words` describe it."""
    parts = {"title": title, "desc": words}
    told = "\n".join(
        f'<{part} id="shardviz-{name}-{part}">{escape(text)}</{part}>' for part, text in parts.items()
    )
    labels = f' role="img" aria-labelledby="shardviz-{name}-title shardviz-{name}-desc"'
    begin = f"{labels}>\n{told}".replace("{", "{{").replace("}", "}}") if title else ">"
    return console.export_svg(
        title="",
        theme=THEME,
        code_format=template("picture.svg") % begin,
        font_aspect_ratio=ASPECT,
        unique_id=f"shardviz-{name}",
    )


def recorder(width: int) -> Console:
    """A console of so many columns that prints nowhere and keeps what is printed, in all colours."""
    return Console(
        width=width,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        # In a notebook a console displays what it prints, which the notebook does with the page itself.
        force_jupyter=False,
        record=True,
        legacy_windows=False,
        _environ={},
    )


_GREY = (128, 128, 128)
_PAGE = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:1.2;color:inherit;background:transparent;'
    "font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace\">{code}</pre>"
)


def lines_html(lines: Lines, width: int) -> str:
    """A picture as one ``<pre>`` with its styles inline; text and page keep the colours around them."""
    console = recorder(width)
    console.print(Text("\n").join(lines(width, TRUECOLOR)), soft_wrap=True, end="")
    # Dim text mixes with grey, which can be read on a light page and on a dark one.
    theme = TerminalTheme(_GREY, _GREY, [_GREY] * 8)
    return console.export_html(theme=theme, code_format=_PAGE, inline_styles=True)
