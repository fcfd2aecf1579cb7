"""What nests cost on a host: a host file of machine peaks, and of the fraction each nest reaches.

time = bound / ratio + cost of a call, where the bound is the larger of (bytes read / read peak +
bytes written / write peak) and operations / arithmetic peak. Machines drift; the ratio is stable,
because nest and probe are measured in turn. Host files are JSON, keyed by the nest's structure.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import tvm
from tvm import te

from atim.errors import RecordError, UsageError
from atim.offload.counters import Counters
from atim.offload.host import host_target, schedule, subscripts, threads
from atim.offload.nests import Graph, Nest

__all__ = ["Cost", "HostFile", "measure_host", "this_machine"]

PROBE_ROWS, PROBE_COLUMNS = 8192, 16384  # 512 MB of float32: more than the caches of a server
ROUNDS = 7
LONG_S = 0.5  # once is enough for a nest that takes so long
LOOPS, BLAS = "loops", "blas"


@dataclass(frozen=True, slots=True)
class Cost:
    """A nest on the host: seconds, what limits it (reads, writes or arithmetic), and how much of
    the bound is due to that."""

    seconds: float
    limit: str
    bound: float
    share: float

    @property
    def memory_bound(self) -> bool:
        return self.limit != "arithmetic"


@dataclass(frozen=True, slots=True)
class HostFile:
    """A host, as placement sees it.

    operations_s: by dtype; "" is any other. ratios: nest key -> (fraction of the bound reached,
    "loops" or "blas"). nest_s: cost of a call. large_*: the read peak of large nests, 0 if none.
    counters: hardware counters of one call of the faster code, by nest key; for information, and
    empty where the kernel refuses them (`no_counters` says why).
    """

    name: str
    description: str
    threads: int
    read_bytes_s: float
    write_bytes_s: float
    operations_s: Mapping[str, float]
    nest_s: float
    large_bytes: float = 0.0
    large_read_bytes_s: float = 0.0
    ratios: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    no_counters: str = ""

    def __post_init__(self) -> None:
        for name in ("read_bytes_s", "write_bytes_s"):
            if not getattr(self, name) > 0:
                raise UsageError(f"host file: {name} is {getattr(self, name)}, above 0 needed")

    def cost(self, nest: Nest) -> Cost:
        """Time of one call and its limit."""
        return self.estimate(nest.key, nest.features)

    def estimate(self, key: str, f: Any) -> Cost:
        large = self.large_bytes and f.reads + f.writes >= self.large_bytes
        rate = self.large_read_bytes_s if large else self.read_bytes_s
        peak = self.operations_s.get(f.dtype, self.operations_s.get("", 1e11))
        parts = {
            "reads": f.reads / rate,
            "writes": f.writes / self.write_bytes_s,
            "arithmetic": f.arithmetic / peak,
        }
        memory = parts["reads"] + parts["writes"]
        bound = max(memory, parts["arithmetic"], 1e-12)
        if parts["arithmetic"] > memory:
            limit = "arithmetic"
        else:
            limit = "reads" if parts["reads"] >= parts["writes"] else "writes"
        ratio = self.ratios.get(key, (1.0, LOOPS))[0]
        return Cost(bound / ratio + self.nest_s, limit, bound, parts[limit] / bound)

    def variant(self, nest: Nest) -> str:
        """Which code is faster: loops by LLVM, or BLAS. Unmeasured products of matrices: BLAS."""
        if nest.key in self.ratios:
            return self.ratios[nest.key][1]
        possible = nest.features.kind == "gemm" and subscripts(nest.func) is not None
        return BLAS if possible else LOOPS

    def save(self, path: str | Path) -> None:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(json.dumps(asdict(self), indent=2) + "\n")
        except OSError as error:
            raise RecordError(f"host file {path} can't be written: {error.strerror}") from error

    @staticmethod
    def load(name: str | Path) -> HostFile:
        """A file, or one that ships: "papers". UsageError for anything else."""
        path = Path(name)
        try:
            if path.suffix == ".json":
                text = path.read_text()
            else:
                text = resources.files("atim.offload").joinpath(f"hosts/{name}.json").read_text()
            facts = json.loads(text)
        except OSError as error:
            raise UsageError(f"host {str(name)!r}: no such host file (papers ships)") from error
        except ValueError as error:
            raise UsageError(f"host file {name}: {error}") from error
        known = {f.name for f in fields(HostFile)}
        if not isinstance(facts, dict) or set(facts) - known:
            raise UsageError(f"host file {name}: not the fields of a host file")
        ratios = {key: (float(r), str(v)) for key, (r, v) in facts.pop("ratios", {}).items()}
        try:
            return HostFile(**facts, ratios=ratios)
        except TypeError as error:
            raise UsageError(f"host file {name}: {error}") from error


def measure_host(graph: Graph, *, known: HostFile | None = None, rounds: int = ROUNDS) -> HostFile:
    """Time every different nest of a graph on this machine.

    known: a host file of this machine whose nests are not measured again, and whose peaks stay.
    Each round times the probe and the nest; a large nest that beats a peak raises it.
    """
    probe = _Probe()
    host = known or _peaks(probe, rounds)
    measured, counted = {}, dict(host.counters)
    counters = Counters.open()
    for nest in {n.key: n for n in graph.nests}.values():
        if nest.key in host.ratios or nest.features.kind in ("dynamic", "opaque"):
            continue
        seconds, variant, call = _nest_seconds(nest, probe, rounds)
        if not counters.why_not:
            counted[nest.key] = counters.of(call)
        measured[nest.key] = (nest, max(seconds - host.nest_s, seconds / 4), variant)
    counters.close()
    if known is None:
        for nest, seconds, _ in measured.values():
            host = _raised(host, nest, seconds)
    ratios = {
        key: (host.estimate("", nest.features).bound / seconds, variant)
        for key, (nest, seconds, variant) in measured.items()
    }
    return replace(
        host,
        ratios={**host.ratios, **ratios},
        counters=counted,
        no_counters=counters.why_not,
    )


def _raised(host: HostFile, nest: Nest, seconds: float) -> HostFile:
    """Peaks are what was seen at most: a large nest that is faster raises that which limits it."""
    cost = host.estimate("", nest.features)
    over = cost.bound / seconds
    if over <= 1 or nest.features.reads <= 1 << 22:
        return host
    if cost.limit == "arithmetic":
        peaks = {name: value * over for name, value in host.operations_s.items()}
        return replace(host, operations_s=peaks)
    if cost.limit == "reads":
        return replace(host, read_bytes_s=host.read_bytes_s * over)
    return replace(host, write_bytes_s=host.write_bytes_s * over)


class _Probe:
    """A product of matrix and vector too large for caches: its rate is the read peak."""

    def __init__(self) -> None:
        a = te.placeholder((PROBE_ROWS, PROBE_COLUMNS), "float32", "a")
        x = te.placeholder((PROBE_COLUMNS,), "float32", "x")
        k = te.reduce_axis((0, PROBE_COLUMNS), "k")
        y = te.compute((PROBE_ROWS,), lambda i: te.sum(a[i, k] * x[k], axis=k), "y")
        self.call = _compiled(te.create_prim_func([a, x, y]))
        self.nbytes = 4 * PROBE_ROWS * PROBE_COLUMNS
        self.best = min(self.seconds() for _ in range(ROUNDS))

    def seconds(self) -> float:
        return _timed(self.call)

    def slowdown(self) -> float:
        """How much slower the machine is right now than at its best."""
        now = self.seconds()
        self.best = min(self.best, now)
        return now / self.best


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _random(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(0)
    kind = np.dtype(dtype)
    values = rng.random(shape, np.float32) if kind.kind == "f" else rng.integers(0, 2, shape)
    return tvm.runtime.tensor(np.asarray(values, kind, order="C"))


def _arguments(func: Any) -> list[Any]:
    return [_random(tuple(int(n) for n in p.shape), str(p.dtype)) for p in func.params]


def _compiled(func: Any) -> Callable[[], None]:
    module = tvm.IRModule({"main": schedule(func).with_attr("global_symbol", "main")})
    built = tvm.compile(module, target=host_target())
    arguments = _arguments(func)
    entry = built["main"]
    return lambda: entry(*arguments)


def _blas(func: Any, text: str) -> Callable[[], object]:
    a, b, out = (t.numpy() for t in _arguments(func))
    return lambda: np.einsum(text, a, b, out=out, optimize=True)


def _nest_seconds(
    nest: Nest, probe: _Probe, rounds: int
) -> tuple[float, str, Callable[[], object]]:
    """Seconds of the faster code, corrected for the machine's speed at the moment; its name, and a
    call of it."""
    codes: dict[str, Callable[[], object]] = {LOOPS: _compiled(nest.func)}
    text = subscripts(nest.func)
    if text is not None:
        codes[BLAS] = _blas(nest.func, text)
    found = {}
    for name, call in codes.items():
        call()
        once = _timed(call)
        repeats = max(1, min(200, int(2e-3 / max(once, 1e-7))))
        seen = []
        for _ in range(rounds if once < LONG_S else 1):
            slow = probe.slowdown()
            seen.append(_timed(lambda: [call() for _ in range(repeats)]) / repeats / slow)  # noqa: B023
        found[name] = median(seen)
    best = min(found, key=lambda name: found[name])
    return found[best], best, codes[best]


def this_machine() -> tuple[int, str]:
    """Threads and description of a host file measured now."""
    return threads(), f"measured, target {host_target()}"


def _peaks(probe: _Probe, rounds: int) -> HostFile:
    """This machine, no nest measured yet."""
    size = 1 << 24
    fill = te.compute((size,), lambda i: te.const(1, "float32") * i.astype("float32"), "fill")
    store = _compiled(te.create_prim_func([fill]))
    one = te.compute((8,), lambda i: i.astype("float32"), "one")
    small = _compiled(te.create_prim_func([one]))
    a = np.ones((1024, 1024), np.float32)
    seconds = {
        "store": min(_timed(store) for _ in range(rounds)),
        "small": min(_timed(lambda: [small() for _ in range(100)]) / 100 for _ in range(rounds)),
        "matmul": min(_timed(lambda: a @ a) for _ in range(rounds)),
    }
    flops = 2 * 1024**3 / seconds["matmul"]
    return HostFile(
        name="this machine",
        description=this_machine()[1],
        threads=threads(),
        read_bytes_s=probe.nbytes / probe.best,
        write_bytes_s=4 * size / seconds["store"],
        operations_s={"float32": flops, "": flops},
        nest_s=seconds["small"],
    )
