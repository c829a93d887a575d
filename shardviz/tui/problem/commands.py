"""The commands of the problem."""

from __future__ import annotations

from shardviz.tui.command import Command

KEEP = "keep"
TYPING: tuple[Command, ...] = (
    Command("problem", KEEP, ("enter", "up", "down"), "Keep", "Keep the text.", "keep"),
    Command("problem", "leave", ("escape", "ctrl+y"), "Leave", "As it was.", "leave it as it was", "esc"),
)
"""What works while text is typed, when every other key is text."""
PROBLEM: tuple[Command, ...] = (
    Command(
        "problem",
        "edit",
        ("enter",),
        "Type",
        "Type what is under the cursor, in any notation. enter keeps it, esc leaves it as it was.",
        "type",
    ),
    Command(
        "problem",
        "assign",
        (),
        "Split over an axis",
        "The letter of an axis splits the dimension under the cursor over it: X, then Y, gives XY."
        " An axis that splits another dimension of the array moves here.",
        "split",
        "X Y …",
    ),
    Command(
        "problem",
        "cycle",
        ("space",),
        "Next choice",
        "The next free axis for a dimension, the next dtype or axis type; on the name of a result: yours or"
        " the compiler's choice.",
        "next",
    ),
    Command(
        "problem",
        "sum",
        ("s",),
        "Pending sum",
        "On the name of an array: its devices hold partial sums over the next free axis, {U_X}; then none.",
        "pending sum",
    ),
    Command("problem", "clear", ("backspace",), "Leave whole", "No axis splits the dimension.", "whole", "⌫"),
    Command(
        "problem",
        "double",
        ("plus", "equals_sign"),
        "Double",
        "Twice the devices along an axis.",
        "size",
        "+-",
    ),
    Command("problem", "halve", ("minus",), "Halve", "Half the devices along an axis.", "", "-"),
    Command("problem", "add_axis", ("a",), "Add an axis", "Another axis for the mesh, of 2 devices.", "axis"),
    Command(
        "problem",
        "remove_axis",
        ("d", "delete"),
        "Remove the axis",
        "Take an axis out of the mesh.",
        "remove",
    ),
    Command(
        "problem",
        "move_axis(-1)",
        ("less_than_sign",),
        "Axis to the left",
        "Before its neighbour: more major, its devices lie further apart.",
        "order",
        "<>",
    ),
    Command(
        "problem",
        "move_axis(1)",
        ("greater_than_sign",),
        "Axis to the right",
        "After its neighbour: more minor, its devices lie closer together.",
        "",
        ">",
    ),
    Command("problem", "move('up')", ("up",), "Up", "To the field above.", "", "↑"),
    Command("problem", "move('down')", ("down",), "Down", "To the field below.", "", "↓"),
    Command("problem", "move('left')", ("left",), "Left", "To the cell before.", "", "←"),
    Command("problem", "move('right')", ("right",), "Right", "To the cell after.", "", "→"),
)
