"""Whole models: for every loop nest, host or PIM, by cost. `atim.offload(model, inputs, target)`.

The package is called like its function, so the module itself can be called. The files are named in
the order of work in `api.py`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from atim.offload.api import Result, offload
from atim.offload.module import Offloaded, load
from atim.offload.profile import HostFile, measure_host

__all__ = ["HostFile", "Offloaded", "Result", "load", "measure_host", "offload"]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Result:
        return offload(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
