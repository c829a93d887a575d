"""Makes the pictures and the recording here by real runs: `python screenshots/make.py [NAME …]`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from shardviz.render.exports.pictures import recorded_svg, recorder

HERE = Path(__file__).parent
MATMUL = "shardviz explain 'bd,df->bf' --mesh X=2,Y=4"

PICTURES = {
    "explain": (96, [f"{MATMUL} --specs 'XY,Y_->X_' --sizes b=8,d=2048,f=8192"]),
    "difference": (96, [f"{MATMUL} --specs 'X_,_X' --sizes b=8,d=2048,f=8192"]),
    "ranking": (96, ["shardviz rank 'bd,df->bf' --mesh X=2,Y=4"]),
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
        80,
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
        [
            "shardviz passes 'bd,df->bf' --mesh X=2,Y=4 --specs 'XY,_Y->XY' --sizes b=1024,d=2048,f=8192"
            " --target v5e:2x4"
        ],
    ),
    "schedule": (
        96,
        [
            "shardviz hlo mlp.txt --mesh X=2,Y=4",
            "shardviz hlo mlp.txt --mesh X=2,Y=4 --picture",
        ],
    ),
    "program": (
        96,
        ["shardviz program train_step --mesh data=4,model=4 --target cpu --machine v5p:4x2x2 --top 8"],
    ),
    "model": (
        104,
        ["shardviz model llama-3-70b --rules fsdp+tensor --mesh data=16,tensor=4 --machine v5p:4x4x4"],
    ),
    "train-step": (
        128,
        [
            "shardviz explain 'H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = (silu(H) * G) * W3[f,d]'"
            " --mesh data=4,tensor=2 --specs 'X=data _,W1=data tensor,W2=data tensor,W3=tensor data,Y=data _'"
            " --sizes b=65536,d=4096,f=14336 --machine v5p:2x2x2 --backward --optimizer adam"
            " --target none --no-layout"
        ],
    ),
    "search": (
        120,
        [
            "shardviz search 'btd,df->btf; btf,fd->btd x 80' --machine v5p:4x4x8"
            " --sizes b=64,t=4Ki,d=8Ki,f=28Ki --backward --remat layer --optimizer adam"
        ],
    ),
    "measure": (
        112,
        ["shardviz measure psum --mesh X=2,Y=2 --devices 4 --sizes 64KiB:1MiB --dtype f32"],
    ),
    "profile": (112, ["shardviz profile step.xplane.pb --mesh X=2,Y=4"]),
    "algorithms": (
        96,
        ["shardviz step psum --mesh i=8 --shape 8x65536 --compare"],
    ),
}
"""Columns and command lines of each picture."""


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
    console = recorder(width)
    for number, line in enumerate(lines):
        if number:
            console.print()
        console.print(run(line, width))
    (HERE / f"{name}.svg").write_text(recorded_svg(console, name), encoding="utf-8")


def make_all(names: Sequence[str]) -> None:
    """Write the pictures of these names, all of them without any; the recording is `tour`."""
    os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
    from recording import cast_of, record, svg_of
    from screens import SCREENS, draw

    from shardviz.compiler import Worker

    with Worker() as worker:
        for name in names or (*PICTURES, *SCREENS, "tour"):
            if name in PICTURES:
                make(name)
            elif name == "tour":
                frames = record(worker)
                (HERE / "tour.svg").write_text(svg_of(frames), encoding="utf-8")
                (HERE / "tour.cast").write_text(cast_of(frames), encoding="utf-8")
            else:
                (HERE / f"{name}.svg").write_text(draw(name, worker), encoding="utf-8")


if __name__ == "__main__":
    make_all(sys.argv[1:])
