"""`atim offload model.py:Net --input 1x4096`: place a model, print what moved and why."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import os
import re
from pathlib import Path
from typing import Any

import click

from atim.errors import UsageError
from atim.target import Target

__all__ = ["offload"]

DTYPES = ("float32", "int32", "int8", "int16", "int64", "uint8", "float16", "float64", "bool")


@click.command()
@click.argument("model", metavar="FILE.py:NAME|FILE.onnx")
@click.option(
    "--input", "inputs", multiple=True, required=True, help="Shape[:dtype[=value]], in order"
)
@click.option("--state", multiple=True, help="IN:OUT kept from call to call (numbers), or auto")
@click.option("--dpus", type=int, default=2048, show_default=True, help="DPUs at most")
@click.option("--target", "target_name", default="upmem-v1a", show_default=True, help="Chip")
@click.option("--transfer", default="common", show_default=True, help="Host transfer preset")
@click.option("--host", help="Host file: papers, or a path [default: measure this machine]")
@click.option(
    "--prices",
    type=click.Choice(["estimate", "simulate", "tune"]),
    default="simulate",
    show_default=True,
    help="How launches are priced",
)
@click.option("--trials", type=click.IntRange(min=1), default=16, show_default=True, help="Tuning")
@click.option("--strategy", default="ours", show_default=True, help="Or one of the baselines")
@click.option("--layers", type=int, default=1, show_default=True, help="Repetitions of the model")
@click.option("--work-dir", type=click.Path(path_type=Path), help="Prices [default: runs/NAME]")
@click.option("--save", type=click.Path(path_type=Path), help="Write the placed module here")
@click.option("--run", is_flag=True, help="Run it on the simulator and compare with the original")
def offload(model: str, inputs: tuple[str, ...], **options: Any) -> None:
    """Decide for every loop nest of a model whether it runs on the host or on DPUs."""
    # Before NumPy and TVM are loaded: BLAS threads that go on spinning slow the next nest.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    shapes = [parse_input(text) for text in inputs]
    state = parse_state(options["state"])
    target = Target(options["target_name"], dpus=options["dpus"], transfer=options["transfer"])
    name, thing = load_model(model)
    folder = options["work_dir"] or Path("runs") / name
    from atim.offload.api import examples_of
    from atim.offload.api import offload as offload_model
    from atim.offload.report import write

    examples = examples_of(shapes)
    result = offload_model(
        thing,
        examples,
        target,
        host=options["host"],
        method=options["prices"],
        trials=options["trials"],
        strategy=options["strategy"],
        layers=options["layers"],
        work_dir=folder,
        state=state,
    )
    click.echo(result.report())
    click.echo(f"wrote {write(result.problem, result.baselines, folder)}")
    if options["save"]:
        click.echo(f"wrote {result.module.save(options['save'])}")
    if options["run"]:
        click.echo(result.verify(result.examples))


def parse_input(text: str) -> tuple[tuple[int, ...], str, int | None]:
    """ "1x4096:int32=3" -> ((1, 4096), "int32", 3); random float32 unless it says otherwise."""
    sizes, _, rest = text.partition(":")
    dtype, filled, value = rest.partition("=")
    dtype = dtype or "float32"
    if not re.fullmatch(r"\d+(x\d+)*", sizes) or (filled and not re.fullmatch(r"-?\d+", value)):
        raise UsageError(f"input {text!r}: 1x4096, 1x4096:int32 or 1:int64=3 (all 3) needed")
    if dtype not in DTYPES:
        raise UsageError(f"input {text!r}: dtype {dtype!r} unknown, known: {', '.join(DTYPES)}")
    shape = tuple(int(n) for n in sizes.split("x"))
    if 0 in shape:
        raise UsageError(f"input {text!r}: size 0, at least 1 needed in every dimension")
    return shape, dtype, int(value) if filled else None


def parse_state(texts: tuple[str, ...]) -> str | list[tuple[int, int]] | None:
    """("2:1", "3:2") -> [(2, 1), (3, 2)]; "auto" alone; None for nothing."""
    if texts == ("auto",):
        return "auto"
    if not all(re.fullmatch(r"\d+:\d+", text) for text in texts):
        raise UsageError(f"state {' '.join(texts)!r}: INPUT:OUTPUT such as 2:1, or auto needed")
    pairs = [text.split(":") for text in texts]
    return [(int(a), int(b)) for a, b in pairs] or None


def load_model(text: str) -> tuple[str, Any]:
    """(name, model): an ONNX file, or a class, function or module object of a Python file."""
    if text.endswith(".onnx"):
        if not Path(text).is_file():
            raise UsageError(f"file {text} does not exist")
        return Path(text).stem, text
    file, found, name = text.rpartition(":")
    path = Path(file)
    if not found or path.suffix != ".py" or not path.is_file():
        raise UsageError(f"model {text!r}: FILE.py:NAME of a file that exists, or FILE.onnx needed")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        hint = "; pip install torch==2.13.0" if error.name == "torch" else ""
        raise UsageError(f"{path}: {error}{hint}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from error
    return f"{path.stem}-{name}", _made(vars(module), name, path)


def _made(names: dict[str, Any], name: str, path: Path) -> Any:
    """The model called `name`: as it is, or what a class or a function without arguments gives."""
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        raise UsageError(f"{path} has no {name!r}{f', did you mean {near[0]}?' if near else ''}")
    thing = names[name]
    if not callable(thing) or (not isinstance(thing, type) and hasattr(thing, "forward")):
        return thing
    kind = "class" if isinstance(thing, type) else "function"
    if needed := _needed(thing):
        raise UsageError(
            f"{path}: {kind} {name} needs arguments ({', '.join(needed)}); name a class or a"
            " function that makes the model without any, or a model"
        )
    try:
        made = thing()
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path}: {name}(): {type(error).__name__}: {error}") from error
    return made


def _needed(thing: Any) -> list[str]:
    """Parameters without a default; none where Python can't tell."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in several]
