"""`offload`: a model, example inputs and a target in; a placed, callable module and a report out.

import     PyTorch, ONNX, Relax -> Relax                     importer.py, converters.py
lower      Relax -> one root loop nest a function            lowering.py, split.py
check      the host module against the original              check.py
candidates nests -> launches that DPUs could run             nests.py, launches.py
profile    time of each nest on the host                     profile.py, hosts/
price      time of each launch on DPUs                       pricing.py
place      two stages, then an integer program               placement.py
rewrite    moved nests become launches                       rewrite.py, module.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atim.errors import MismatchError, UnsupportedError, UsageError
from atim.offload.check import check_import, compare
from atim.offload.factors import Factor, factor_of
from atim.offload.host import host_target, view
from atim.offload.imported import Imported, Place, as_array
from atim.offload.importer import import_model
from atim.offload.launches import BETWEEN, Launch, launches_of
from atim.offload.lowering import lower
from atim.offload.module import Offloaded, kernel_of
from atim.offload.nests import Graph, read_graph
from atim.offload.placement import STRATEGIES, Placement, Problem
from atim.offload.pricing import METHODS, Price, PriceBook
from atim.offload.profile import HostFile, measure_host, this_machine
from atim.offload.rewrite import build, rewrite
from atim.offload.state import Pairs
from atim.offload.unlowered import unlowered
from atim.target import Target
from atim.workloads import random_array

__all__ = ["Prepared", "Result", "offload", "place", "prepare"]

Array = NDArray[Any]

# Closed forms may be so many times too high: what is estimated slower yet is not simulated.
DOUBT = 2.0
# tuning has gained up to so much over the best of the closed forms
TUNING_GAIN = 1.5


@dataclass(frozen=True)
class Prepared:
    """A model imported, lowered and checked; its graph and what could run on DPUs."""

    imported: Imported
    graph: Graph
    launches: tuple[Launch, ...]
    values: Mapping[str, Array] = field(repr=False)  # what launches read, on the example inputs
    _factors: dict[tuple[str, ...], Factor | None] = field(default_factory=dict, repr=False)

    @property
    def inputs(self) -> int:
        return len(self.imported.examples)

    def arrays(self, launch: Launch) -> dict[str, Array]:
        """The tensors of a launch: its weights, and its other operands on the example inputs."""
        return {o.tensor: o.gather([self._array(v) for v in o.values]) for o in launch.operands}

    def factors(self, launch: Launch) -> dict[str, Factor | None]:
        """How large the integers in its tensors are, for closed forms; by tensor."""
        found = {o.tensor: self._factor(o.values) for o in launch.operands}
        return found | ({BETWEEN: self._factor((launch.stays,))} if launch.stays else {})

    def _factor(self, names: tuple[str, ...]) -> Factor | None:
        if names not in self._factors:
            parts = [factor_of(self._array(name)) for name in names]
            known = [part for part in parts if part is not None]
            whole = None
            if len(known) == len(parts):
                steps = sum(part.steps for part in known) / len(known)
                whole = Factor(steps, all(part.narrow for part in known))
            self._factors[names] = whole
        return self._factors[names]

    def _array(self, name: str) -> Array:
        position = self.graph.values[name].position
        if position < 0:
            return self.values[name]
        if position < self.inputs:
            return self.imported.examples[position]
        return view(self.imported.parameters[position - self.inputs])


@dataclass(frozen=True)
class Result:
    """An offloaded model. `module` is callable; `placement` says what moved and why.

    baselines: the other strategies' placements by name, for comparison; examples: the example
    inputs that the module takes (kept state is none).
    """

    module: Offloaded
    problem: Problem
    placement: Placement
    baselines: dict[str, Placement]
    fallbacks: tuple[Place, ...] = field(default=())
    reference: Callable[..., list[Array]] | None = field(default=None, repr=False)
    examples: tuple[Array, ...] = field(default=(), repr=False)

    def verify(self, inputs: Sequence[Any]) -> str:
        """Run on the simulator, from the first state on; what the launches took, beside what was
        predicted.

        Raises MismatchError when the outputs are not those of the original.
        """
        self.module.reset()
        outputs = self.module.call_flat(*inputs)
        if self.reference is not None:
            difference = compare(outputs, self.reference(*(as_array(v) for v in inputs)))
            if difference is not None:
                raise MismatchError(f"placed model is not the original: {difference}")
        ran = sum(t.total for t in self.module.timings)
        prices = [self.problem.prices[n] for n in self.placement.chosen]
        predicted = sum(p.total for p in prices if isinstance(p, Price))
        equal = "outputs equal the original's" if self.reference else "no original to compare with"
        return f"{equal}; launches took {ran * 1e3:.3f} ms, predicted {predicted * 1e3:.3f} ms"

    def __call__(self, *inputs: Any) -> Any:
        return self.module(*inputs)

    def report(self) -> str:
        """Table of nests, what moved and why, predicted times of all strategies."""
        from atim.offload.report import text  # brings Matplotlib

        return text(self.problem, self.placement, self.baselines, self.fallbacks)


def prepare(
    model: Any,
    examples: Sequence[Any],
    dynamic_shapes: Any | None = None,
    state: str | Pairs | None = None,
) -> Prepared:
    """Import, lower and check a model; see `offload` for the errors."""
    imported, lowered = _lowered(model, examples, dynamic_shapes, state)
    graph = read_graph(lowered.module, lowered.states)
    launches = launches_of(graph)
    wanted = {v: None for x in launches for o in x.operands for v in o.values}
    also = [name for name in wanted if graph.values[name].position < 0]
    # any host file will do for a run without launches
    module = rewrite(lowered.module, graph, (), HostFile.load("papers"), also)
    host_only = Offloaded(build(module, host_target()), lowered.parameters, (), lowered.states)
    outputs = host_only.call_flat(*imported.examples)
    count = len(outputs) - len(also)
    check_import(imported, outputs[:count])
    return Prepared(lowered, graph, launches, dict(zip(also, outputs[count:], strict=True)))


def _lowered(
    model: Any, examples: Sequence[Any], dynamic_shapes: Any | None, state: str | Pairs | None
) -> tuple[Imported, Imported]:
    """The model as Relax, and lowered; operators that TVM can't lower run through PyTorch."""
    imported = import_model(model, examples, dynamic_shapes=dynamic_shapes, state=state)
    try:
        return imported, lower(imported)
    except UnsupportedError:
        operators = unlowered(imported)
        if not operators:
            raise
    imported = import_model(
        model, examples, dynamic_shapes=dynamic_shapes, state=state, through_torch=operators
    )
    return imported, lower(imported)


