"""A lowered module and a placement -> a Relax module whose moved nests are launches on PIM.

Each launch becomes one packed call with its number; the rest stays, products of float matrices as
calls of BLAS where the host file says so. Bindings are copied in order; a launch stands where its
inputs are all there and before its first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from atim.offload.host import EINSUM, schedule, subscripts
from atim.offload.launches import Launch
from atim.offload.nests import Graph
from atim.offload.profile import BLAS, HostFile
from atim.offload.state import in_place, read_update

__all__ = ["PIM_LAUNCH", "rewrite"]

PIM_LAUNCH = "atim.pim_launch"


def rewrite(
    module: Any,
    graph: Graph,
    launches: Sequence[Launch],
    host: HostFile,
    also: Sequence[str] = (),
) -> Any:
    """The module to build: `launches` on PIM (numbered in this order), the rest scheduled.

    also: values of the graph that main returns besides its outputs, behind them.
    """
    return _Rewriter(module, graph, launches, host).run(also)


class _Rewriter:
    def __init__(
        self, module: Any, graph: Graph, launches: Sequence[Launch], host: HostFile
    ) -> None:
        self.module, self.graph, self.host = module, graph, host
        self.launches = launches
        self.member_of = {i: n for n, launch in enumerate(launches) for i in launch.members}
        # stacks stand at their first nest, the others at their last: all inputs are there by then
        self.stands_at = {
            (min if launch.form == "stack" else max)(launch.members): n
            for n, launch in enumerate(launches)
        }
        self.values: dict[str, Any] = {}  # graph value -> new expression
        self.renamed: list[tuple[Any, Any]] = []
        self.builder = relax.BlockBuilder()
        self.used: dict[str, Any] = {}

    def run(self, also: Sequence[str]) -> Any:
        main = self.module["main"]
        inputs = [v for v in self.graph.values.values() if v.position >= 0]
        for value, parameter in zip(inputs, main.params, strict=True):
            self.values[value.name] = parameter
        pure = all(isinstance(b, relax.DataflowBlock) for b in main.body.blocks)
        with self.builder.function("main", list(main.params), attrs=dict(main.attrs or {})):
            if pure:
                with self.builder.dataflow():
                    result = self.builder.emit_output(self.body(main, also))
            else:
                result = self.builder.emit(self.body(main, also))
            self.builder.emit_func_output(result)
        built = self.builder.get()
        for name, var in self.used.items():
            func = self.module[var]
            if isinstance(func, tirx.PrimFunc):
                func = schedule(func)
            assert name
            built.update_func(var, func)
        return built

    def body(self, main: Any, also: Sequence[str]) -> Any:
        """Copy the bindings; returns the new value of the function."""
        index = 0
        for block in main.body.blocks:
            for binding in block.bindings:
                value = binding.value
                if getattr(getattr(value, "op", None), "name", "") == "relax.call_tir":
                    self.nest(index, binding.var, value)
                    index += 1
                else:
                    self.bind(binding.var, self.other(value))
        result = self.replaced(main.body.body)
        extra = [self.value(name) for name in also]
        return relax.Tuple([result, relax.Tuple(extra)]) if extra else result

    def other(self, value: Any) -> Any:
        """A call that is no nest; a state that only its update reads is updated in place."""
        update = read_update(value, self.names)
        if update is None or not self.graph.is_in_place(update):
            return self.replaced(value)
        return in_place(value, self.replaced(value.args[1]).fields)

    def names(self, expr: Any) -> tuple[str, ...]:
        """The name in the graph of a variable."""
        if not isinstance(expr, ir.Var):
            return ()
        stem = str(expr.name)
        return tuple(n for n in self.graph.values if n.split(":", 1)[1].split(".")[0] == stem)[:1]

    def replaced(self, expr: Any) -> Any:
        """The expression over new values."""

        def new(variable: Any) -> Any:
            return next((n for old, n in self.renamed if old.same_as(variable)), variable)

        if isinstance(expr, ir.Var):
            return new(expr)
        return tvm_ffi.structural_map(expr, (ir.Var, new))

    def bind(self, variable: Any, value: Any) -> Any:
        emitted = value if isinstance(value, ir.Var) else self.builder.emit(value)
        self.renamed.append((variable, emitted))
        return emitted

    def nest(self, index: int, variable: Any, call: Any) -> None:
        nest = self.graph.nests[index]
        if index in self.stands_at:
            self.launch(self.stands_at[index])
        if index in self.member_of:
            if nest.outputs[0] in self.values:
                self.renamed.append((variable, self.values[nest.outputs[0]]))
            return
        text = subscripts(nest.func) if self.host.variant(nest) == BLAS else None
        if text is not None:
            arguments = [ir.StringImm(text), *(self.replaced(a) for a in call.args[1].fields)]
            value = relax.call_dps_packed(EINSUM, arguments, call.ty_args[0])
        else:
            self.used[str(call.args[0].name_hint)] = call.args[0]
            value = self.replaced(call)
        emitted = self.bind(variable, value)
        if len(nest.outputs) == 1:
            self.values[nest.outputs[0]] = emitted
        for position, name in enumerate(nest.outputs if len(nest.outputs) > 1 else ()):
            self.values[name] = relax.TupleGetItem(emitted, position)

    def launch(self, number: int) -> None:
        """Emit a launch; its outputs are values of the graph afterwards."""
        launch = self.launches[number]
        arguments = [ir.StringImm(str(number))]
        for operand in launch.operands:
            arguments += [self.value(name) for name in operand.sent]
        outputs = [self.graph.values[name] for name in launch.outputs]
        types = [relax.TensorType(list(v.shape), v.dtype) for v in outputs]
        call = relax.call_dps_packed(PIM_LAUNCH, arguments, types if len(types) > 1 else types[0])
        result = self.builder.emit(call)
        if len(types) == 1:
            self.values[launch.outputs[0]] = result
        for position, name in enumerate(launch.outputs if len(types) > 1 else ()):
            item = self.builder.emit(relax.TupleGetItem(result, position))
            self.values[name] = item

    def value(self, name: str) -> Any:
        """The new expression of a value of the graph, also of one that no nest made."""
        if name in self.values:
            return self.values[name]
        stem = name.split(":", 1)[1].split(".")[0]
        hits = [new for old, new in self.renamed if str(old.name) == stem]
        assert hits, f"value {name} is not there yet"
        return hits[-1]


def build(module: Any, target: Any) -> Any:
    """The executable of a rewritten module."""
    return relax.build(module, target=target)


def machine(executable: Any) -> Any:
    """A virtual machine on the CPU."""
    return relax.VirtualMachine(executable, tvm.cpu())
