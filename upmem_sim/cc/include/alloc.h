/* Memory from the WRAM heap (UPMEM SDK manual, "Memory management"). */
#ifndef UPMEM_ALLOC_H
#define UPMEM_ALLOC_H
#include <attributes.h>
#include <buddy_alloc.h>
#include <fsb_allocator.h>
#include <stddef.h>

/* `size` bytes, 8-aligned, shared by all tasklets; fault 1 when the heap is full. */
void *mem_alloc(size_t size);
/* Empties the heap; its start. */
void *mem_reset(void);
#endif
