"""The result: a callable that runs host nests by LLVM and moved nests on simulated DPUs.

It can be saved and loaded again without PyTorch: a shared library of the host code, the parameters,
and for every launch its program, schedule and operands (kernels are compiled again, or found in the
cache). Tensors that the model changes from call to call (state.py) are kept by the module: the host
has a copy, and each launch that reads one keeps its own in MRAM, to which only new rows are sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from atim import pipeline, runtime, toolchain
from atim.chain import Chain
from atim.errors import RecordError, UnsupportedError, UsageError
from atim.offload.chains import linked, sketch_of
from atim.offload.host import view
from atim.offload.imported import State
from atim.offload.launches import Launch, Operand, Part
from atim.offload.nests import Graph
from atim.offload.pricing import Price
from atim.offload.rewrite import PIM_LAUNCH
from atim.offload.state import Kept, Update
from atim.offload.structure import Structure, arranged
from atim.runtime import Timing
from atim.target import Target

__all__ = ["Kernel", "Offloaded", "kernel_of", "load"]

Array = NDArray[Any]

FORMAT = 4
LIBRARY, PARAMETERS, FACTS = "host.so", "parameters.npz", "offload.json"


@dataclass(frozen=True)
class Kernel:
    """A launch, ready to compile: `programs` are its PrimFuncs as TVM's JSON (of a chain two, with
    `values` and `resident` of each part), `choices` the sketch and decisions of each.

    sources: for each operand the positions of the parameters it is made of (of the state it keeps);
    empty when it is an argument of the call.
    """

    programs: tuple[str, ...]
    target: Target
    choices: tuple[tuple[str, Mapping[str, int]], ...]
    operands: tuple[Operand, ...]
    sources: tuple[tuple[int, ...], ...]
    values: tuple[Mapping[str, str], ...] = ()
    resident: tuple[tuple[str, ...], ...] = ()

    def run(self, arrays: Mapping[str, Array]) -> tuple[Array, Timing]:
        """The result and the modelled time of a call, on arrays by the operands' tensors."""
        if self.values:
            (result,), timing = self.chain(arrays)
            return result, timing
        names = [o.tensor for o in self.operands if o.resident]
        outcome = runtime.run(self.artifact, arrays, resident=names)
        assert outcome.outputs is not None
        (result,) = outcome.outputs.values()
        return result, replace(outcome.timing, h2d=outcome.timing.h2d + self.rows_s)

    @cached_property
    def chain(self) -> Chain:
        """The compiled program of a chain."""
        parts = [
            Part(tvm.ir.load_json(program), values, resident)
            for program, values, resident in zip(
                self.programs, self.values, self.resident, strict=True
            )
        ]
        return linked(parts, self.choices, self.target)

    @cached_property
    def artifact(self) -> toolchain.Artifact:
        """The compiled kernel and host half."""
        (program,), ((name, decisions),) = self.programs, self.choices
        resident = tuple(o.tensor for o in self.operands if o.resident)
        sketch = sketch_of(tvm.ir.load_json(program), self.target, resident, name)
        sources = pipeline.compile(sketch, decisions, self.target)
        return toolchain.build(sources, self.target)

    @cached_property
    def rows_s(self) -> float:
        """Seconds of the rows of kept states that a call sends."""
        plan, transfer = self.artifact.sources.plan, self.target.transfer
        return sum(o.kept.send_s(plan, o.tensor, transfer) for o in self.operands if o.kept)


def kernel_of(launch: Launch, price: Price, graph: Graph, target: Target, inputs: int) -> Kernel:
    """What runs a launch; `inputs` is the number of the model's inputs."""
    sources = tuple(_sources(o, graph, inputs) for o in launch.operands)
    parts = launch.parts
    funcs = [p.func for p in parts] if parts else [launch.func]
    return Kernel(
        tuple(tvm.ir.save_json(func) for func in funcs),
        target,
        price.parts or ((price.sketch, price.decisions),),
        launch.operands,
        sources,
        tuple(p.values for p in parts),
        tuple(p.resident for p in parts),
    )


def _sources(operand: Operand, graph: Graph, inputs: int) -> tuple[int, ...]:
    names: tuple[str, ...] = operand.values if operand.resident else ()
    if operand.kept is not None:
        names = (operand.kept.update.base,)
    return tuple(graph.values[name].position - inputs for name in names)


