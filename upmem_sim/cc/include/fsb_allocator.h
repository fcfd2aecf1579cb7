/* Blocks of one size (UPMEM SDK manual, "Memory management"). */
#ifndef UPMEM_FSB_ALLOCATOR_H
#define UPMEM_FSB_ALLOCATOR_H
typedef void **fsb_allocator_t;

/* `nb_of_blocks` blocks of `block_size` bytes (rounded up to a multiple of 8) from mem_alloc. */
fsb_allocator_t fsb_alloc(unsigned int block_size, unsigned int nb_of_blocks);
/* A block, NULL when none is left. */
void *fsb_get(fsb_allocator_t allocator);
void fsb_free(fsb_allocator_t allocator, void *ptr);
#endif
