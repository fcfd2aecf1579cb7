"""`import atim`: light, and plain about a wrong FFI version."""

from __future__ import annotations

import subprocess
import sys

import pytest

import atim


def test_import_loads_no_tvm() -> None:
    code = "import sys, atim; sys.exit('tvm' in sys.modules or 'xgboost' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_wrong_ffi_version_is_named() -> None:
    with pytest.raises(ImportError, match=r"0\.1\.15 installed, 0\.1\.14\.post1 needed"):
        atim.check_ffi("0.1.15")
    atim.check_ffi(atim.FFI_VERSION)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = atim.nonsense
