/* Output to a log that the host reads after a run (UPMEM SDK manual, "Printf"). */
#ifndef UPMEM_STDIO_H
#define UPMEM_STDIO_H
#include <attributes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Conversions c s d i u x X o b p e E f F g G with flags, width and precision, `*` among them, and
 * lengths h hh l ll j z t (L too: long double is double). Others are refused where the format is a
 * constant, and shown as such in the log where it is not. */
void printf(const char *restrict format, ...);
void puts(const char *string);
void putchar(int character);

/* Replaces the ring of 1 MiB in MRAM that keeps the log. */
#define STDOUT_BUFFER_INIT(size)                                                       \
    _Static_assert((size) >= 8 && (size) % 8 == 0, "stdout buffer: a multiple of 8");  \
    __mram_noinit unsigned char __stdout_buffer[size];                                 \
    const unsigned int __stdout_buffer_size = (size)
#endif
