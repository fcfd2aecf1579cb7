"""C identifiers from names in the source program: legal, unique, and clear of keywords and of the
SDK."""

from __future__ import annotations

import re
from collections.abc import Iterable

from atim.codegen.kernel_helpers import FUNCTION_NAMES
from atim.codegen.math_c import MATH

_KEYWORDS = """
alignas alignof asm auto bool break case char const constexpr continue default do double else enum
extern false float for goto if inline int long nullptr register restrict return short signed
sizeof static static_assert struct switch thread_local true typedef typeof typeof_unqual union
unsigned void volatile while int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
size_t uintptr_t
"""
KEYWORDS = frozenset(_KEYWORDS.split())

# SDK headers (defs.h, mram.h, alloc.h, barrier.h, mutex.h, sem.h, ...), its C library, the host
# interface (dpu.h) and the C library's names that GCC and clang know as built-in.
_RESERVED = """
me main halt check_stack thread_id_t sysname_t mram_read mram_write DPU_MRAM_HEAP_POINTER
NR_TASKLETS NR_THREADS DPU_NR_THREADS STACK_SIZE_DEFAULT BARRIER_INIT barrier_t barrier_wait
MUTEX_INIT mutex_lock mutex_unlock mutex_trylock mutex_id_t sem_t sem_take sem_give SEMAPHORE_INIT
handshake_notify handshake_wait_for mem_alloc mem_reset mem_alloc_dma buddy_alloc buddy_free
buddy_init fsb_alloc perfcounter_config perfcounter_get seqread_get seqread_init seqread_t printf
puts putchar memcpy memset memmove memcmp memchr strlen strcpy strcat strcmp strchr strstr errno
abs labs exit malloc free calloc realloc alloca abort acquire release ffs bcmp bzero index rindex
signal time clock div ldiv rand random y0 y1 yn isnan isinf isfinite signbit unix linux i386 NULL
EOF NAN INFINITY stdin stdout stderr assert offsetof word_t
tasklet grid grid_index all_tasklets mram_word wram wram_of unused prepare finish
"""
# families of names: of the SDK, of the emitted helpers (min_int32, mram_load_int8), of C libraries
_FAMILIES = re.compile(
    r"(dpu|DPU|mram|wram|barrier|mutex|sem|seqread|perfcounter|handshake|buddy|fsb|vmutex|NR)_\w*"
    r"|(min|max|abs|floordiv|floormod)_u?(int|float)\d+|U?INT\w*_(MIN|MAX|C)"
    r"|(a?(sin|cos|tan)h?|atan2|exp|exp2|expm1|log|log2|log10|log1p|pow|sqrt|cbrt|hypot|floor|ceil"
    r"|l?l?r(ound|int)|trunc|nearbyint|fabs|fmin|fmax|fmod|fma|fdim|ldexp|frexp|modf|scalbn|copysign"
    r"|[lt]?gamma|erfc?|j[01n])[fl]?"
)
RESERVED = frozenset(_RESERVED.split()) | FUNCTION_NAMES
RESERVED |= {"bits_of", "float_of"} | {f"{name}_float32" for name in MATH}


# what TVM calls the axes of a copy
ANONYMOUS = re.compile(r"ax\d+")


class Names:
    """Gives each thing a name of its own."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def release(self, names: Iterable[str]) -> None:
        """Names whose scope has ended may be given again."""
        self._taken.difference_update(names)

    def new(self, wanted: str) -> str:
        """The nearest free identifier to `wanted`: y.rf -> y_partial, int -> int_, a second x ->
        x_1."""
        name = re.sub(r"\W", "_", of_source(wanted), flags=re.ASCII) or "v"
        # a leading underscore belongs to the implementation
        name = name.lstrip("_") or "v"
        name = f"v{name}" if name[0].isdigit() else name
        taken = name in KEYWORDS or name in RESERVED or _FAMILIES.fullmatch(name)
        name = f"{name}_" if taken else name
        unique, count = name, 0
        while unique in self._taken:
            count += 1
            unique = f"{name}_{count}"
        self._taken.add(unique)
        return unique


def of_source(name: str) -> str:
    """A tensor's name without what TVM calls the partial results of a reduction."""
    return name.replace(".rf", "_partial")


def axis_of(name: str) -> str:
    """The axis of the program behind a loop that TVM split, fused, initialised or copied along:
    k_1_0 -> k, i_3_init -> i, k_0_k_1_fused_0 -> k."""
    base = re.sub(r"(_(\d+|init|fused))+$", "", name)
    if "_fused" in name:
        base = re.split(r"_\d+_", base)[0]
    return base


def local_name(name: str) -> str:
    """A short name for a buffer that TVM named after a memory scope: x_local.wram -> x_wram."""
    for scope, short in (("local.wram", "wram"), ("shared.wram", "shared"), ("local", "sum")):
        if name.endswith(f"_{scope}"):
            base = name[: -len(scope) - 1]
            # a copy of a copy: keep the last place only
            return f"{local_root(base)}_{short}"
    return name


def local_root(name: str) -> str:
    """The tensor behind a chain of copies: y_local.wram -> y."""
    for scope in ("_local.wram", "_shared.wram", "_local"):
        if name.endswith(scope):
            return local_root(name[: -len(scope)])
    return name
