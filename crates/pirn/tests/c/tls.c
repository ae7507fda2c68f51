/* Thread-local data of a library that is opened late, for tls.rs. */

#include <stdlib.h>

static __thread int initialised = 41;
static __thread int zero;

#ifdef EXTRA_BYTES
static __thread char extra[EXTRA_BYTES];

char *first_extra(void) { return extra; }
#endif

int next_initialised(void) { return ++initialised; }

int next_zero(void) { return ++zero; }

/* `strtol` is bound lazily, so the first call runs the dynamic linker on the caller's thread. */
long lazily_bound(const char *text) { return strtol(text, NULL, 10); }
