#ifndef HEAP_USAGE_H
#define HEAP_USAGE_H

// Swift's Glibc module leaves <malloc.h> out, so this header asks for what it needs.

// Also the first to define __GLIBC__, where that is the library.
#include <stdlib.h>

#if defined(__APPLE__)
#include <malloc/malloc.h>
#elif defined(__GLIBC__)
#include <malloc.h>
#endif

/// The bytes that the process has allocated and not freed, in all arenas; 0 where the allocator does not tell.
static inline size_t heap_usage_bytes(void) {
#if defined(__APPLE__)
    malloc_statistics_t statistics;
    malloc_zone_statistics(NULL, &statistics);
    return statistics.size_in_use;
#elif defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 33))
    struct mallinfo2 statistics = mallinfo2();
    return statistics.uordblks + statistics.hblkhd;
#else
    return 0;
#endif
}

#endif
