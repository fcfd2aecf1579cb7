"""Host side times: they grow with bytes and DPUs, and come near what was published."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from upmem_sim.transfer import PRESETS, TransferModel, measured_points
from upmem_sim.transfer_costs import monotone

SIZES = np.unique(np.geomspace(8, 64 << 20, 60).astype(int))
DPUS = np.array([1, 2, 8, 63, 64, 65, 100, 128, 200, 256, 512, 700, 1024, 1500, 2048, 2300, 2560])
CALLS = ("to_dpus", "from_dpus", "broadcast", "to_wram", "from_wram")

# MTV 8192 x 8192, 2048 DPUs: pieces, vector in, result out, host finish, ms
# (preliminary_experiment.py of yongwonshin/atim, 5102b370b)
PIECES = [
    (1, 6.46, 0.39, 0.0),
    (4, 1.82, 0.41, 0.10),
    (8, 1.05, 0.45, 0.16),
    (64, 0.68, 0.74, 1.01),
    (128, 0.68, 0.98, 2.10),
    (256, 0.49, 1.05, 4.26),
    (512, 0.36, 2.62, 18.7),
    (1024, 0.39, 4.64, 39.1),
]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("call", CALLS)
def test_time_grows_with_bytes_and_with_dpus(preset: str, call: str) -> None:
    grid = getattr(TransferModel.preset(preset), call)(SIZES[:, None], DPUS[None, :])
    assert grid.shape == (len(SIZES), len(DPUS))
    assert np.all(np.diff(grid, axis=0) >= -1e-12)
    assert np.all(np.diff(grid, axis=1) >= -1e-12)
    assert np.all(grid > 0)


@pytest.mark.parametrize("direction", ["in", "out"])
def test_cloud_lookup_is_near_its_table(direction: str) -> None:
    model = TransferModel.preset("cloud-2024")
    call = model.to_dpus if direction == "in" else model.from_dpus
    errors = [
        abs(call(nbytes, dpus) / seconds - 1)
        for (way, memory, nbytes, dpus), seconds in measured_points().items()
        if (way, memory) == (direction, "mram")
    ]
    assert len(errors) == 77
    assert np.mean(errors) < 0.03
    # the table has dips, which a time that grows with DPUs cannot follow
    assert max(errors) < 0.30


def test_atim_preset_reproduces_its_pieces_table() -> None:
    model = TransferModel.preset("upmem-2021.3-2048dpu")
    inward = [model.to_dpus(8192 // p * 4, 2048) * 1e3 / ms for p, ms, _, _ in PIECES]
    outward = [model.from_dpus(8192 * p // 2048 * 4, 2048) * 1e3 / ms for p, _, ms, _ in PIECES]
    assert np.mean(np.abs(np.array(inward) - 1)) < 0.25
    assert np.mean(np.abs(np.array(outward) - 1)) < 0.25


def test_host_reduction_reproduces_its_column() -> None:
    model = TransferModel.preset()
    for pieces, _, _, ms in PIECES:
        elements = pieces * 8192 if pieces > 1 else 0
        assert model.host_reduce(elements, 4) * 1e3 == pytest.approx(ms, rel=0.1, abs=0.01)


def test_host_reduction_gains_from_threads_but_never_fully() -> None:
    model = TransferModel.preset()
    serial, parallel = (model.host_reduce(1 << 20, 4, threads) for threads in (1, 16))
    assert serial / 16 < parallel < serial / 4


def test_common_push_follows_its_formula() -> None:
    seconds = TransferModel.preset("common").to_dpus(1 << 20, 128)
    rate = 5.9e9 * 2**0.56
    assert seconds == pytest.approx(0.07e-3 + 2 * 0.018e-3 + 128 * 2**20 / rate)


def test_the_rate_is_capped_where_the_system_was() -> None:
    model = TransferModel.preset("upmem-2021.3-2048dpu")
    step = model.to_dpus(2 << 20, 2048) - model.to_dpus(1 << 20, 2048)
    assert 2048 * 2**20 / step == pytest.approx(11e9)


def test_launch_is_paid_by_rank() -> None:
    model = TransferModel.preset()
    assert model.launch(2048) * 1e3 == pytest.approx(0.292)
    assert model.launch(65) == model.launch(128) > model.launch(64)


def test_broadcast_beats_pushing_the_same_bytes() -> None:
    model = TransferModel.preset()
    assert model.broadcast(1 << 20, 64) < 0.5 * model.to_dpus(1 << 20, 64)


def test_no_bytes_and_no_dpus_take_no_time() -> None:
    model = TransferModel.preset("cloud-2024")
    assert model.to_dpus(0, 64) == model.from_dpus(64, 0) == model.host_reduce(0, 4) == 0.0


def test_scalars_give_what_arrays_give() -> None:
    model = TransferModel.preset("cloud-2024")
    array = model.from_dpus(np.array([40, 3000]), np.array([10, 640]))
    assert array.tolist() == [model.from_dpus(40, 10), model.from_dpus(3000, 640)]


def test_bad_requests_say_what_was_asked() -> None:
    with pytest.raises(ValueError, match=r"preset 'cloud' is unknown: common, .*cloud-2024"):
        TransferModel.preset("cloud")
    with pytest.raises(ValueError, match=r"bytes: -8 is below 0"):
        TransferModel.preset().to_dpus(-8, 1)


def test_every_fitted_number_says_unit_range_and_evidence() -> None:
    model = TransferModel.preset("common")
    for part in (model, model.inward, model.wram_in, model.reduction):
        for item in dataclasses.fields(part):
            if item.metadata:
                low, high = item.metadata["range"]
                assert low <= getattr(part, item.name) <= high, item.name
                assert item.metadata["unit"]
                assert item.metadata["meaning"]
    for part in (model.inward, model.wram_in, model.reduction):
        assert part.evidence


def test_monotone_keeps_a_monotone_table_and_repairs_a_dip() -> None:
    good = np.array([[1.0, 2.0], [2.0, 3.0]])
    assert np.array_equal(monotone(good), good)
    assert monotone(np.array([[1.0, 4.0, 2.0]])).tolist() == [[1.0, 3.0, 3.0]]
