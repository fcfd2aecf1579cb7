"""The check program of an exported folder: runs the C interface on data files and times it.

In: a `HostProgram`. Out: check.c. Input X is read from data/X.bin, output Y is compared with
data/Y.bin. The times are those of the repeat with the median total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from atim.codegen import Tensor
from atim.codegen.c_values import c_type
from atim.codegen.driver_c import HostProgram
from atim.codegen.driver_text import PHASES
from atim.codegen.names import Names

__all__ = ["emit_check", "file_names"]

CHECK = """\
/* Runs {name} on the files of a folder, compares the outputs, and tells how long each phase takes.
 *
 *   check [-r repeats] [-w warm-up runs] [-d data folder] [-o folder for the outputs]
 *         [-t host threads] [-k DPU program] [-n]
 *
 * -n: no comparison. Ends with status 0 when the outputs are right. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "{name}.h"

static const char USAGE[] =
    "usage: check [-r repeats] [-w warm-up runs] [-d data folder] [-o folder for the outputs]\\n"
    "             [-t host threads] [-k DPU program] [-n: no comparison]\\n";

static void fail(const char *what, const char *detail) {{
    fprintf(stderr, "check: %s%s\\n", what, detail);
    exit(EXIT_FAILURE);
}}

static void *hold(size_t bytes) {{
    void *memory = calloc(bytes, 1);
    if (memory == NULL) {{
        fail("memory is short", "");
    }}
    return memory;
}}

static FILE *open_file(const char *folder, const char *file, const char *mode) {{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *stream = fopen(path, mode);
    if (stream == NULL) {{
        fail("cannot be opened, see README.md for what it holds: ", path);
    }}
    return stream;
}}

static void *read_file(const char *folder, const char *file, size_t bytes) {{
    FILE *stream = open_file(folder, file, "rb");
    void *memory = hold(bytes);
    if (fread(memory, 1, bytes, stream) != bytes) {{
        fail("shorter than the tensor: ", file);
    }}
    fclose(stream);
    return memory;
}}

static void write_file(const char *folder, const char *file, const void *memory, size_t bytes) {{
    FILE *stream = open_file(folder, file, "wb");
    if (fwrite(memory, 1, bytes, stream) != bytes || fclose(stream) != 0) {{
        fail("cannot be written: ", file);
    }}
}}

static double total(const struct {name}_times *times) {{
    return {sum};
}}

static int compare_totals(const void *a, const void *b) {{
    const double x = total(a), y = total(b);
    return (x > y) - (x < y);
}}

static void tell(struct {name}_times *runs, int repeats) {{
    qsort(runs, (size_t)repeats, sizeof *runs, compare_totals);
    const struct {name}_times *median = &runs[repeats / 2];
{tell}
    printf("%-10s %14.6f ms\\n", "total", 1e3 * total(median));
    printf("%-10s %14llu\\n", "cycles", (unsigned long long)median->cycles);
    printf("%-10s %14d, of which this is the median; least total %.6f ms\\n", "repeats", repeats,
           1e3 * total(runs));
}}
"""

COMPARE = """\
/* Elements of {file} that differ by more than {tolerance}. */
static size_t count_wrong_{index}(const {type} *values, const {type} *wanted) {{
    size_t wrong = 0;
    for (size_t i = 0; i < {count}; i++) {{
        wrong += {test};
    }}
    return wrong;
}}
"""

MAIN = """\
int main(int argc, char **argv) {{
    int repeats = 10, warm_ups = 1;
    unsigned threads = 0;
    const char *data = "data", *output = NULL, *kernel = NULL;
    bool compare = true;
    for (int option; (option = getopt(argc, argv, "hr:w:d:o:t:k:n")) != -1;) {{
        switch (option) {{
        case 'r': repeats = atoi(optarg); break;
        case 'w': warm_ups = atoi(optarg); break;
        case 'd': data = optarg; break;
        case 'o': output = optarg; break;
        case 't': threads = (unsigned)atoi(optarg); break;
        case 'k': kernel = optarg; break;
        case 'n': compare = false; break;
        default: fputs(USAGE, option == 'h' ? stdout : stderr); return option == 'h' ? 0 : 2;
        }}
    }}
    if (repeats < 1 || warm_ups < 0) {{
        fail("repeats: at least 1 needed, warm-ups: at least 0", "");
    }}
{read}
    struct {name}_times *runs = hold((size_t)repeats * sizeof *runs);
    if ({name}_init(kernel, threads) != 0) {{
        fail("no DPUs, or no program for them", "");
    }}
    printf("%-10s %14.6f ms\\n", "program", 1e3 * {name}_last_times()->load);
{load}
    for (int i = -warm_ups; i < repeats; i++) {{
        if ({name}({arguments}) != 0) {{
            fail("the run failed", "");
        }}
        if (i >= 0) {{
            runs[i] = *{name}_last_times();
        }}
    }}
    tell(runs, repeats);
{write}
    size_t wrong = 0;
    if (compare) {{
{compare}
        printf("%-10s %14s\\n", "outputs", wrong ? "WRONG" : "right");
    }}
    {name}_free();
{free}
    free(runs);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}}
