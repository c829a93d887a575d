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
from shardviz.render.exports import Subject
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
            body.append(CONTROLS)
    return document(title, body, PAGE + styles.css(), SCRIPT if is_played else "")


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
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{content}
</body>
</html>
"""
    if len(page) > MAX_CHARACTERS:
        raise QuestionError(
            f"the page would have {len(page):,} characters, and browsers open {MAX_CHARACTERS:,} at once",
            "take a smaller mesh, an algorithm with fewer rounds, or a narrower page",
        )
    return page


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


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
p, details { margin: 0.5rem 0 0; }
summary { color: var(--dim); cursor: pointer; }
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
        """The rules of all classes, and the colours of mesh axes for a light page and a dark one."""
        light, dark = (
            " ".join(f"--axis-{index}: {colour};" for index, colour in enumerate(palette.axes))
            for palette in (ON_LIGHT, TRUECOLOR)
        )
        scheme = f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        return scheme + "".join(f".{name} {{ {rules} }}\n" for rules, name in self._classes.items())


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


CONTROLS = """<div class="player" role="group" aria-label="Player" hidden>
<button type="button" id="back" aria-label="Previous round">←</button>
<button type="button" id="play">Play</button>
<button type="button" id="next" aria-label="Next round">→</button>
<input type="range" id="place" min="0" value="0" aria-label="Round">
<output id="said" aria-live="polite"></output>
<p>← → one round, space plays, home and end to the ends</p>
</div>"""

SCRIPT = """
"use strict";
const rounds = [...document.querySelectorAll(".round")];
const byId = (id) => document.getElementById(id);
const last = rounds.length - 1;
let shown = 0, timer = 0;
function show(number) {
  shown = Math.max(0, Math.min(last, number));
  rounds.forEach((round, place) => round.classList.toggle("shown", place === shown));
  byId("place").value = shown;
  byId("back").disabled = shown === 0;
  byId("next").disabled = shown === last;
  byId("said").textContent = rounds[shown].querySelector("h2").textContent;
}
function pause() {
  clearInterval(timer);
  timer = 0;
  byId("play").textContent = "Play";
}
function go(number) { pause(); show(number); }
function toggle() {
  if (timer) { pause(); return; }
  if (shown === last) { show(0); }
  byId("play").textContent = "Pause";
  timer = setInterval(() => { show(shown + 1); if (shown === last) { pause(); } }, 1000);
}
const keys = {
  ArrowLeft: () => go(shown - 1), ArrowRight: () => go(shown + 1),
  Home: () => go(0), End: () => go(last), " ": toggle,
};
document.addEventListener("keydown", (event) => {
  const isPressed = event.key === " " && event.target.tagName === "BUTTON";
  const act = keys[event.key];
  if (!act || isPressed || event.ctrlKey || event.metaKey || event.altKey) { return; }
  event.preventDefault();
  act();
});
byId("back").addEventListener("click", () => go(shown - 1));
byId("next").addEventListener("click", () => go(shown + 1));
byId("play").addEventListener("click", toggle);
byId("place").addEventListener("input", (event) => go(Number(event.target.value)));
byId("place").max = last;
document.querySelector(".player").hidden = false;
document.body.classList.add("played");
show(0);
"""
