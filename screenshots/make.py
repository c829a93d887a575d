"""Makes the pictures beside this file from real runs: `python screenshots/make.py [NAME …]`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
MATMUL = "shardviz explain 'bd,df->bf' --mesh X=2,Y=4"

PICTURES = {
    "explain": (96, [f"{MATMUL} --specs 'XY,Y_->X_' --sizes b=8,d=2048,f=8192"]),
    "difference": (96, [f"{MATMUL} --specs 'X_,_X' --sizes b=8,d=2048,f=8192"]),
    "ranking": (96, [f"{MATMUL} --specs --limit 12"]),
    "layouts": (
        72,
        [
            "shardviz layout 16384x16384 --mesh axis=4 --spec '_ axis'",
            "shardviz layout 16384x16384 --mesh axis=4 --spec 'axis _'",
            "shardviz layout 16384x16384 --mesh axis=4 --spec '_ _'",
        ],
    ),
    "shapes": (
        80,
        [
            "shardviz layout 4x8x2048 --spec 'A[h_X, b, d_Y]'",
            "shardviz layout 10x64 --spec 'Out[b_Y, f]{U_X}'",
            "shardviz layout 4096x8192 --mesh data=1024,model=16,x=8 --spec 'data model'",
        ],
    ),
    "allreduce": (
        100,
        ["shardviz step psum --mesh i=4 --data 3,1,4,1,5,9,2,6,5,3,5,8,9,7,1,2"],
    ),
    "rings": (
        112,
        [
            "shardviz step all_gather --mesh i=8",
            "shardviz step all_gather --mesh i=8 --algorithm bidirectional-ring",
        ],
    ),
    "targets": (
        110,
        [
            "shardviz explain 'bd,df->bf' --specs 'XY,_Y->XY' --sizes b=1024,d=2048,f=8192"
            " --target cpu,v2:2x2,v5e:2x4,v5p:2x2x2"
        ],
    ),
    "passes": (
        104,
        ["shardviz passes 'bd,df->bf' --specs 'XY,_Y->XY' --sizes b=1024,d=2048,f=8192 --target v5e:2x4"],
    ),
    "schedule": (
        96,
        [
            "shardviz hlo tests/render/program.txt --mesh X=2,Y=4",
            "shardviz hlo tests/render/program.txt --mesh X=2,Y=4 --picture",
        ],
    ),
    "algorithms": (
        96,
        ["shardviz step psum --mesh i=8 --shape 8x65536 --compare"],
    ),
}
"""Columns and command lines of each picture."""

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

ASPECT = 0.602
"""Width of a character over its height in DejaVu Sans Mono; others are within a hundredth of it."""

TEMPLATE = """\
<svg class="{unique_id}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: "Fira Code", "JetBrains Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own page without the fonts that it loads from elsewhere."""


def run(line: str, width: int) -> Text:
    """A prompt with the command line, and what the command prints."""
    words = [sys.executable, "-m", *shlex.split(line), "--color", "always", "--width", str(width)]
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=HERE.parent,
        env={**os.environ, "COLORTERM": "truecolor"},
    )
    return Text.assemble(("$ ", "bold green"), (line, "bold"), "\n\n", Text.from_ansi(done.stdout))


def make(name: str) -> None:
    """Run the commands of one picture and write it."""
    width, lines = PICTURES[name]
    console = Console(
        record=True,
        width=width,
        file=StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    for number, line in enumerate(lines):
        if number:
            console.print()
        console.print(run(line, width))
    svg = console.export_svg(
        title="", theme=THEME, code_format=TEMPLATE, font_aspect_ratio=ASPECT, unique_id=f"shardviz-{name}"
    )
    (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        make(wanted)
