"""Fixtures for every test: a seeded generator, golden files, and the --update-golden switch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew, then pass"
    )


@pytest.fixture
def rng() -> np.random.Generator:
    """The only source of randomness of a test: a fixed seed."""
    return np.random.default_rng(20240131)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """golden(text, suffix=".txt") compares with tests/golden/<test file>/<test name><suffix>."""

    def check(text: str, suffix: str = ".txt") -> None:
        path = GOLDEN / request.path.stem / f"{request.node.name}{suffix}"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run pytest --update-golden and read the result"
        assert text == path.read_text(), f"differs from {path}; --update-golden accepts it"

    return check
