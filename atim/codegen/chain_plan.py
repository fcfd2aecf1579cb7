"""Which values of a chain of stages stay in MRAM, and what each stage transfers.

In: stages in order with the names of the values between them. Out: a `Move` for each stage of the
DPUs. A tile is read where it lies already if both stages put the same box of the value at the same
place of every DPU of the reader. Kernels may leave padding in any state and readers take it as
zero, so stages whose results stay clear the padding themselves (chain_padding.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from atim.codegen import Sources, Tensor, Tile, TransferPlan
from atim.codegen.chain_kernel import StageKernel, stage_unit
from atim.codegen.chain_padding import with_clear_padding
from atim.codegen.host_stage import HostStage
from atim.errors import UsageError

__all__ = [
    "Move",
    "Step",
    "check_steps",
    "clear_what_stays",
    "done_once",
    "made_once",
    "plan_moves",
]


@dataclass(frozen=True, slots=True)
class Step:
    """One stage. `values`: tensor of the stage -> value of the chain, where the names differ."""

    name: str
    work: Sources | HostStage
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.work.plan.tensors if isinstance(self.work, Sources) else self.work.tensors

    def value(self, tensor: str) -> str:
        return self.values.get(tensor, tensor)

    def reads(self) -> list[str]:
        """Values that it needs, in order."""
        return [self.value(t.name) for t in self.tensors if t.role == "input"]

    def writes(self) -> list[str]:
        """Values that it makes, in order."""
        return [self.value(t.name) for t in self.tensors if t.role == "output"]


@dataclass(frozen=True, slots=True)
class Move:
    """What a stage of the DPUs transfers: `pushed` before and `pulled` after it, at each call;
    `loaded` once, for their values are resident. Other tiles it reads lie where `kernel.symbols`
    says."""

    kernel: StageKernel
    loaded: tuple[Tile, ...]
    pushed: tuple[Tile, ...]
    pulled: tuple[Tile, ...]


def check_steps(
    steps: Sequence[Step], outputs: Sequence[str], resident: Sequence[str]
) -> tuple[str, ...]:
    """The chain's inputs, in order of first use. UsageError for names and shapes that don't fit."""
    if not any(isinstance(s.work, Sources) for s in steps):
        raise UsageError("chain: no stage runs on DPUs")
    _check_shapes(steps)
    made = [value for step in steps for value in step.writes()]
    inputs: list[str] = []
    known: set[str] = set()
    for step in steps:
        for value in step.reads():
            if value in made and value not in known:
                raise UsageError(f"stage {step.name} reads {value} before it is made")
            if value not in made and value not in inputs:
                inputs.append(value)
        known.update(step.writes())
    for value in made:
        if made.count(value) > 1:
            raise UsageError(f"chain: two stages make {value}")
    for what, names, there in (("output", outputs, made), ("resident", resident, inputs)):
        for name in names:
            if name not in there:
                raise UsageError(f"chain: {what} {name!r} unknown, known: {', '.join(there)}")
    return tuple(inputs)


def made_once(
    host: Sequence[tuple[Sequence[str], Sequence[str]] | None],
    resident: Collection[str],
    outputs: Collection[str],
) -> tuple[set[int], tuple[str, ...]]:
    """(Numbers of the stages that the host does once, when residents are loaded; all values that
    are resident then.) `host`: what each stage of the host reads and writes, None for the others.

    A stage of the host that reads nothing but residents puts them in order: what it makes is
    resident too, unless the program gives it back.
    """
    once: set[int] = set()
    known = list(resident)
    for number, stage in enumerate(host):
        if stage and stage[0] and {*stage[0]} <= {*known} and not {*stage[1]} & {*outputs}:
            once.add(number)
            known += stage[1]
    return once, tuple(known)


def done_once(
    steps: Sequence[Step], resident: Collection[str], outputs: Collection[str]
) -> tuple[set[int], tuple[str, ...]]:
    """`made_once` of a chain's steps."""
    host = [(s.reads(), s.writes()) if isinstance(s.work, HostStage) else None for s in steps]
    return made_once(host, resident, outputs)


def _check_shapes(steps: Sequence[Step]) -> None:
    seen: dict[str, str] = {}
    for step in steps:
        for tensor in step.tensors:
            if tensor.role == "intermediate":
                continue
            value, kind = step.value(tensor.name), f"{tensor.dtype}{list(tensor.shape)}"
            if seen.setdefault(value, kind) != kind:
                raise UsageError(f"stage {step.name}: {value} is {seen[value]}, not {kind}")


@dataclass(frozen=True, slots=True)
class _Home:
    """A variable of the DPUs, and the tile of a value that lies there."""

    symbol: str
    plan: TransferPlan
    tile: Tile

    def serves(self, plan: TransferPlan, tile: Tile) -> bool:
        """The same elements lie at the same places of all DPUs of that plan."""
        mine = self.tile
        if (mine.dtype, mine.padded) != (tile.dtype, tile.padded) or self.plan.dpus < plan.dpus:
            return False
        pairs = zip(self.plan.boxes(mine), plan.boxes(tile), strict=True)
        return all(np.array_equal(here[: plan.dpus], there) for here, there in pairs)


