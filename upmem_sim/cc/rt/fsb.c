/* Blocks of one size: the free list runs through the blocks, its head stands in front of them. */
#include <alloc.h>
#include <atomic_bit.h>

static ATOMIC_BIT_INIT(fsb_lock);

fsb_allocator_t fsb_alloc(unsigned int block_size, unsigned int nb_of_blocks) {
    block_size = block_size == 0 ? 8 : (block_size + 7) & ~7u;
    unsigned char *block = mem_alloc(block_size * nb_of_blocks);
    void **head = mem_alloc(sizeof(void *));
    *head = nb_of_blocks ? block : NULL;
    for (unsigned int i = 1; i < nb_of_blocks; i++, block += block_size)
        *(void **)block = block + block_size;
    if (nb_of_blocks) *(void **)block = NULL;
    return head;
}

void *fsb_get(fsb_allocator_t allocator) {
    ATOMIC_BIT_ACQUIRE(fsb_lock);
    void *block = *allocator;
    if (block != NULL) *allocator = *(void **)block;
    ATOMIC_BIT_RELEASE(fsb_lock);
    return block;
}

void fsb_free(fsb_allocator_t allocator, void *ptr) {
    ATOMIC_BIT_ACQUIRE(fsb_lock);
    *(void **)ptr = *allocator;
    *allocator = ptr;
    ATOMIC_BIT_RELEASE(fsb_lock);
}
