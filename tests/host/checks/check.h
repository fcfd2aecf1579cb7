/* Counts what is not as it should be; main returns `failures`. */
#ifndef CHECK_H
#define CHECK_H

#include <dpu.h>
#include <dpu_log.h>
#include <dpu_management.h>
#include <dpu_program.h>
#include <dpu_sim.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                    \
    do {                                                                     \
        if (!(condition)) {                                                  \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            failures++;                                                      \
        }                                                                    \
    } while (0)
#define GIVES(call, code)                                                                      \
    do {                                                                                       \
        dpu_error_t given = (call);                                                            \
        if (given != (code)) {                                                                 \
            char *text = dpu_error_to_string(given);                                           \
            printf("%s:%d: %s gives 0x%x (%s), not %s\n", __FILE__, __LINE__, #call, (unsigned)given, \
                   text, #code);                                                               \
            free(text);                                                                        \
            failures++;                                                                        \
        }                                                                                      \
    } while (0)
#define OK(call) GIVES(call, DPU_OK)

enum { ADD, LONG, PRINT, DIVIDE, WILD, DEADLOCK, FOREVER, OVERFLOW };

static inline void set_mode(struct dpu_set_t set, uint32_t mode) {
    OK(dpu_copy_to(set, "mode", 0, &mode, sizeof mode));
}

static inline struct dpu_set_t first_dpu(struct dpu_set_t set) {
    struct dpu_set_t dpu = set;
    DPU_FOREACH(set, dpu) break;
    return dpu;
}

#endif
