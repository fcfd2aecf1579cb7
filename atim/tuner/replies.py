"""Replies of builders -> results in records."""

from __future__ import annotations

from dataclasses import replace

from atim.tuner.database import Record
from atim.tuner.pool import Reply
from atim.tuner.trial import REPEATABLE, Measurement

__all__ = ["lasting", "measurement", "recorded", "reused"]


def measurement(reply: Reply) -> Measurement:
    """What a builder found; a builder that was lost or stopped is a failure."""
    if isinstance(reply.value, Measurement):
        return reply.value
    return Measurement("failed", reply.kind, str(reply.value))


def lasting(result: Measurement | Record) -> bool:
    """True when the same C text would have this result again."""
    return bool(result.digest) and (result.status == "ok" or result.reason in REPEATABLE)


def recorded(record: Record, measured: Measurement, wall_s: float) -> Record:
    """A record with a measurement as its result."""
    parts = {f"{stage}_wall_s": seconds for stage, seconds in measured.parts.items()}
    return replace(
        record,
        status=measured.status,
        reason=measured.reason,
        message=measured.message,
        timing=measured.timing,
        counters={**measured.counters, **parts},
        wall_s=wall_s,
        digest=measured.digest or record.digest,
    )


def reused(record: Record, source: Record) -> Record:
    """A record with the result of another one of the same digest; wall times are its own."""
    counters = {n: v for n, v in source.counters.items() if not n.endswith("_wall_s")}
    return replace(
        record,
        status=source.status,
        reason=source.reason,
        message=source.message,
        timing=source.timing,
        counters={**counters, **record.counters},
        same_as=source.number if source.same_as is None else source.same_as,
    )
