/* Common definitions (C17 7.19). */
#ifndef UPMEM_STDDEF_H
#define UPMEM_STDDEF_H
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __SIZE_TYPE__ size_t;
typedef __WCHAR_TYPE__ wchar_t;
typedef struct {
    long long upmem_integer __attribute__((aligned(8)));
    double upmem_real __attribute__((aligned(8)));
} max_align_t;
#ifndef NULL
#define NULL ((void *)0)
#endif
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
