/* Buddy allocator: a binary tree of blocks over the area, in one byte per node. A node holds the
 * size class (0: nothing free, k: 16 << (k - 1) bytes) of the largest free block below it; ALLOCATED
 * marks a node that was handed out. Node 1 is the whole area, 2n and 2n + 1 are the halves of n. */
#include <alloc.h>
#include <atomic_bit.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#define SMALLEST_LOG2 4
#define ALLOCATED 0x80

static ATOMIC_BIT_INIT(buddy_lock);
static unsigned char *area;
static uint8_t *tree;
static uint32_t levels; /* size class of the whole area */

static uint32_t class_of(size_t size) {
    return size <= 16 ? 1 : 33 - SMALLEST_LOG2 - (uint32_t)__builtin_clz(size - 1);
}

static void fill(void) {
    for (uint32_t level = 0; level < levels; level++)
        memset(tree + (1u << level), (int)(levels - level), 1u << level);
}

void buddy_init(size_t size_of_heap) {
    levels = class_of(size_of_heap);
    area = mem_alloc(size_of_heap);
    tree = mem_alloc(1u << levels);
    fill();
}

void buddy_reset(void) {
    if (area == NULL) return;
    buddy_init((size_t)16 << (levels - 1));
}

static void update_upwards(uint32_t node, uint32_t size_class) {
    for (node >>= 1; node != 0; node >>= 1) {
        uint8_t left = tree[2 * node] & ALLOCATED ? 0 : tree[2 * node];
        uint8_t right = tree[2 * node + 1] & ALLOCATED ? 0 : tree[2 * node + 1];
        if (left == size_class && right == size_class)
            tree[node] = (uint8_t)(size_class + 1);
        else
            tree[node] = left > right ? left : right;
        size_class++;
    }
}

static void *take(uint32_t wanted) {
    if (tree == NULL || tree[1] & ALLOCATED || tree[1] < wanted) return NULL;
    uint32_t node = 1, size_class = levels;
    while (size_class > wanted) {
        uint32_t left = 2 * node, right = left + 1;
        uint8_t a = tree[left] & ALLOCATED ? 0 : tree[left];
        uint8_t b = tree[right] & ALLOCATED ? 0 : tree[right];
        /* the tighter of the two that suffice */
        node = a >= wanted && (b < wanted || a <= b) ? left : right;
        size_class--;
    }
    tree[node] = ALLOCATED;
    update_upwards(node, size_class);
    return area + ((node - (1u << (levels - size_class))) << (size_class - 1 + SMALLEST_LOG2));
}

void *buddy_alloc(size_t size) {
    size_t whole = levels ? (size_t)16 << (levels - 1) : 0;
    if (size == 0 || size > whole) {
        errno = EINVAL;
        return NULL;
    }
    ATOMIC_BIT_ACQUIRE(buddy_lock);
    void *block = take(class_of(size));
    ATOMIC_BIT_RELEASE(buddy_lock);
    if (block == NULL) errno = ENOMEM;
    return block;
}

/* The allocated node that holds an address, 0 if there is none; its class in *size_class. */
static uint32_t find(void *pointer, uint32_t *size_class) {
    uint32_t offset = (uint32_t)((unsigned char *)pointer - area);
    if (levels == 0 || offset >= 16u << (levels - 1)) return 0;
    uint32_t node = (1u << (levels - 1)) + (offset >> SMALLEST_LOG2);
    for (*size_class = 1; node != 0; node >>= 1, (*size_class)++)
        if (tree[node] & ALLOCATED) return node;
    return 0;
}

void buddy_free(void *pointer) {
    uint32_t size_class = 0;
    if (pointer == NULL) return;
    ATOMIC_BIT_ACQUIRE(buddy_lock);
    uint32_t node = find(pointer, &size_class);
    if (node != 0) {
        tree[node] = (uint8_t)size_class;
        update_upwards(node, size_class);
    }
    ATOMIC_BIT_RELEASE(buddy_lock);
    if (node == 0) errno = EINVAL;
}

void *buddy_realloc(void *pointer, size_t size) {
    uint32_t size_class = 0;
    if (pointer == NULL) return buddy_alloc(size);
    if (size == 0) {
        buddy_free(pointer);
        return pointer;
    }
    ATOMIC_BIT_ACQUIRE(buddy_lock);
    uint32_t node = find(pointer, &size_class);
    ATOMIC_BIT_RELEASE(buddy_lock);
    if (node == 0) {
        errno = EINVAL;
        return NULL;
    }
    size_t held = (size_t)16 << (size_class - 1);
    if (size <= held && class_of(size) == size_class) return pointer;
    void *block = buddy_alloc(size);
    if (block != NULL) {
        memcpy(block, pointer, size < held ? size : held);
        buddy_free(pointer);
    }
    return block;
}
