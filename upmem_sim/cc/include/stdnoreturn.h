/* noreturn (C17 7.23). */
#ifndef UPMEM_STDNORETURN_H
#define UPMEM_STDNORETURN_H
#define noreturn _Noreturn
#endif