"""


def file_names(tensors: Sequence[Tensor]) -> dict[str, str]:
    """Tensor -> name of its data file."""
    names = Names()
    return {t.name: f"{names.new(t.name)}.bin" for t in tensors}


def _bytes(tensor: Tensor) -> int:
    return _count(tensor) * np.dtype(tensor.dtype).itemsize


def _count(tensor: Tensor) -> int:
    return int(np.prod(tensor.shape, dtype=np.int64))


def emit_check(
    program: HostProgram, resident: Sequence[str], tolerances: Mapping[str, float]
) -> str:
    """check.c. `tolerances`: output -> largest difference that is still right, 0 without."""
    files = file_names(program.arguments)
    places = {t.name: f"tensor_{i}" for i, t in enumerate(program.arguments)}
    inputs = [t for t in program.arguments if t.role == "input"]
    outputs = [t for t in program.arguments if t.role == "output"]
    stay = [t for t in inputs if t.name in resident]
    read = [_read(t, places[t.name], files[t.name]) for t in inputs]
    read += [f"    {c_type(t.dtype)} *{places[t.name]} = hold({_bytes(t)});" for t in outputs]
    passed = ["NULL" if t in stay else places[t.name] for t in program.arguments]
    pieces = [
        CHECK.format(
            name=program.name,
            sum=" + ".join(f"times->{phase}" for phase in PHASES),
            tell="\n".join(
                f'    printf("%-10s %14.6f ms  %s\\n", "{phase}", 1e3 * median->{phase}, "{what}");'
                for phase, what in PHASES.items()
            ),
        )
    ]
    compare = []
    for index, tensor in enumerate(outputs):
        place = places[tensor.name]
        pieces.append(_compare(index, tensor, files[tensor.name], tolerances.get(tensor.name, 0)))
        compare += [
            f'        void *wanted_{index} = read_file(data, "{files[tensor.name]}",'
            f" {_bytes(tensor)});",
            f"        wrong += count_wrong_{index}({place}, wanted_{index});",
            f"        free(wanted_{index});",
        ]
    write = [
        f'        write_file(output, "{files[t.name]}", {places[t.name]}, {_bytes(t)});'
        for t in outputs
    ]
    main = MAIN.format(
        name=program.name,
        read="\n".join(read),
        load=_load(program, [places[t.name] for t in stay]),
        arguments=", ".join(passed),
        write="\n".join(["    if (output != NULL) {", *write, "    }"]),
        compare="\n".join(compare),
        free="\n".join(f"    free({place});" for place in places.values()),
    )
    return "\n".join([*pieces, main])


def _read(tensor: Tensor, place: str, file: str) -> str:
    return f'    {c_type(tensor.dtype)} *{place} = read_file(data, "{file}", {_bytes(tensor)});'


def _load(program: HostProgram, places: Sequence[str]) -> str:
    if not places:
        return ""
    lines = [
        f"    if ({program.name}_load_resident({', '.join(places)}) != 0) {{",
        '        fail("resident operands cannot be loaded", "");',
        "    }",
        f"    const double resident = {program.name}_last_times()->load;",
        '    printf("%-10s %14.6f ms\\n", "resident", 1e3 * resident);',
    ]
    return "\n".join(lines)


def _compare(index: int, tensor: Tensor, file: str, tolerance: float) -> str:
    floating = np.dtype(tensor.dtype).kind == "f"
    close = (
        f"!(fabs((double)values[i] - (double)wanted[i]) <= {tolerance!r} || values[i] == wanted[i]"
        " || (isnan(values[i]) && isnan(wanted[i])))"
    )
    return COMPARE.format(
        index=index,
        file=file,
        tolerance=f"{tolerance:g}",
        type=c_type(tensor.dtype),
        count=_count(tensor),
        test=close if floating else "values[i] != wanted[i]",
    )
