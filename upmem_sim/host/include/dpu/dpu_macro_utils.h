/* Macros that choose by number of arguments, and token pasting. Interface of the UPMEM SDK. */
#ifndef DPU_MACRO_UTILS_H
#define DPU_MACRO_UTILS_H

#define _CONCAT_X(a, b) a##b
#define _CONCAT(a, b) _CONCAT_X(a, b)
#define _STR_X(a) #a
#define _STR(a) _STR_X(a)

/* The third argument of those that follow two or three others; any trailing ones are dropped. */
#define _DPU_FOURTH_ARGUMENT(a, b, c, chosen, ...) chosen

#endif
