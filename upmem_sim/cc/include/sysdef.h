/* Names of system objects. */
#ifndef UPMEM_SYSDEF_H
#define UPMEM_SYSDEF_H
typedef unsigned int sysname_t;
typedef unsigned int thread_id_t;
#endif
