/* Error numbers, one `errno` per tasklet. */
#ifndef UPMEM_ERRNO_H
#define UPMEM_ERRNO_H
#include <defs.h>
extern int __upmem_errno[];
#define errno (__upmem_errno[me()])
#define EALREADY 7
#define EINVAL 28
#define ENOMEM 49
#define EOVERFLOW 65
#define ERANGE 72
#endif
