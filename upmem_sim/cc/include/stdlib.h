/* General utilities (C17 7.22), as far as a DPU has them. */
#ifndef UPMEM_STDLIB_H
#define UPMEM_STDLIB_H
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

typedef struct { int quot, rem; } div_t;
typedef struct { long long quot, rem; } ldiv_t;
typedef struct { long long quot, rem; } lldiv_t;

static inline __attribute__((always_inline, unused, noreturn)) void abort(void) {
    __asm__ volatile("fault 4");
    __builtin_unreachable();
}
/* Stops the calling tasklet only; the status is ignored. */
__attribute__((noreturn)) void exit(int status);
static inline __attribute__((unused)) char *getenv(const char *name) {
    (void)name;
    return NULL;
}
static inline __attribute__((unused)) int abs(int value) { return value < 0 ? -value : value; }
static inline __attribute__((unused)) long long labs(long long value) {
    return value < 0 ? -value : value;
}
static inline __attribute__((unused)) long long llabs(long long value) {
    return value < 0 ? -value : value;
}
static inline __attribute__((unused)) div_t div(int left, int right) {
    return (div_t){left / right, left % right};
}
static inline __attribute__((unused)) ldiv_t ldiv(long long left, long long right) {
    return (ldiv_t){left / right, left % right};
}
static inline __attribute__((unused)) lldiv_t lldiv(long long left, long long right) {
    return (lldiv_t){left / right, left % right};
}
int atoi(const char *text);
long long atol(const char *text);
#endif
