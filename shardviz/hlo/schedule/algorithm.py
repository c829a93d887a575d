"""How a compiler carries a collective out, where the line says so: its own words, made readable.

TPU text has ``"collective_algorithm_config":{"emitter":"RotatedPincerEmitter","strategy":...}``, GPU text
``"collective_backend_config":{...,"backend":"DEFAULT","kernel_strategy":"KERNEL_STRATEGY_DEFAULT"}``.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TPU = '"collective_algorithm_config":{'
_GPU = '"collective_backend_config":{'
_CHOICE = re.compile(r'"(emitter|strategy|backend|collectives_mode|kernel_strategy)":"([A-Za-z0-9_]{1,100})"')
_WORD = re.compile(r"(?:\d+|N)D(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_USUAL = ("default", "invalid", "unspecified")
_KINDS = ("collectives_mode", "kernel_strategy")


@lru_cache(maxsize=4096)
def algorithm_of(attributes: str) -> str:
    """The algorithm that the attributes of an instruction name, "" where they name none or only a default.

    ``RotatedPincerEmitter`` and ``UniDirection1DRingStrategy`` are "rotated pincer, uni direction 1D ring",
    ``KERNEL_STRATEGY_TRITON_TWO_SHOT`` "triton two shot".
    """
    for marker in (_TPU, _GPU):
        place = attributes.find(marker)
        if place >= 0:
            end = attributes.find("}", place)
            chosen = _CHOICE.findall(attributes, place, len(attributes) if end < 0 else end)
            return ", ".join(filter(None, (_words(key, value) for key, value in chosen)))
    return ""


def _words(key: str, value: str) -> str:
    if key in _KINDS:
        value = value.removeprefix(f"{key}_".upper())
    words = [word if word == "ND" or word[:-1].isdigit() else word.lower() for word in _WORD.findall(value)]
    kept = [word for word in words if word not in ("emitter", "strategy")]
    return "" if not kept or kept[0] in _USUAL else " ".join(kept)