def place(
    prepared: Prepared,
    host: HostFile,
    book: PriceBook,
    *,
    method: str = "simulate",
    layers: int = 1,
    switch_s: float = 0.0,
) -> Problem:
    """Price every launch: closed form, then `method` for those that may pay."""
    graph, launches = prepared.graph, prepared.launches
    prices: list[Price | str] = []
    for launch in launches:
        hopeless = _hopeless(launch, launches, prices, host, graph)
        factors = prepared.factors(launch)
        prices.append(hopeless or book.price(launch, "estimate", factors=factors))
    problem = Problem(graph, host, book.target, launches, tuple(prices), layers, switch_s)
    for step, doubt in (("simulate", DOUBT), ("tune", TUNING_GAIN)):
        if METHODS.index(method) < METHODS.index(step):
            break
        for number, launch in enumerate(launches):
            price = prices[number]
            if isinstance(price, Price) and price.total < doubt * problem.host_s(launch.members):
                arrays, factors = prepared.arrays(launch), prepared.factors(launch)
                prices[number] = book.price(launch, step, arrays, factors)
        problem = replace(problem, prices=tuple(prices))
    return problem


def _hopeless(
    launch: Launch,
    launches: Sequence[Launch],
    prices: Sequence[Price | str],
    host: HostFile,
    graph: Graph,
) -> str:
    """Why a chain needs no search: one of its kernels alone takes far longer than the host does for
    all of it. Empty for other launches."""
    if not launch.parts:
        return ""
    limit = DOUBT * sum(host.cost(graph.nests[i]).seconds for i in launch.members)
    for other, price in zip(launches, prices, strict=False):
        inside = other.form == "nest" and set(other.members) < set(launch.members)
        if inside and isinstance(price, Price) and price.kernel > limit:
            return f"nest {other.members[0]} alone takes {price.kernel * 1e3:.3g} ms on DPUs"
    return ""


