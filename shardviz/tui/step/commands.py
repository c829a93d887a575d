"""The commands of the step."""

from __future__ import annotations

from shardviz.tui.command import Command

STEP = (
    Command("step", "play", ("space",), "Play", "Play the rounds, or pause.", "play", "space"),
    Command("step", "round(1)", ("right",), "Next round", "One round forward.", "round", "→"),
    Command("step", "round(-1)", ("left",), "Round before", "One round back.", "", "←"),
    Command("step", "first", ("home",), "First", "Before the first round."),
    Command("step", "last", ("end",), "Last", "After the last round."),
    Command("step", "speed(1)", ("plus", "equals_sign"), "Faster", "Twice as many rounds a second.", "", "+"),
    Command("step", "speed(-1)", ("minus",), "Slower", "Half as many rounds a second.", "", "-"),
    Command(
        "step", "algorithm(1)", ("a",), "Next algorithm", "The same with the next algorithm.", "algorithm"
    ),
    Command("step", "algorithm(-1)", ("A",), "Algorithm before", "The same with the algorithm before."),
    Command(
        "step", "view", ("v",), "View", "The devices with their links, or a table of all chunks.", "view"
    ),
    Command(
        "step", "collective(1)", ("n",), "Next collective", "The next collective of the plan.", "collective"
    ),
    Command("step", "collective(-1)", ("N",), "Collective before", "The collective of the plan before."),
    Command("step", "other", ("o",), "Other", "Play any other collective.", "any"),
    Command("step", "back_to_plan", ("O",), "Plan's", "Back from another collective to those of the plan."),
    Command("step", "links", ("l",), "Links", "Join the devices by a ring or a torus, a line, a switch."),
    Command("step", "ask_now", ("r",), "Ask now", "Ask JAX and all targets now, also again."),
    Command("step", "group(1)", ("g",), "Next group", "Show the next of the groups that do this together."),
    Command("step", "group(-1)", ("G",), "Group before", "Show the group before."),
    Command(
        "step", "pan(1)", ("greater_than_sign", "shift+right"), "Right", "What is to the right.", "", ">"
    ),
    Command("step", "pan(-1)", ("less_than_sign", "shift+left"), "Left", "What is to the left.", "", "<"),
)

FORM = (
    Command("step", "play_it", ("enter",), "Play it", "Play what stands in the form.", "play it", "enter"),
    Command("step", "leave", ("escape",), "Back", "Back to what was played before.", "back", "esc"),
    Command("step", "next_choice", ("space",), "Next", "The next operation or algorithm.", "next", "space"),
    Command("step", "focus", ("down",), "Fields", "From field to field.", "fields", "↑↓"),
)
"""While the form for another collective is open; its fields have the keys."""
