"""TVM's own evolutionary search over our sketches: the baseline that ours is compared with.

Each sketch is a design space of MetaSchedule whose trace samples our decisions, one
`sample_categorical` each, on a stand-in module. MutateUnroll is the mutator of TVM that changes
such samples, so every decision is tied to a loop of the stand-in as an unroll step. A postprocessor
refuses what is illegal in closed form and writes the canonical candidate on the module, by which
TVM tells candidates apart. XGBModel learns from our features. Everything else is TVM's default
(population 512, half of ours; 4 generations, mutation 0.85, 5 % at random), but for the rounds,
which are of our size.

The strategy keeps its state in C++; a search that goes on after an interruption is replayed with
what was measured, which gives the same proposals again.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import te, tirx
from tvm.ir.utils import derived_object
from tvm.s_tir import Schedule

# MetaSchedule registers intrinsics of CPUs and GPUs when first used, which takes half a minute.
sys.modules.setdefault("tvm.s_tir.tensor_intrin", types.ModuleType("tvm.s_tir.tensor_intrin"))
from tvm.s_tir import meta_schedule as ms  # noqa: E402 (after the line above)

from atim.errors import RecordError  # noqa: E402
from atim.tuner.proposals import Candidate, Space  # noqa: E402
from atim.tuner.search import Observation, Options  # noqa: E402

__all__ = ["TvmSearch"]

UNROLL = "meta_schedule.unroll_explicit"
SKETCH = "atim.sketch"
CANDIDATE = "atim.candidate"
WARM_UP = 1  # trials before XGBModel is asked; TVM's 100 are more than our whole runs
INITIAL_FAILURES = 50  # most of a random population can be illegal
TARGET = "c"

# TVM objects have no Python types worth naming
Node = Any

# Without the type checks of TVM's Python side, which take longer than the calls.
_annotate, _unannotate, _get_loops, _get_sblock = (
    getattr(method, "__wrapped__", method)
    for method in (Schedule.annotate, Schedule.unannotate, Schedule.get_loops, Schedule.get_sblock)
)


class TvmSearch:
    """Proposes what MetaSchedule's EvolutionarySearch does; see `search.Proposer`."""

    early = False  # its rounds begin with all results of those before

    def __init__(self, space: Space, options: Options, features: int) -> None:
        self.space = space
        self.options = options
        self._features = features
        self._context: Node = None
        self._fed = 0
        self._open: list[Node] = []

    def total(self) -> int:
        """Trials that can be made: as asked, or the size of the space."""
        size = self.space.size
        return self.options.trials if size is None else min(size, self.options.trials)

    def propose(
        self, history: Sequence[Observation], waiting: Sequence[Candidate] = ()
    ) -> tuple[list[Candidate], str]:
        """The next round, or none and the reason why the search is over; nothing may be waiting.

        RecordError when the history is not what this search would have proposed.
        """
        assert not waiting
        if len(history) >= self.options.trials:
            return [], "all trials done"
        with _seeded(self.options.seed), _quiet():
            if self._context is None or self._fed > len(history):
                self._begin()
            while True:
                if not self._open:
                    self._open = list(self._context.generate_measure_candidates() or ())
                if not self._open:
                    return [], "TVM's search finds nothing new"
                if self._fed == len(history):
                    return [_candidate(c.sch) for c in self._open], ""
                self._feed(history[self._fed : self._fed + len(self._open)])

    def _begin(self) -> None:
        most = max(len(sketch.decisions) for sketch in self.space.sketches)
        module = _stand_in(most)
        strategy = ms.search_strategy.EvolutionarySearch(
            population_size=self.options.population // 2, max_fail_count=INITIAL_FAILURES
        )
        self._context = ms.TuneContext(
            mod=module,
            target=tvm.target.Target(TARGET),
            space_generator=_Generator(self.space),
            search_strategy=strategy,
            task_name="atim",
            rand_state=self.options.seed + 1,
            num_threads=1,
        )
        self._database = ms.database.MemoryDatabase()
        self._workload = self._database.commit_workload(module)
        self._model = ms.cost_model.XGBModel(
            extractor=_Extractor(self.space, self._features),
            num_warmup_samples=WARM_UP,
            num_tuning_cores=1,
        )
        designs = self._context.generate_design_space()
        trials, size = self.options.trials, self.options.round_size
        self._context.pre_tuning(trials, size, designs, self._database, self._model)
        self._fed, self._open = 0, []

    def _feed(self, measured: Sequence[Observation]) -> None:
        proposed = [_candidate(c.sch) for c in self._open]
        if [o.candidate for o in measured] != proposed:
            raise RecordError("the records are not those of TVM's search with this seed")
        results = [_result(o.seconds) for o in measured]
        self._context.notify_runner_results(self._open, results)
        for candidate, observation in zip(self._open, measured, strict=True):
            # Failures are recorded as very slow, as TVM's own callback does.
            seconds = observation.seconds if np.isfinite(observation.seconds) else 1e10
            record = ms.database.TuningRecord(
                candidate.sch.trace,
                self._workload,
                [seconds],
                tvm.target.Target(TARGET),
                candidate.args_info,
            )
            self._database.commit_tuning_record(record)
        self._model.update(self._context, self._open, results)
        self._fed += len(measured)
        self._open = []


