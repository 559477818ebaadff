/* The functions that the guest imports from the host, and those that it exports. README.md, "ABI", lists them with their meanings. */
#ifndef TK_ABI_H
#define TK_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Of the 4 MiB that `build.rs` gives to the stack in linear memory; the rest is for what follows the RangeError. */
#define TK_STACK_MOST (3584 * 1024)
/* Levels that JSON.stringify goes down: at each of them it looks through all those above. */
#define TK_JSON_DEPTH 4000

#define TK_EXPORT(name) __attribute__((export_name(name), used))
#define TK_IMPORT(name) __attribute__((import_module("tokamak"), import_name(name)))

/* Milliseconds since 1970. */
TK_IMPORT("now") double tk_host_now(void);
TK_IMPORT("random") void tk_host_random(void *into, size_t length);
TK_IMPORT("print") void tk_host_print(int32_t level, const char *text, size_t length);
/* Writes the digest to `into` (64 bytes are there) and answers its length; 0 when the algorithm is unknown. */
TK_IMPORT("digest") int32_t tk_host_digest(const char *algorithm, size_t algorithm_length, const uint8_t *bytes,
                                           size_t length, uint8_t *into);
/* Minutes east of UTC; INT32_MIN when there is no such zone. */
TK_IMPORT("zone") int32_t tk_host_zone(const char *name, size_t length, double epoch_ms);
/* Text about the run's surroundings as JSON: its length, and its bytes when `into` has room for them. */
TK_IMPORT("surroundings") size_t tk_host_surroundings(char *into, size_t room);
/* The memory is used up; does not return. */
TK_IMPORT("exhausted") _Noreturn void tk_host_exhausted(void);
/* Feeds the digest of the global that is being looked at. */
TK_IMPORT("absorb") void tk_host_absorb(const void *bytes, size_t length);

#endif
