"""Calls of printf with what C's printf prints for them, and a DPU program that makes the calls."""

from __future__ import annotations

import ctypes

# (format, arguments as C, the same for the host)
CALLS: tuple[tuple[str, str, tuple[int | float | str, ...]], ...] = (
    ("%jd %d", "(intmax_t)5, 77", (5, 77)),
    ("%hd %hhd %hu %hx %d", "70000, 300, 70000, 0x12345, 7", (70000, 300, 70000, 0x12345, 7)),
    ("%hhi %hi %i", "-1, 0x8000, -9", (-1, 0x8000, -9)),
    ("%td %zd %zu %d", "(ptrdiff_t)-4, (ssize_t)-5, sizeof(int), 6", (-4, -5, 4, 6)),
    ("%ld %lu %llx %lX %lo %d", "-1L, 1L << 40, 255LL, 254L, 8L, 3", (-1, 1 << 40, 255, 254, 8, 3)),
    ("[%*d] [%-*d] [%*d]", "5, 1, 5, 2, -5, 3", (5, 1, 5, 2, -5, 3)),
    (
        "[%.*f] [%*.*f] [%.*f] %d",
        "1, 2.25, 8, 3, 1.5, -1, 2.5, 4",
        (1, 2.25, 8, 3, 1.5, -1, 2.5, 4),
    ),
    ("[%.*s] [%6s] [%-6.2s]", '2, "abc", "de", "fgh"', (2, "abc", "de", "fgh")),
    (
        "%F %E %G %e %g %f %Lf",
        "0.5, 1e9, 1e-9, 2.0, 3.5, -1.0, 1.25L",
        (0.5, 1e9, 1e-9, 2, 3.5, -1, 1.25),
    ),
    ("[%5.3d] [%05d] [%-5d] [%+d] [% d] [%05.3d]", "7, -7, 7, 7, 7, 7", (7, -7, 7, 7, 7, 7)),
    ("[%#x] [%#X] [%#o] [%#x] [%#10x] [%#010x]", "10, 10, 8, 0, 1, 1", (10, 10, 8, 0, 1, 1)),
    ("[%+u] [%.0d] [%.d] [%#.3o] [%x]", "3u, 0, 0, 8, -1", (3, 0, 0, 8, -1)),
    ("[%05f] [%-8F]", "__builtin_inf(), -__builtin_inf()", (float("inf"), -float("inf"))),
    ("%c%3c%-3c|", "'a', 'b', 'c'", (97, 98, 99)),
    ("100%% %d", "1", (1,)),
)
# Formats that only a program which makes them up can have: what the log shows, and then 7.
UNKNOWN = (
    ("%a", "1.5", "<%a: no conversion of printf here>"),
    ("%n", "&number", "<%n: no conversion of printf here>"),
    ("%ls", "&number", "<%ls: no conversion of printf here>"),
    ("%y", "5", "<%y: no conversion of printf here>"),
    ("%p", "(void *)0x123", "0x00000123"),
    ("%-12p|", "(void *)0x123", "0x00000123  |"),
    ("%b %#b %08b %lb", "5, 5, 5, 1L << 40", "101 0b101 00000101 1" + "0" * 40),
)
HEAD = """#include <stdio.h>
#include <stddef.h>
#include <stdint.h>
typedef ptrdiff_t ssize_t;
int number;
int main() {
"""


def on_host(form: str, arguments: tuple[int | float | str, ...]) -> str:
    """What the host's printf makes of it."""
    buffer = ctypes.create_string_buffer(500)
    reals = set(form) & set("feEgGF")
    values: list[object] = []
    for argument in arguments:
        if isinstance(argument, str):
            values.append(argument.encode())
        elif isinstance(argument, float) or (reals and "*" not in form and "%d" not in form):
            values.append(ctypes.c_double(argument))
        else:
            values.append(ctypes.c_longlong(argument))
    ctypes.CDLL(None).snprintf(buffer, 500, form.replace("%L", "%").encode(), *values)
    return buffer.value.decode()


def program() -> tuple[str, str]:
    """C text, and its log."""
    lines, expected = [HEAD], []
    for form, text, arguments in CALLS:
        lines.append(f'    printf("{form}\\n", {text});\n')
        expected.append(on_host(form, arguments))
    for i, (form, text, shown) in enumerate(UNKNOWN):
        # volatile: the format is no constant
        lines.append(f'    const char *volatile f{i} = "{form} %d\\n"; printf(f{i}, {text}, 7);\n')
        expected.append(f"{shown} 7")
    return "".join([*lines, "    return 0;\n}\n"]), "\n".join(expected) + "\n"
