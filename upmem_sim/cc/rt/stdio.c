/* printf, puts, putchar: messages in a ring in MRAM, formatted by the host (upmem_sim/log.py).
 * A message: the formats ("%s" for each run of plain text, the conversion itself for the others) in
 * one string, then the arguments in order (strings with their 0, characters 1 byte, doubles 8,
 * integers 4 or 8 bytes, a `*` 4 in front of its argument, what is no conversion 4), filled up to a
 * multiple of 8 bytes. */
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

/* A conversion, from behind its % on: its letter, the bytes of an integer, how many numbers a `*`
 * takes; where it ends. Of the lengths the log keeps an `l`, for 8 bytes: the others are done here. */
struct conversion { char letter, length, stars; };

/* Whether c is one of the characters of a set: bit n stands for the n-th from `first` on. */
static inline bool is_in(uint32_t set, char first, char c) {
    uint32_t n = (uint32_t)c - (uint32_t)first;
    return n < 32 && set >> n & 1;
}
#define BIT(c, first) (1u << ((c) - (first)))
#define PARTS (0x3ff0000u | BIT(' ', ' ') | BIT('#', ' ') | BIT('*', ' ') | BIT('+', ' ') | \
               BIT('-', ' ') | BIT('.', ' '))
#define LENGTHS (BIT('h', 'h') | BIT('j', 'h') | BIT('l', 'h') | BIT('t', 'h') | BIT('z', 'h'))
#define INTEGERS (BIT('b', 'b') | BIT('d', 'b') | BIT('i', 'b') | BIT('o', 'b') | BIT('u', 'b') | \
                  BIT('x', 'b'))
#define REALS (BIT('a', 'a') | BIT('e', 'a') | BIT('f', 'a') | BIT('g', 'a'))

static const char *conversion(const char *format, struct conversion *out, bool print) {
    out->length = 4;
    out->stars = 0;
    if (print) emit('%');
    for (; is_in(PARTS, ' ', *format); format++) {
        out->stars += *format == '*';
        if (print) emit((unsigned char)*format);
    }
    for (; is_in(LENGTHS, 'h', *format) || *format == 'L'; format++) {
        if (*format == 'l' || *format == 'j') out->length = 8;
        if (*format == 'h') out->length >>= 1;
    }
    char c = out->letter = *format;
    if (print && out->length == 8) emit('l');
    if (print && c) emit((unsigned char)(c == 'i' ? 'd' : c));
    return c ? format + 1 : format;
}

/* An integer argument as 4 or 8 bytes: a short or char has the value that its type can hold. */
static void integer(struct conversion c, va_list *list) {
    uint64_t value = c.length == 8 ? va_arg(*list, uint64_t) : va_arg(*list, uint32_t);
    bool is_signed = c.letter == 'd' || c.letter == 'i';
    if (c.length == 2) value = is_signed ? (uint32_t)(int16_t)value : (uint16_t)value;
    if (c.length == 1) value = is_signed ? (uint32_t)(int8_t)value : (uint8_t)value;
    emit_integer(value, c.length == 8 ? 8 : 4);
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
    struct conversion c;
    while (*format) {
        if (is_text(format)) {
            format = text(format, true);
            emit(0);
            continue;
        }
        format = conversion(format + 1, &c, false);
        for (; c.stars != 0; c.stars--) emit_integer(va_arg(list, uint32_t), 4);
        if (c.letter == 's' && c.length != 8) {
            const char *string = va_arg(list, const char *);
            do emit((unsigned char)*string);
            while (*string++);
        } else if (c.letter == 'c') {
            emit((unsigned char)va_arg(list, int));
        } else if (is_in(REALS, 'a', c.letter | 32)) {
            union { double number; uint64_t bits; } value = {va_arg(list, double)};
            emit_integer(value.bits, 8);
        } else if (is_in(INTEGERS, 'b', c.letter) || c.letter == 'X') {
            integer(c, &list);
        } else if (c.letter != 0 && c.letter != '%') {
            emit_integer(va_arg(list, uint32_t), 4);
        }
    }
}

void printf(const char *restrict format, ...) {
    va_list list;
    struct conversion c;
    ATOMIC_BIT_ACQUIRE(stdout_lock);
    filled = written = 0;
    for (const char *at = format; *at;) {
        if (is_text(at)) {
            at = text(at, false);
            emit('%');
            emit('s');
        } else {
            at = conversion(at + 1, &c, true);
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