class Offloaded:
    """Call it with the model's inputs (NumPy arrays, or tensors of PyTorch or TVM).

    Gives the outputs as NumPy arrays, arranged as the model arranges them. `timings` has the
    modelled Timing of each launch of the last call. UsageError for wrong inputs. `states` are kept
    from call to call: see `state`, `set_state` and `reset`.
    """

    def __init__(
        self,
        executable: Any,
        parameters: Sequence[Any],
        kernels: Sequence[Kernel],
        states: Sequence[State] = (),
        structure: Structure = None,
    ):
        self.structure = structure
        self.executable = executable
        self.parameters = [_tensor(p) for p in parameters]
        self.kernels = tuple(kernels)
        self.states = tuple(states)
        self._initial = {s.name: view(self.parameters[s.parameter]).copy() for s in states}
        self.reset()
        self.timings: list[Timing] = []
        self._machine = relax.VirtualMachine(executable, tvm.cpu())
        self._failure: Exception | None = None

    @property
    def state(self) -> dict[str, Array]:
        """Copies of the kept tensors, by name."""
        return {s.name: view(self.parameters[s.parameter]).copy() for s in self.states}

    def reset(self) -> None:
        """Back to the state the module was made (or saved) with."""
        self._residents: dict[tuple[int, str], Array] = {}
        for s in self.states:
            self.parameters[s.parameter] = tvm.runtime.tensor(self._initial[s.name])

    def set_state(self, name: str, value: Any) -> None:
        """Replace a kept tensor as a whole. UsageError for another name, shape or type."""
        known = {s.name: s.parameter for s in self.states}
        if name not in known:
            raise UsageError(f"state {name!r} unknown, known: {', '.join(known) or 'none'}")
        given = _tensor(value)  # owns the memory that `array` shows
        array, old = view(given), view(self.parameters[known[name]])
        if array.shape != old.shape or array.dtype != old.dtype:
            wanted = f"{old.dtype}{list(old.shape)}"
            raise UsageError(f"state {name}: {array.dtype}{list(array.shape)}, {wanted} needed")
        self.parameters[known[name]] = tvm.runtime.tensor(array.copy())
        self._residents = {
            key: found for key, found in self._residents.items() if not self._keeps(*key)
        }

    def _keeps(self, number: int, tensor: str) -> bool:
        return any(o.tensor == tensor and o.kept for o in self.kernels[number].operands)

    def __call__(self, *inputs: Any) -> Any:
        flat = self.call_flat(*inputs)
        kept = {s.output for s in self.states}
        if self.structure is not None:
            return arranged(self.structure, flat, kept)
        outputs = tuple(a for n, a in enumerate(flat) if n not in kept)
        return outputs[0] if len(outputs) == 1 else outputs

    def call_flat(self, *inputs: Any) -> list[Array]:
        """All outputs, those that become state included."""
        self.timings, self._failure = [], None
        _running.append(self)
        try:
            result = self._machine["main"](*(_tensor(v) for v in inputs), *self.parameters)
        except (tvm.error.InternalError, RuntimeError, LookupError, ValueError, TypeError) as error:
            if self._failure is not None:
                raise self._failure from None
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise UsageError(f"call: {lines[0] if lines else error}") from error
        finally:
            _running.pop()
        flat = _flat(result)
        for s in self.states:
            self.parameters[s.parameter] = flat[s.output]
        return [np.array(t.numpy()) for t in flat]

    def launch(self, number: int, tensors: Sequence[Any]) -> None:
        """Run one kernel on all its DPUs; called by the host code."""
        kernel = self.kernels[number]
        given = iter(tensors)
        arrays: dict[str, Array] = {}
        for operand, sources in zip(kernel.operands, kernel.sources, strict=True):
            sent = [view(next(given)) for _ in operand.sent]
            if operand.resident:
                arrays[operand.tensor] = self._resident(number, operand, sources)
                if operand.kept is not None:
                    operand.kept.write(arrays[operand.tensor], *sent)
            else:
                arrays[operand.tensor] = operand.gather(sent)
        result, timing = kernel.run(arrays)
        self.timings.append(timing)
        flat, start = result.reshape(-1), 0
        for tensor in given:
            target = view(tensor)
            target[...] = flat[start : start + target.size].reshape(target.shape)
            start += target.size

    def _resident(self, number: int, operand: Operand, sources: tuple[int, ...]) -> Array:
        key = (number, operand.tensor)
        if key not in self._residents:
            arrays = [view(self.parameters[position]) for position in sources]
            found = operand.gather(arrays)
            self._residents[key] = found.copy() if operand.kept is not None else found
        return self._residents[key]

    def save(self, folder: str | Path) -> Path:
        """Write the module into a folder, for `load`. UnsupportedError when it calls PyTorch."""
        folder = Path(folder)
        if "atim.torch_operator" in self.executable.stats() + self.executable.as_text():
            raise UnsupportedError("save: the model has operators that run through PyTorch")
        facts = {
            "format": FORMAT,
            "kernels": [_facts(kernel) for kernel in self.kernels],
            "parameters": [str(p.dtype) for p in self.parameters],
            "states": [asdict(state) for state in self.states],
            "structure": self.structure,
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.executable.export_library(str(folder / LIBRARY))
            np.savez(folder / PARAMETERS, *(view(p) for p in self.parameters))
            (folder / FACTS).write_text(json.dumps(facts))
        except OSError as error:
            raise RecordError(f"{folder} can't be written: {error.strerror}") from error
        return folder


def load(folder: str | Path) -> Offloaded:
    """A saved module. RecordError when the folder holds none, or one of another format."""
    folder = Path(folder)
    try:
        facts = json.loads((folder / FACTS).read_text())
        stored = np.load(folder / PARAMETERS)
        parameters = [stored[f"arr_{n}"] for n in range(len(facts["parameters"]))]
        executable = tvm.runtime.load_module(str(folder / LIBRARY))
    except (OSError, ValueError, KeyError) as error:
        raise RecordError(f"{folder} holds no saved module: {error}") from error
    if facts["format"] != FORMAT:
        raise RecordError(f"{folder}: format {facts['format']}, this version reads {FORMAT}")
    states = [State(**state) for state in facts["states"]]
    kernels = [_kernel(k) for k in facts["kernels"]]
    return Offloaded(executable, parameters, kernels, states, facts["structure"])


def _facts(kernel: Kernel) -> dict[str, Any]:
    return {
        "programs": kernel.programs,
        "target": asdict(kernel.target),
        "choices": kernel.choices,
        "values": kernel.values,
        "resident": kernel.resident,
        "operands": [asdict(operand) for operand in kernel.operands],
        "sources": kernel.sources,
    }


def _kernel(facts: dict[str, Any]) -> Kernel:
    operands = tuple(
        Operand(
            o["tensor"],
            tuple(o["shape"]),
            tuple(o["values"]),
            o["resident"],
            o["transposed"],
            _kept(o["kept"]),
        )
        for o in facts["operands"]
    )
    sources = tuple(tuple(positions) for positions in facts["sources"])
    return Kernel(
        tuple(facts["programs"]),
        Target(**facts["target"]),
        tuple((name, decisions) for name, decisions in facts["choices"]),
        operands,
        sources,
        tuple(facts["values"]),
        tuple(tuple(names) for names in facts["resident"]),
    )


def _kept(facts: dict[str, Any] | None) -> Kept | None:
    if facts is None:
        return None
    return Kept(Update(**facts["update"]), tuple(facts["shape"]), facts["rows"])


_running: list[Offloaded] = []  # the modules being called, innermost last


@tvm.register_global_func(PIM_LAUNCH)  # type: ignore[untyped-decorator]
def _launch(number: Any, *tensors: Any) -> None:
    module = _running[-1]
    try:
        module.launch(int(str(number)), tensors)
    except Exception as error:  # TVM would pass on its text alone
        module._failure = error
        raise


def _tensor(value: Any) -> Any:
    if isinstance(value, tvm.runtime.Tensor):
        return value
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    return tvm.runtime.tensor(np.asarray(value, order="C"))


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tvm.runtime.Tensor):
        return [value]
    return [leaf for item in value for leaf in _flat(item)]