def _stand_in(loops: int) -> Node:
    """A module with one loop for each decision."""
    shape = (2,) * loops
    a = te.placeholder(shape, "int32", "a")
    b = te.compute(shape, lambda *i: a(*i) + 1, "b")
    return tvm.IRModule({"main": te.create_prim_func([a, b]).with_attr("global_symbol", "main")})


def _result(seconds: float) -> Node:
    if np.isfinite(seconds):
        return ms.runner.RunnerResult([seconds], None)
    return ms.runner.RunnerResult(None, "failed")


def _notes(schedule: Node) -> tuple[list[Node], Node]:
    """Annotations of the loops, outer to inner, and of the block in them."""
    node, notes = schedule.mod["main"].body.block.body, []
    while isinstance(node, tirx.For):
        notes.append(node.annotations)
        node = node.body
    return notes, node.block.annotations


def _candidate(schedule: Node) -> Candidate:
    """What the postprocessor wrote on the block."""
    sketch, *values = map(int, str(_notes(schedule)[1][CANDIDATE]).split())
    return Candidate(sketch, tuple(values))


@derived_object
class _Generator(ms.space_generator.PySpaceGenerator):  # type: ignore[misc]
    """One design a sketch: its decisions sampled uniformly."""

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.space = space
        self.sch_rules: list[Node] = []
        self.postprocs = [_Legal(space)]
        self.mutator_probs = {ms.mutator.MutateUnroll(): 1.0}

    def _initialize_with_tune_context(self, context: Node) -> None:
        pass

    def generate_design_space(self, module: Node) -> list[Node]:
        designs = []
        for number, sketch in enumerate(self.space.sketches):
            schedule = Schedule(module, debug_mask="none", error_render_level="none")
            block = schedule.get_sblock("b")
            schedule.annotate(block, SKETCH, number)
            loops = schedule.get_loops(block)
            for loop, decision in zip(loops, sketch.decisions, strict=False):
                values, value = list(decision.values), decision.values[0]
                if len(values) > 1:
                    shares = [1.0 / len(values)] * len(values)
                    value = schedule.sample_categorical(values, shares)
                # A value without a choice must not look like one to the mutator.
                schedule.annotate(loop, UNROLL if len(values) > 1 else CANDIDATE, value)
            designs.append(schedule)
        return designs

    def clone(self) -> Node:
        return _Generator(self.space)


@derived_object
class _Legal(ms.postproc.PyPostproc):  # type: ignore[misc]
    """Refuses illegal candidates; the others' modules say what they are in canonical form."""

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.space = space
        self.known: dict[tuple[int, tuple[int, ...]], str] = {}

    def _initialize_with_tune_context(self, context: Node) -> None:
        pass

    def apply(self, schedule: Node) -> bool:
        notes, block_notes = _notes(schedule)
        sketch = int(block_notes[SKETCH])
        width = len(self.space.sketches[sketch].decisions)
        values = [int(n[UNROLL] if UNROLL in n else n[CANDIDATE]) for n in notes[:width]]
        text = self._text(sketch, tuple(values))
        if not text:
            return False
        block = _get_sblock(schedule, "b")
        for loop, note in zip(_get_loops(schedule, block), notes[:width], strict=False):
            if UNROLL in note:
                _unannotate(schedule, loop, UNROLL)
        _annotate(schedule, block, CANDIDATE, text)
        return True

    def _text(self, sketch: int, values: tuple[int, ...]) -> str:
        if (sketch, values) not in self.known:
            rows = self.space.legal(sketch, np.array([values], np.int64))
            text = " ".join(map(str, [sketch, *rows[0].tolist()])) if len(rows) else ""
            self.known[sketch, values] = text
        return self.known[sketch, values]

    def clone(self) -> Node:
        return _Legal(self.space)


@derived_object
class _Extractor(ms.feature_extractor.PyFeatureExtractor):  # type: ignore[misc]
    """Our features, all candidates of a sketch at once."""

    def __init__(self, space: Space, width: int) -> None:
        super().__init__()
        self.space = space
        self.width = width

    def extract_from(self, context: Node, candidates: Sequence[Node]) -> list[Node]:
        found = [_candidate(c.sch) for c in candidates]
        result = np.zeros((len(found), 1, self.width), np.float32)
        for sketch in range(len(self.space.sketches)):
            rows = [n for n, c in enumerate(found) if c.sketch == sketch]
            if rows:
                matrix = np.array([found[n].values for n in rows], np.int64)
                result[rows, 0] = self.space.describe(sketch, matrix)[0]
        return [tvm.runtime.tensor(features) for features in result]


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """XGBModel draws from NumPy's global generator until it has samples."""
    state = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(state)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """MetaSchedule reports each generation."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
