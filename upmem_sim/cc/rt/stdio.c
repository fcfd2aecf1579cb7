/* printf, puts, putchar: messages in a ring in MRAM, formatted by the host (upmem_sim/log.py).
 * A message: the formats ("%s" for each run of plain text, the conversion itself for the others) in
 * one string, then the arguments in order (strings with their 0, characters 1 byte, doubles 8,
 * integers 4 or 8 bytes), filled up to a multiple of 8 bytes. */
#include <atomic_bit.h>
#include <mram.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

extern __mram_ptr unsigned char __stdout_buffer[];
extern const unsigned int __stdout_buffer_size;
extern struct { uint32_t offset, has_wrapped; } __stdout_buffer_state;

static ATOMIC_BIT_INIT(stdout_lock);
static __dma_aligned unsigned char word[8];
static uint32_t filled, written;

static void emit(unsigned char byte) {
    word[filled++] = byte;
    if (filled != 8) return;
    filled = 0;
    written += 8;
    if (written > __stdout_buffer_size) __asm__ volatile("fault 5");
    uint32_t offset = __stdout_buffer_state.offset;
    mram_write(word, __stdout_buffer + offset, 8);
    offset += 8;
    if (offset == __stdout_buffer_size) {
        offset = 0;
        __stdout_buffer_state.has_wrapped = 1;
    }
    __stdout_buffer_state.offset = offset;
}

static void emit_integer(uint64_t value, int bytes) {
    for (; bytes != 0; bytes--, value >>= 8) emit((unsigned char)value);
}

/* A conversion, from behind its % on: its letter, whether it has an l; where it ends. */
static const char *conversion(const char *format, char *letter, bool *wide, bool print) {
    *wide = false;
    if (print) emit('%');
    for (;; format++) {
        char c = *format;
        if (c == 'l') *wide = true;
        bool is_part = (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == ' ' ||
                       c == '#' || c == 'l';
        if (c == 'L' || c == 'z') continue;
        if (print) emit((unsigned char)(c == 'i' ? 'd' : c));
        if (is_part) continue;
        *letter = c;
        return c ? format + 1 : format;
    }
}

static bool is_text(const char *format) {
    return *format != 0 && (*format != '%' || format[1] == '%');
}

static const char *text(const char *format, bool print) {
    for (; is_text(format); format++) {
        if (*format == '%') format++;
        if (print) emit((unsigned char)*format);
    }
    return format;
}

static void arguments(const char *format, va_list list) {
    char letter;
    bool wide;
    while (*format) {
        if (is_text(format)) {
            format = text(format, true);
            emit(0);
            continue;
        }
        format = conversion(format + 1, &letter, &wide, false);
        if (letter == 's') {
            const char *string = va_arg(list, const char *);
            do emit((unsigned char)*string);
            while (*string++);
        } else if (letter == 'c') {
            emit((unsigned char)va_arg(list, int));
        } else if (letter == 'f' || (letter | 32) == 'e' || (letter | 32) == 'g') {
            union { double number; uint64_t bits; } value = {va_arg(list, double)};
            emit_integer(value.bits, 8);
        } else if (wide) {
            emit_integer(va_arg(list, uint64_t), 8);
        } else if (letter) {
            emit_integer(va_arg(list, uint32_t), 4);
        }
    }
}

void printf(const char *restrict format, ...) {
    va_list list;
    char letter;
    bool wide;
    ATOMIC_BIT_ACQUIRE(stdout_lock);
    filled = written = 0;
    for (const char *at = format; *at;) {
        if (is_text(at)) {
            at = text(at, false);
            emit('%');
            emit('s');
        } else {
            at = conversion(at + 1, &letter, &wide, true);
        }
    }
    emit(0);
    va_start(list, format);
    arguments(format, list);
    va_end(list);
    while (filled != 0) emit(0);
    ATOMIC_BIT_RELEASE(stdout_lock);
}

void puts(const char *string) { printf("%s\n", string); }
void putchar(int character) { printf("%c", character); }
