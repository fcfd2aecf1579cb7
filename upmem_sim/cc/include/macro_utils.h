/* Text and token macros that other headers use. */
#ifndef UPMEM_MACRO_UTILS_H
#define UPMEM_MACRO_UTILS_H
#define __STR_AS_IS(x) #x
#define __STR(x) __STR_AS_IS(x)
#define __CONCAT_AS_IS(x, y) x##y
#define __CONCAT(x, y) __CONCAT_AS_IS(x, y)
#endif