def finish(prepared: Prepared, problem: Problem, placement: Placement) -> Offloaded:
    """The callable module of a placement."""
    chosen = [problem.launches[number] for number in placement.chosen]
    module = rewrite(prepared.imported.module, prepared.graph, chosen, problem.host)
    kernels = []
    for number, launch in zip(placement.chosen, chosen, strict=True):
        price = problem.prices[number]
        assert isinstance(price, Price)
        kernels.append(kernel_of(launch, price, prepared.graph, problem.target, prepared.inputs))
    imported = prepared.imported
    built = build(module, host_target())
    return Offloaded(built, imported.parameters, kernels, imported.states, imported.structure)


def offload(
    model: Any,
    example_inputs: Sequence[Any],
    target: Target | None = None,
    *,
    host: str | Path | HostFile | None = None,
    method: str = "simulate",
    trials: int = 16,
    strategy: str = "ours",
    layers: int = 1,
    switch_s: float = 0.0,
    work_dir: str | Path = "runs/offload",
    dynamic_shapes: Any | None = None,
    state: str | Pairs | None = None,
) -> Result:
    """Decide for every loop nest of a model whether it runs on the host or on DPUs, and build that.

    model: a torch.nn.Module, an ONNX file or a Relax module; example_inputs: one a input, of the
    shapes to compile for. host: a host file ("papers", or a path); None measures this machine and
    keeps the result in work_dir. method: how prices are found (estimate, simulate, tune with
    `trials`). strategy: one of placement.STRATEGIES. layers: how often the model is repeated, for
    the MRAM its weights take. switch_s: seconds to load another program into the DPUs. state:
    (input, output) pairs that the module keeps from call to call and that are neither passed nor
    returned, or "auto": caches of which the model writes rows. Updated buffers are always kept.

    Raises UnsupportedError (what can't be imported, with its place), MismatchError (the import
    computes something else; names the first operator), UsageError, RecordError.
    """
    if method not in METHODS:
        raise UsageError(f"method: {method!r} unknown, known: {', '.join(METHODS)}")
    if strategy not in STRATEGIES:
        raise UsageError(f"strategy: {strategy!r} unknown, known: {', '.join(STRATEGIES)}")
    if layers < 1:
        raise UsageError(f"layers: {layers} requested, at least 1 needed")
    target = target or Target()
    prepared = prepare(model, tuple(example_inputs), dynamic_shapes, state)
    folder = Path(work_dir)
    profile = _profile(prepared.graph, host, folder)
    book = PriceBook(target, folder, trials=trials)
    problem = place(prepared, profile, book, method=method, layers=layers, switch_s=switch_s)
    placements = {name: problem.place(name) for name in STRATEGIES}
    module = finish(prepared, problem, placements[strategy])
    imported, placed = prepared.imported, placements[strategy]
    return Result(
        module=module,
        problem=problem,
        placement=placed,
        baselines=placements,
        fallbacks=imported.fallbacks,
        reference=imported.reference,
        examples=imported.examples,
    )


def _profile(graph: Graph, host: str | Path | HostFile | None, folder: Path) -> HostFile:
    if isinstance(host, HostFile):
        return host
    if host is not None:
        return HostFile.load(host)
    path = folder / "this-machine.json"
    known = HostFile.load(path) if path.exists() else None
    if known is not None and (known.threads, known.description) != this_machine():
        known = None  # of another machine, or with other threads
    measured = measure_host(graph, known=known)
    measured.save(path)
    return measured


def examples_of(
    shapes: Sequence[tuple[tuple[int, ...], str, int | None]], seed: int = 0
) -> list[Array]:
    """Example inputs of (shape, dtype, value): all `value`; for None integers 0 to 49, booleans,
    floats in [0, 1)."""
    rng = np.random.default_rng(seed)
    examples: list[Array] = []
    for shape, dtype, value in shapes:
        if value is not None:
            examples.append(np.full(shape, value, dtype))
        elif dtype == "bool":
            examples.append(rng.random(shape) < 0.5)
        else:
            examples.append(random_array(rng, shape, dtype))
    return examples
