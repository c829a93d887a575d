"""Published choices beside the first rows of a search, as docs/search.md has them."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.slow
def test_llama_2_70b_is_sharded_as_maxtext_does(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    published_choices = __import__("published_choices")
    line = published_choices.row(published_choices.CHOICES[0])
    assert "| fsdp=512 | fsdp=512" in line
    assert "row 1" in line
