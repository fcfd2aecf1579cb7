/* Assertions (C17 7.2): a failed one stops the DPU with fault 3. */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __upmem_assert_failed())
#endif
#ifndef UPMEM_ASSERT_H
#define UPMEM_ASSERT_H
#define static_assert _Static_assert
static inline __attribute__((always_inline, unused, noreturn)) void __upmem_assert_failed(void) {
    __asm__ volatile("fault 3");
    __builtin_unreachable();
}
#endif
