/* Libraries whose initialisers and finalisers call the test: for initialisers.rs. Built with HOOK
 * it is the library that the others need, which has the place for the test's function. */

#ifdef HOOK
void (*called)(const char *, int (*)(void));
#else
extern void (*called)(const char *, int (*)(void));

static __thread int number __attribute__((tls_model("initial-exec"))) = 41;

#ifdef EXTRA_BYTES
static __thread char extra[EXTRA_BYTES] __attribute__((tls_model("initial-exec")));

char *first_extra(void) { return extra; }
#endif

int next(void) { return ++number; }

__attribute__((constructor)) static void begin(void) { called("initialiser", next); }

#ifdef FINALISER
__attribute__((destructor)) static void end(void) { called("finaliser", next); }
#endif

#ifdef IFUNC
static int one(void) { return 1; }

static int (*resolve(void))(void) {
    called("resolver", one);
    return one;
}

int resolved(void) __attribute__((ifunc("resolve")));

int (*use_resolved(void))(void) { return resolved; }
#endif
#endif
