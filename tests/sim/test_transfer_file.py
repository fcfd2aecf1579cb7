"""Measured systems as files: what was written is looked up, damage is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from upmem_sim import TransferModel
from upmem_sim.transfer import ATIM_HOST
from upmem_sim.transfer_file import TABLES, host_values, write_preset


def values() -> dict[str, Any]:
    table = {"bytes": [32, 1024], "dpus": [1, 64], "seconds": [[1e-4, 2e-4], [3e-4, 5e-4]]}
    numbers = {"broadcast_gain": 2.0, "launch_ms": 0.1, "launch_per_rank_ms": 0.01}
    return {
        "name": "mine",
        "source": "a test",
        "host": host_values(ATIM_HOST),
        **{key: table for key in TABLES},
        **numbers,
    }


def test_written_times_are_looked_up(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write_preset(path, values())
    model = TransferModel.preset(str(path))
    assert model.name == "mine"
    for call in (model.to_dpus, model.from_dpus, model.to_wram, model.from_wram):
        assert call(32, 1) == pytest.approx(1e-4)
        assert call(1024, 64) == pytest.approx(5e-4)
        assert 2e-4 < call(200, 64) < 5e-4
        assert call(4096, 64) == pytest.approx(2e-3)
    assert model.broadcast(2048, 64) == pytest.approx(5e-4)
    assert model.launch(128) == pytest.approx(0.12e-3)
    assert model.reduction == ATIM_HOST


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"to_mram": {"bytes": [32], "dpus": [1], "seconds": [[1e-4]]}}, "a table of 1 sizes"),
        ({"to_wram": {"bytes": [8, 4], "dpus": [1, 2], "seconds": [[1, 1], [1, 1]]}}, "must grow"),
        (
            {"from_mram": {"bytes": [4, 8], "dpus": [1, 2], "seconds": [[0, 1], [1, 1]]}},
            "more than",
        ),
        ({"launch_ms": "x"}, "ValueError"),
        ({"host": {}}, "TypeError"),
    ],
)
def test_damage_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(values() | change))
    with pytest.raises(ValueError, match=message):
        TransferModel.preset(str(path))


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.json: No such file"):
        TransferModel.preset(str(tmp_path / "none.json"))
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        TransferModel.preset(str(tmp_path / "text.json"))
