"""The problem on one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.forms.enter import enter
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.forms.summary import collective_summary, summary

USUAL = ProblemForm()


def shown(draft, summary=summary):
    """The parts of a line, the names of axes between ‹ and ›."""
    parts = summary(resolve(draft, resolve(USUAL)))
    return {
        part.kind: "".join(f"‹{span.text}›" if span.axis else span.text for span in part.spans)
        for part in parts
    }


@pytest.mark.parametrize(
    ("einsum", "expected"),
    [
        ("bd,df->bf", {"einsum": "bd,df->bf", "specs": "‹X›‹Y›,‹Y›_->‹X›_"}),
        (
            "bd,df->bf; bf,fd->bd",
            {"einsum": "bd,df->bf; bf,fd->bd", "specs": "‹X›‹Y›,‹Y›_; ?,__->‹X›_"},
        ),
        (
            "X[X_X, Y_Y] *_Y U[Y_Y, U]{U_X}",
            {"einsum": "X[X_‹X›, Y_‹Y›] *_Y U[Y_‹Y›, U]{U_‹X›}"},
        ),
    ],
)
def test_axes_stand_apart(einsum, expected):
    found = shown(enter(USUAL, "einsum", einsum))
    assert {kind: found[kind] for kind in ("einsum", "specs") if kind in found} == expected


def test_the_other_fields():
    assert shown(USUAL) | {"einsum": "", "specs": ""} == {
        "einsum": "",
        "specs": "",
        "mesh": "‹X=2› ‹Y=4›",
        "dtype": "bf16",
        "targets": "shardy,cpu",
    }
    draft = replace(
        USUAL,
        sizes="b=8,d=8,f=8",
        axis_types="explicit",
        machine="h100:8",
        device_order="7 6 5 4 3 2 1 0",
        mesh="U=2,data=4",
        specs=("U data", "data _", "U _{U_( data )}"),
    )
    assert shown(draft) == {
        "einsum": "bd,df->bf",
        "specs": "‹U› ‹data›,‹data› _->‹U›_{U_( ‹data› )}",
        "mesh": "‹U=2› ‹data=4›",
        "device_order": "order 7 6 5 4 3 2 1 0",
        "sizes": "b=8 d=8 f=8",
        "dtype": "bf16",
        "axis_types": "explicit",
        "targets": "shardy,cpu",
        "machine": "on h100:8",
    }


def test_a_collective_of_its_own():
    draft = enter(USUAL, "collective", "ppermute")
    assert draft.collective is not None
    own = replace(draft.collective, axis="Y", data="3,9,5,2", spec="Y", parameters=(("perm", "(0,1)"),))
    assert shown(replace(draft, collective=own), collective_summary) == {
        "collective": "ppermute",
        "mesh": "‹X=2› ‹Y=4›",
        "axis": "along Y",
        "data": "3,9,5,2",
        "spec": "split Y",
        "algorithm": "direct",
        "parameter": "perm (0,1)",
    }
    assert shown(USUAL, collective_summary) == {}


def test_a_draft_with_faults_shows_the_last_valid_one():
    assert shown(replace(USUAL, specs=("Q", "", "["), targets="[")) == shown(USUAL)
