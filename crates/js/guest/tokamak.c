/* The guest: QuickJS-NG and our shim as one unit, so that the shim may look inside the engine.
   `build.rs` puts the patched quickjs.c on the include path and compiles this file to WebAssembly.
   Invariant: between two calls of an export the stack is empty, so linear memory is the whole program. */
#include "abi.h"
#include "memory.h"
#include "quickjs.c"
#include "state.h"
#include "host.h"
#include "text.h"
#include "run.h"
#include "look.h"
#include "libc.h"
