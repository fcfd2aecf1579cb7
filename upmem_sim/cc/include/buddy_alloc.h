/* Blocks of any size, powers of two inside (UPMEM SDK manual, "Memory management"). */
#ifndef UPMEM_BUDDY_ALLOC_H
#define UPMEM_BUDDY_ALLOC_H
#include <stddef.h>

/* An area of 2048 to 32768 bytes (a power of two) from mem_alloc; by one tasklet, once. */
void buddy_init(size_t size_of_heap);
void buddy_reset(void);
void *buddy_alloc(size_t size);
void buddy_free(void *pointer);
void *buddy_realloc(void *pointer, size_t size);
#endif
