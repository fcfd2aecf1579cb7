"""Target: chip limits come from the simulator's parameters, bad requests are one line."""

from __future__ import annotations

import dataclasses

import pytest

from atim.errors import UsageError
from atim.target import TARGETS, Target
from upmem_sim.params import DPU_PRESETS


@pytest.mark.parametrize("name", TARGETS)
def test_limits_are_those_of_the_chip(name: str) -> None:
    target, chip = Target(name), DPU_PRESETS[TARGETS[name]]
    assert target.tasklets == chip.tasklets
    assert target.wram_bytes == chip.wram_bytes
    assert target.mram_bytes == chip.mram_bytes
    assert target.iram_instructions == chip.iram_instructions


def test_target_is_frozen_and_hashable() -> None:
    target = Target(dpus=64)
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.dpus = 65  # type: ignore[misc]
    assert {target: 1}[Target(dpus=64)] == 1
    assert dataclasses.replace(target, dpus=32) == Target(dpus=32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dpus": 5000}, "DPUs: 5000 requested, limit 2560"),
        ({"dpus": 0}, "DPUs: 0 requested, at least 1 needed"),
        ({"dpus": 2.0}, "DPUs: integer expected, 2.0 given"),
        ({"tasklets": 25}, "tasklets: 25 requested, limit 24"),
        ({"name": "upmem-v1b", "tasklets": 17}, "tasklets: 17 requested, limit 16"),
        ({"stack_bytes": 1001}, "stack bytes: 1001 requested, multiple of 8 needed"),
        (
            {"name": "upmem"},
            "target: 'upmem' unknown, known: upmem-v1a, upmem-v1b,"
            " hypothetical-units, hypothetical-units-1ghz",
        ),
    ],
)
def test_bad_use(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Target(**arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_hypothetical_targets_say_so() -> None:
    assert Target().label == "upmem-v1a"
    assert Target().units == ()
    made = Target("hypothetical-units-1ghz")
    assert "(HYPOTHETICAL: no UPMEM chip has multiply32 1, float_add 1," in made.label
    assert "clock 1000 MHz" in made.label
    assert made.units == ("mul32", "float")
    with pytest.raises(UsageError, match="hypothetical, no DIMMs to run on"):
        made.on_hardware()