def _may_stay(plan: TransferPlan, tile: Tile) -> bool:
    """The tile is a kernel's result, as it is, and can be cleared of padding."""
    by_host = {*plan.prepare_args, *plan.finish_args}
    result = tile.mode == "out" and _role(plan, tile) == "output" and tile.tensor not in by_host
    return result and min(plan.boxes(tile)[0].min(axis=0)) >= 0


def _is_full(plan: TransferPlan, tile: Tile) -> bool:
    """No DPU's tile has padding."""
    _, extent = plan.boxes(tile)
    return bool(np.all(extent == np.array(tile.padded)))


def clear_what_stays(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Kernels whose padded results a later stage can read where they lie, made to clear the
    padding; all DPUs of a stage as one group, for groups of ranks are of one kernel's calls."""
    cleared = []
    for number, step in enumerate(steps):
        work = step.work
        if isinstance(work, HostStage):
            cleared.append(step)
            continue
        plan = work.plan
        stay = [
            tile
            for tile in plan.tiles
            if _may_stay(plan, tile)
            and not _is_full(plan, tile)
            and _is_read(step.value(tile.tensor), _Home("", plan, tile), steps[number + 1 :])
        ]
        work = replace(work, plan=replace(plan, groups=1))
        cleared.append(replace(step, work=with_clear_padding(work, stay) if stay else work))
    return tuple(cleared)


def _is_read(value: str, home: _Home, later: Sequence[Step]) -> bool:
    return any(
        step.value(tile.tensor) == value and tile.mode == "in" and home.serves(work.plan, tile)
        for step in later
        if isinstance(work := step.work, Sources)
        for tile in work.plan.tiles
    )


def _role(plan: TransferPlan, tile: Tile) -> str:
    return next(t.role for t in plan.tensors if t.name == tile.tensor)


def plan_moves(
    steps: Sequence[Step], outputs: Sequence[str], resident: Sequence[str]
) -> tuple[Move | None, ...]:
    """What each stage transfers; None for stages of the host. The steps are those that
    `clear_what_stays` gave."""
    planner = _Planner(steps, done_once(steps, resident, outputs)[1])
    for number, step in enumerate(steps):
        planner.add(number, step)
    for value in outputs:
        planner.fetch(value)
    return tuple(
        None if move is None else replace(move, pulled=tuple(planner.pulled[number]))
        for number, move in enumerate(planner.moves)
    )


class _Planner:
    """Where values are while the stages run: on the host, and in which variables of the DPUs."""

    def __init__(self, steps: Sequence[Step], resident: Sequence[str]) -> None:
        made = {value for step in steps for value in step.writes()}
        self.resident = resident
        self.on_host = {value for step in steps for value in step.reads()} - made
        self.homes: dict[str, list[_Home]] = {}
        self.makers: dict[str, tuple[int, Tile]] = {}
        self.pulled: dict[int, list[Tile]] = {}
        self.moves: list[Move | None] = []

    def fetch(self, value: str) -> None:
        """The host needs it: pulled after the stage that made it."""
        if value not in self.on_host:
            stage, tile = self.makers[value]
            self.pulled[stage].append(tile)
            self.on_host.add(value)

    def add(self, number: int, step: Step) -> None:
        """The next stage."""
        if isinstance(step.work, HostStage):
            for value in step.reads():
                self.fetch(value)
            self.on_host.update(step.writes())
            self.moves.append(None)
            return
        plan = step.work.plan
        by_host = {*plan.prepare_args, *plan.finish_args}
        for tensor in plan.tensors:
            if tensor.role == "input" and tensor.name in by_host:
                self.fetch(step.value(tensor.name))
        found, brought = self._inward(step, plan)
        kernel = stage_unit(step.work, number, found)
        self._keep(number, step, plan, kernel)
        stay = tuple(t for t in brought if step.value(t.tensor) in self.resident)
        pushed = tuple(t for t in brought if t not in stay)
        self.moves.append(Move(kernel, stay, pushed, ()))

    def _inward(self, step: Step, plan: TransferPlan) -> tuple[dict[str, str], list[Tile]]:
        """(tile -> variable that holds it already, tiles that the host brings)."""
        found: dict[str, str] = {}
        brought = []
        for tile in (t for t in plan.tiles if t.mode != "out"):
            homes = self.homes.get(step.value(tile.tensor), [])
            home = next((h for h in homes if h.serves(plan, tile)), None)
            if tile.mode == "in" and home is not None:
                found[tile.symbol] = home.symbol
                continue
            if _role(plan, tile) == "input":
                self.fetch(step.value(tile.tensor))
            brought.append(tile)
        return found, brought

    def _keep(self, number: int, step: Step, plan: TransferPlan, kernel: StageKernel) -> None:
        """Note what lies where after the stage; what the host finishes is pulled."""
        by_host = {*plan.prepare_args, *plan.finish_args}
        self.pulled[number] = []
        for tile in plan.tiles:
            value, role = step.value(tile.tensor), _role(plan, tile)
            home = _Home(kernel.symbols[tile.symbol], plan, tile)
            if tile.mode == "in" and role == "input":
                self.homes.setdefault(value, []).append(home)
            elif tile.mode == "out" and role == "output" and tile.tensor not in by_host:
                self.makers[value] = (number, tile)
                if _may_stay(plan, tile):
                    self.homes.setdefault(value, []).append(home)
            elif tile.mode != "in":
                self.pulled[number].append(tile)
        self.on_host.update(value for value in step.writes() if value not in self.makers)
