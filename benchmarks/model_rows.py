"""Rows of the models suite: one model in one number format, on every host and number of DPUs.

A job runs in a process of its own. It prices what could be launched (kept in the suite's folder),
places it by every strategy, and runs what was
placed on the simulator where that takes less than RUN_CYCLES.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch

from atim.offload import HostFile
from atim.offload.api import Prepared, finish, place, prepare
from atim.offload.check import compare
from atim.offload.hypothetical import CORES, UNITS
from atim.offload.placement import STRATEGIES, Placement, Problem
from atim.offload.pricing import Price, PriceBook
from atim.target import Target
from atim.tuner.version import software_version
from benchmarks.model_zoo import MODELS, Case, gptj, mlp

__all__ = ["FOLDER", "HERE", "QUICK", "SLACK", "Job", "Progress", "Row", "prepared", "rows_of"]

FOLDER = Path("runs/models")
HERE = FOLDER / "this-machine.json"
SIZES = (32, 64, 128, 256, 512, 1024, 2048, 2560)
QUICK_SIZES = (512,)
WHAT_IF_CORES = (32, 64, 128)
SLACK = 1.02  # ours may be so many times as slow as another strategy
RUN_AT = (512, 1024)
RUN_CYCLES = 3e9  # of all DPUs: about half a minute of simulation
QUICK = (
    Case("MLP 3 x 2048", mlp(2048), published=2.9),
    Case("GPT-J decode / 4", gptj(1024, 4, 1, 128), 28, published=5.1),
)


@dataclass(frozen=True, slots=True)
class Job:
    """A model (its place among the cases) in a number format."""

    case: int
    dtype: str
    quick: bool

    @property
    def model(self) -> Case:
        return (QUICK if self.quick else MODELS)[self.case]

    @property
    def label(self) -> str:
        return f"{self.model.name}, {self.dtype}"

    @property
    def size(self) -> int:
        """For the order of work."""
        return self.model.layers


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: seconds by strategy, predicted, and with simulated launches where
    that was done. operator: the largest speedup of one nest that DPUs can run, and its name."""

    model: str
    dtype: str
    host: str
    dpus: int
    core: str
    seconds: Mapping[str, float]
    moved: int
    operator: tuple[float, str] = (0.0, "")
    ran: Mapping[str, float] = field(default_factory=dict)

    @property
    def speedup(self) -> float:
        return self.seconds["all-host"] / self.seconds["ours"]

    @property
    def faults(self) -> list[str]:
        """What the suite fails for."""
        found = []
        for what, seconds in (("predicted", self.seconds), ("run", self.ran)):
            # where ours took too long to be run, there is nothing to compare
            if "ours" in seconds and seconds["ours"] > SLACK * min(seconds.values()):
                found.append(f"ours is not the best, {what}")
        ran = self.ran.get("ours", self.seconds["ours"])
        if abs(ran / self.seconds["ours"] - 1) > 0.05:  # others may be priced by closed forms
            found.append("ours takes other than predicted")
        return found

    def line(self) -> str:
        times = "  ".join(f"{name} {_ms(s)}" for name, s in self.seconds.items())
        ran = " ".join(f"{name} {_ms(s)}" for name, s in self.ran.items())
        where = f"{self.dpus:>4} {'DPUs' if not self.core else self.core}"
        return (
            f"{self.model:17} {self.dtype:7} {self.host:12} {where}  {times} ms"
            f"  {self.speedup:.2f}x, {self.moved} moved" + (f"; run: {ran} ms" if ran else "")
        )


@dataclass(slots=True)
class Progress:
    """What a suite has done, by labels of jobs, as rows.json holds it: of one version of the
    software, of offloading and of these models."""

    path: Path
    version: str
    measured: list[str] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=dict)

    @staticmethod
    def load(path: Path) -> Progress:
        """From the file; empty where it is missing, damaged or of another version."""
        fresh = Progress(path, _version())
        try:
            facts = json.loads(path.read_text())
            if facts["version"] != fresh.version:
                return fresh
            rows = {label: [Row(**row) for row in found] for label, found in facts["rows"].items()}
            return Progress(path, fresh.version, list(facts["measured"]), rows)
        except (OSError, ValueError, KeyError, TypeError):
            return fresh

    def save(self) -> None:
        facts = {k: v for k, v in asdict(self).items() if k != "path"}
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(facts, indent=1))
        partial.replace(self.path)


def _version() -> str:
    digest = hashlib.sha256(software_version().encode())
    (offload,) = importlib.import_module("atim.offload").__path__
    sources = [*Path(offload).glob("**/*.py"), *Path(__file__).parent.glob("model*.py")]
    for path in sorted(sources, key=lambda path: path.name):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


