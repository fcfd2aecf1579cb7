/* Sizes of integer types (C17 7.10) on a DPU: long has 64 bits. */
#ifndef UPMEM_LIMITS_H
#define UPMEM_LIMITS_H
#define CHAR_BIT 8
#define MB_LEN_MAX 1
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#ifdef __CHAR_UNSIGNED__
#define CHAR_MIN 0
#define CHAR_MAX UCHAR_MAX
#else
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#endif
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ULL
#define LONG_MAX LLONG_MAX
#define LONG_MIN LLONG_MIN
#define ULONG_MAX ULLONG_MAX
#define WORD_BIT 32
#define LONG_BIT 32 /* as the SDK has it, although long has 64 bits */
#define SSIZE_MAX INT_MAX
#endif
