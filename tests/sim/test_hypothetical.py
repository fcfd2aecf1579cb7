"""What-if cores: their instructions compute what the library does, and every time is labelled."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner
from harness import oracle, program

from upmem_sim import Dpu, DpuParams, Program, compile_c, read_elf, write_elf
from upmem_sim.cli import cli
from upmem_sim.errors import AsmError, CompileError, SimError

UNITS = ("mul32", "float")
CORE = DpuParams(multiply32_slots=1, float_add_slots=1, float_mul_slots=1, float_div_slots=1)
N = 512

# An expression of float a, b, int32_t i, j each; results are compared bit by bit.
FLOATS = [
    "a + b", "a - b", "a * b", "a / b", "a - 0.0f", "0.0f - a", "a / 0.0f", "-a", "a * b + a",
    "__builtin_fabsf(a)", "__builtin_copysignf(a, b)", "fminf(a, b)", "fmaxf(a, b)",
    "__builtin_fminf(a, b)", "a < b ? a : b", "a ? b : a + 1", "(float)(a < b)",
    "(float)i", "(float)(uint32_t)i", "(float)(int8_t)i", "(float)(uint16_t)i",
]  # fmt: skip
INTEGERS = [
    "a < b", "a <= b", "a == b", "a != b", "a > b", "a >= b", "a < 0", "a <= 0",
    "!(a >= b)", "!(a > b)", "!(a < b)", "!(a <= b)", "__builtin_isunordered(a, b)",
    "!__builtin_isunordered(a, b)", "__builtin_islessgreater(a, b)",
    "!__builtin_islessgreater(a, b)", "(int32_t)a", "(uint32_t)a", "__builtin_isnan(a)",
    "__builtin_isinf(a)", "i * j", "i * 7", "(int16_t)i * (int16_t)j", "(int8_t)i * (int8_t)j",
    "(int32_t)((int64_t)i * j >> 32)", "(uint64_t)(uint32_t)i * (uint32_t)j >> 32",
    "(int32_t)((int64_t)i * (uint32_t)j >> 32)",
    "(int32_t)(((int64_t)i << 20 ^ j) * ((int64_t)j << 9 ^ i) >> 32)",
]  # fmt: skip


def source() -> str:
    names = [f"f{k}" for k in range(len(FLOATS))] + [f"n{k}" for k in range(len(INTEGERS))]
    kinds = ["float"] * len(FLOATS) + ["uint32_t"] * len(INTEGERS)
    functions = [
        f"__attribute__((noinline)) {kind} {name}(float a, float b, int32_t i, int32_t j) "
        f"{{ return {body}; }}"
        for name, kind, body in zip(names, kinds, [*FLOATS, *INTEGERS], strict=True)
    ]
    calls = [
        f"*({kind} *)&out[{k}] = {name}(a, b, i, j);"
        for k, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    return f"""
        #include <mram.h>
        #include <stdint.h>
        float fminf(float, float), fmaxf(float, float);
        __host uint32_t out[{len(names)}], x, y;
        {" ".join(functions)}
        int main() {{
            float a = *(float *)&x, b = *(float *)&y; int32_t i = x, j = y;
            {" ".join(calls)}
        }}"""


def words() -> np.ndarray:
    rng = Random(5)
    known = [0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x3F800000, 0x3F7FFFFF, 0x4EFFFFFF, 0x4F000000]
    known += [0x4F7FFFFF, 0x4F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FC12345]
    known += [0x20000000, 0x1F800000, 0x5F800000, 0x33800000, 0x34000000, 0x4B000001, 0x4B800001]
    known += [word | 1 << 31 for word in known]
    pairs = [(rng.choice(known), rng.choice(known)) for _ in range(120)]
    pairs += [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(60)]
    pairs += [(w, (w + rng.randrange(-4, 5)) & 0xFFFFFFFF) for w, _ in pairs[:40]]
    return np.array(pairs, np.uint32)


def test_results_are_those_of_the_library() -> None:
    software, hardware = compile_c(source()), compile_c(source(), hypothetical=UNITS)
    assert software.units == ()
    assert len(hardware.units) == 4
    assert len(hardware.rows) < len(software.rows) / 2  # no library
    one, other = Dpu(software), Dpu(hardware, CORE)
    for x, y in words():
        for dpu in (one, other):
            dpu.write("x", x)
            dpu.write("y", y)
            dpu.run()
        want, got = one.read("out", np.uint32), other.read("out", np.uint32)
        for body, w, g in zip([*FLOATS, *INTEGERS], want, got, strict=True):
            assert w == g, f"{body}: {x:#x}, {y:#x}: library {w:#x}, unit {g:#x}"


def test_a_dpu_without_the_units_refuses() -> None:
    made = compile_c("float x, y; int main() { return x * y > 1; }", hypothetical=UNITS)
    with pytest.raises(SimError, match="needs a hypothetical core: float_add_slots is 0"):
        Dpu(made)
    again = read_elf(write_elf(made))
    assert again.units == made.units


def test_code_from_mram_faults_without_the_units() -> None:
    from upmem_sim.encoding import encode
    from upmem_sim.isa import Insn

    word = encode(Insn("fmul", ["r0", "r1", "r2"]))
    text = "move r0, 800\nldmai r0, r1, 0\njump 100"
    made = program(text, mram=word.to_bytes(8, "little"))
    for plain in (False, True):
        with pytest.raises(SimError, match=r"illegal-instruction .* pc 100 .*: not an instruction"):
            Dpu(made).run(plain=plain)


def timed(params: DpuParams, text: str, tasklets: int = 1) -> int:
    body = f"jeq id, {tasklets - 1}, go\nboot id, 1\ngo:\n{text}\nend: stop true, end"
    made = program(body, tasklets=tasklets)
    fast, plain = Dpu(made, params).run(), Dpu(made, params).run(plain=True)
    assert fast == plain
    assert oracle(made, params).run() == fast.cycles
    return fast.cycles


def test_slots() -> None:
    text = "\n".join(["mul32 r0, r1, r2"] * 100)
    nops = "\n".join(["nop"] * 100)
    assert timed(CORE, text, 24) == timed(CORE, nops, 24)
    slow = DpuParams(multiply32_slots=3)
    assert timed(slow, text, 24) - timed(CORE, nops, 24) == pytest.approx(200 * 24, rel=0.02)
    assert timed(slow, text, 1) == timed(CORE, nops, 1)  # hidden behind the 11 cycles


def test_memory_and_clock() -> None:
    text = "move r0, 0\nldma r0, r1, 255"
    one, wide = timed(DpuParams(), text), timed(DpuParams(mram_bandwidth_scale=4.0), text)
    assert one - wide == pytest.approx(2048 * 0.522 * 0.75, abs=2)
    run = Dpu(program("nop\nend: stop true, end"), DpuParams(clock_mhz=1000.0)).run()
    assert run.seconds == run.cycles / 1e9


@pytest.mark.parametrize(
    ("params", "label"),
    [
        (DpuParams(), ""),
        (DpuParams(clock_mhz=400.0), ""),
        (DpuParams(clock_mhz=1000.0), "clock 1000 MHz"),
        (DpuParams(multiply32_slots=1, float_mul_slots=2), "multiply32 1, float_mul 2"),
        (DpuParams(mram_bandwidth_scale=2.0), "mram_bandwidth_scale 2"),
    ],
)
def test_label(params: DpuParams, label: str) -> None:
    assert params.hypothetical == label
    assert Dpu(program("nop\nend: stop true, end"), params).run().hypothetical == label


def test_flags_stay() -> None:
    made = program("sub r0, r0, 0\nmove r1, 5\nmul32 r2, r1, r1\nend: stop true, end")
    dpu = Dpu(made, CORE)
    dpu.run()
    assert dpu.machine.tasklet(0)["registers"][2] == 25


@pytest.mark.parametrize(
    "text", ["mul32 r0, r1, 5", "fadd r0, r1, r2, z, 0", "f2s d0, r1", "fadd r0, r1, zero"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(AsmError):
        program(text)


def test_unknown_unit_is_refused() -> None:
    with pytest.raises(CompileError, match="hypothetical: 'fpu' asked, known: mul32, float"):
        compile_c("int main() {}", hypothetical=("fpu",))


def test_command_line(tmp_path: Path) -> None:
    task, out = tmp_path / "task.c", str(tmp_path / "task")
    task.write_text("volatile float x; int main() { x = x * x; }")
    run = CliRunner().invoke
    assert run(cli, ["cc", "-mhypothetical=mul32,float", str(task), "-o", out]).exit_code == 0
    core = ["--core", "float_add_slots=1", "--core", "float_mul_slots=1"]
    for command in (["run", out], ["profile", out], ["trace", out, "-o", f"{out}.json"]):
        text = run(cli, [*command, *core]).output
        assert "HYPOTHETICAL" in text
        assert "no UPMEM chip has float_add 1, float_mul 1" in text
    refused = run(cli, ["run", out, "--core", "fpu=1"])
    assert "fpu=1: no constant of a DPU" in str(refused.exception)
    refused = run(cli, ["run", out, "--core", "tasklets=many"])
    assert "a number is needed" in str(refused.exception)


def test_objects_keep_the_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("task.c").write_text("volatile int x; int main() { x = x * x; }")
    run = CliRunner().invoke
    assert run(cli, ["cc", "-c", "-mhypothetical=mul32", "task.c"]).exit_code == 0
    assert run(cli, ["cc", "task.o", "-o", "task"]).exit_code == 0
    loaded: Program = read_elf("task")
    assert loaded.units == ("multiply32_slots",)
