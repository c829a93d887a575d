"""Where the answer to a prediction is to be seen: which array, device, round or operation."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.lessons.lesson import Prediction
from shardviz.lessons.measures import answer_of
from shardviz.lessons.measures.subject import position_of, scene_of

OF_ARRAY = ("shard_shape", "slices", "holders", "replicas", "bytes", "shard_bytes", "spelled")
OF_DEVICE = {"slices": 1, "holders": 1, "coordinates": 0, "held": 0, "result": 0, "sends_to": 0}
"""Measures of a device, with the place of its number among their arguments."""
OF_ROUND = {"sends_to": 1, "held": 1}
"""Measures of a round, with the place of its number among their arguments."""
OF_OPERATION = ("line", "count")


@dataclass(frozen=True)
class Place:
    """What a screen begins with. `position` is a device's place in the mesh, row by row, `round` that of a
    collective; an empty `array` or `operation` leaves that to the screen."""

    array: str = ""
    position: int = 0
    operation: str = ""
    round: int = 0


def place_of(prediction: Prediction) -> Place:
    """What the prediction asks about. Raises as `answer_of` does."""
    measure, *arguments = prediction.ask.split()
    mesh = scene_of(prediction.draft).problem.mesh
    array = arguments[0] if measure in OF_ARRAY and arguments else ""
    operation = arguments[0] if measure in OF_OPERATION else ""
    if measure == "device":
        return Place(position=position_of(mesh, answer_of(prediction).text))
    device = arguments[OF_DEVICE[measure]] if measure in OF_DEVICE else ""
    round_ = int(arguments[OF_ROUND[measure]]) if measure in OF_ROUND else 0
    return Place(array, position_of(mesh, device) if device else 0, operation, round_)