def prepared(job: Job) -> Prepared:
    """The model with weights that are the same in every process, imported and checked."""
    torch.manual_seed(0)
    with torch.no_grad():
        model, inputs = job.model.make(job.dtype)
    return prepare(model, inputs, state="auto")


def rows_of(job: Job) -> list[Row]:
    """Every row of a job. MismatchError when a placed model is not PyTorch's."""
    found = prepared(job)
    rows = []
    for host in (HostFile.load("papers"), HostFile.load(HERE)):
        for dpus in QUICK_SIZES if job.quick else SIZES:
            book = PriceBook(Target(dpus=dpus), FOLDER)
            problem = place(found, host, book, layers=job.model.layers)
            placed = {name: problem.place(name) for name in STRATEGIES}
            ran: dict[str, float] = {}
            if host.name == "papers" and (dpus in RUN_AT or job.model.name == "small model"):
                ran = _run(found, problem, placed)
            rows.append(_row(job, problem, placed, ran=ran))
    if job.dtype == "float32":
        rows.extend(_what_if(job, found))
    return rows


def _row(
    job: Job,
    problem: Problem,
    placed: Mapping[str, Placement],
    core: str = "",
    ran: Mapping[str, float] | None = None,
) -> Row:
    return Row(
        model=job.model.name,
        dtype=job.dtype,
        host=problem.host.name,
        dpus=problem.target.dpus,
        core=core,
        seconds={name: placement.seconds for name, placement in placed.items()},
        moved=len(placed["ours"].moved),
        operator=_best_operator(problem),
        ran=ran or {},
    )


def _best_operator(problem: Problem) -> tuple[float, str]:
    """The nest that gains most on DPUs, by itself."""
    gains = [(0.0, "")]
    for launch, price in zip(problem.launches, problem.prices, strict=True):
        if launch.form == "nest" and isinstance(price, Price):
            name = problem.graph.nests[launch.members[0]].name
            gains.append((problem.host_s(launch.members) / price.total, name))
    return max(gains)


def _run(found: Prepared, problem: Problem, placed: Mapping[str, Placement]) -> dict[str, float]:
    """Seconds of a call by strategy: host nests as predicted, launches as the simulator has them.

    Outputs are compared with PyTorch's; what takes too long to simulate is left out.
    """
    assert found.imported.reference is not None
    examples = found.imported.examples
    wanted = found.imported.reference(*examples)
    known: dict[tuple[int, ...], float] = {(): placed["all-host"].seconds}
    for name, placement in placed.items():
        if placement.chosen in known or _cycles(problem, placement) > RUN_CYCLES:
            continue
        module = finish(found, problem, placement)
        difference = compare(module.call_flat(*examples), wanted)
        if difference is not None:
            raise SystemExit(f"{name}: {difference}: not what PyTorch computes")
        rest = [v.nest for v in placement.verdicts if not v.on_pim]
        launches = sum(t.total for t in module.timings)
        known[placement.chosen] = problem.host_s(rest) + launches
    return {n: known[p.chosen] for n, p in placed.items() if p.chosen in known}


def _cycles(problem: Problem, placement: Placement) -> float:
    prices = [problem.prices[number] for number in placement.chosen]
    clock = problem.target.chip.clock_mhz * 1e6
    return sum(p.kernel * p.dpus * clock for p in prices if isinstance(p, Price))


def _what_if(job: Job, found: Prepared) -> Iterator[Row]:
    """Simulated targets, then cores in closed form. Weights of a whole model need more than 64 MB a
    core: the memory for them is not limited here (layers = 0)."""
    host = HostFile.load("papers")
    for cores in WHAT_IF_CORES[-1:] if job.quick else WHAT_IF_CORES:
        problems = {}
        for name in UNITS:
            book = PriceBook(Target(name, dpus=cores), FOLDER)
            problems[f"{name}, simulated"] = place(found, host, book, layers=0)
        for core in CORES:
            chosen = replace(core, cores=cores)
            launches = tuple(x for x in found.launches if not x.parts)
            prices = tuple(chosen.price(launch) for launch in launches)
            problems[f"{core.name}, closed form"] = Problem(
                found.graph, host, Target(dpus=cores), launches, prices, layers=0
            )
        for name, problem in problems.items():
            placed = {strategy: problem.place(strategy) for strategy in STRATEGIES}
            yield _row(job, problem, placed, core=f"HYPOTHETICAL {name}")
