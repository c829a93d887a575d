"""A problem, a plan, a layout or the rounds of a collective as one page for a browser, light and dark.

Nothing is loaded from anywhere, and the page says so itself: its policy lets only the styles and the script
apply that are in it, known by their hashes. Without scripts every round stands below the one before it.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape

from shardviz.drafts.form import one_line
from shardviz.errors import QuestionError
from shardviz.render.exports.page_player import CONTROLS, SCRIPT
from shardviz.render.exports.page_styles import PAGE, Styles
from shardviz.render.exports.sections import Section, sections
from shardviz.render.exports.subject import Subject
from shardviz.render.exports.svg import WIDTH
from shardviz.render.palette import TRUECOLOR
from shardviz.stepping.collective_run import CollectiveRun

MAX_CHARACTERS = 8_000_000
"""Of a page that browsers open at once."""


def html(subject: Subject, width: int = WIDTH) -> str:
    """One HTML file with pictures of at most `width` columns; rounds have a player, by buttons and keys.

    Raises `QuestionError` for what is too long.
    """
    styles = Styles()
    parts = sections(subject, width, TRUECOLOR)
    is_played = isinstance(subject.shown, CollectiveRun)
    body = []
    for number, part in enumerate(parts):
        body.append(_section(part, number, styles, "round" if is_played and number else ""))
        if is_played and not number:
            body.append(CONTROLS)
    style, script = PAGE + styles.css(), SCRIPT if is_played else ""
    page = "\n".join([*_head(subject, style, script), *body, *_end(script)])
    if len(page) > MAX_CHARACTERS:
        raise QuestionError(
            f"the page would have {len(page):,} characters, and browsers open {MAX_CHARACTERS:,} at once",
            "take a smaller mesh, an algorithm with fewer rounds, or a narrower page",
        )
    return page


def _head(subject: Subject, style: str, script: str) -> list[str]:
    title = escape(one_line(subject.title))
    policy = f"default-src 'none'; style-src {_hashed(style)}; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src {_hashed(script)}"
    command = f"<p><code>{escape(one_line(subject.command))}</code></p>"
    return [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{title}</h1>",
        *([command] if subject.command else []),
    ]


def _section(part: Section, number: int, styles: Styles, kind: str) -> str:
    """A heading and its picture, which those who do not see it can read or skip."""
    heading = f'<h2 id="part-{number}">{escape(part.heading)}</h2>'
    lines = "\n".join(map(styles.html, part.lines))
    opening = f'<section class="{kind}">' if kind else "<section>"
    # A wide picture scrolls in its own frame, which the tab key reaches.
    return (
        f'{opening}\n{heading}\n<pre tabindex="0" aria-labelledby="part-{number}">{lines}</pre>\n</section>'
    )


def _end(script: str) -> list[str]:
    return ["</main>", *([f"<script>{script}</script>"] if script else []), "</body>", "</html>", ""]


def _hashed(text: str) -> str:
    """How a policy names an inline style or script."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
