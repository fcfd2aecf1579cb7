"""Traces of schedules as text: TVM's JSON form of the instructions, and back.

The text of a trace replays with TVM alone: `Trace.apply_json_to_schedule(json.loads(text), sch)`.
"""

from __future__ import annotations

import json
from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule, Trace

__all__ = ["plain", "replay", "text_of"]


def text_of(schedule: Schedule) -> str:
    """The trace of a schedule, one line of JSON."""
    return json.dumps(plain(schedule.trace.as_json()))


def replay(text: str, schedule: Schedule) -> None:
    """Apply a trace to the schedule of a fresh module. Raises what TVM raises."""
    Trace.apply_json_to_schedule(json.loads(text), schedule)


def plain(value: Any) -> Any:
    """TVM's arrays, maps and constants as lists, dicts and numbers."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tirx.IntImm):
        return int(value)
    if isinstance(value, tirx.FloatImm):
        return float(value.value)
    if hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value]
