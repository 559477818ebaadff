/* The allocator the engine uses: the libc's, but what is freed is zeroed first.
   Invariant: free memory holds no bytes of what was there, so an image holds no garbage and no old secrets. */
#ifndef TK_MEMORY_H
#define TK_MEMORY_H

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* The barrier keeps the compiler from dropping a write to memory that nobody reads again. */
static inline void tk_wipe(void *at, size_t length)
{
    memset(at, 0, length);
    __asm__ __volatile__("" : : "r"(at) : "memory");
}

static void *tk_malloc(void *opaque, size_t length)
{
    return malloc(length);
}

static void *tk_calloc(void *opaque, size_t count, size_t size)
{
    return calloc(count, size);
}

static void tk_free(void *opaque, void *at)
{
    if (!at)
        return;
    tk_wipe(at, malloc_usable_size(at));
    free(at);
}

/* Never the libc's realloc: where it moves a block it would leave the old bytes behind. */
static void *tk_realloc(void *opaque, void *at, size_t length)
{
    size_t old;
    void *moved;

    if (!at)
        return malloc(length);
    old = malloc_usable_size(at);
    if (length <= old && length >= old / 2) {
        tk_wipe((char *)at + length, old - length);
        return at;
    }
    moved = malloc(length);
    if (!moved)
        return NULL;
    memcpy(moved, at, old < length ? old : length);
    tk_free(opaque, at);
    return moved;
}

#endif
