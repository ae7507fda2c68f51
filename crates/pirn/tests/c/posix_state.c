// State of a thread's registers that few programs change: it is the thread's own, and inherited.
#include "posix_checks.h"
#include "processor.h"
#include <fenv.h>
#include <inttypes.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

enum { ROUNDS = 200, CROWD = 20 };

static void say_floats(const char *who)
{
	uint64_t controls = float_controls() & ~(uint64_t)FLOAT_FLAGS;
	say("%s: %x, controls %" PRIx64 "\n", who, fegetround(), controls);
}

static void *say_own_floats(void *who)
{
	say_floats(who);
	sched_yield();
	usleep(100);
	say_floats(who);
	return NULL;
}

// A new thread begins with its creator's rounding, precision, traps and treatment of tiny numbers.
void check_floats(void)
{
	int modes[] = { FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO };
	for (int i = 0; i < 4; i++) {
		CHECK(fesetround(modes[i]) == 0);
		set_float_controls(float_variant(float_controls(), i));
		join(begin(say_own_floats, "created"));
		say_floats("creator");
	}
	// Not every processor has traps.
	if (feenableexcept(FE_OVERFLOW) >= 0) {
		join(begin(say_own_floats, "traps"));
		CHECK(fedisableexcept(FE_OVERFLOW) >= 0);
	}
	CHECK(fesetenv(FE_DFL_ENV) == 0);
	join(begin(say_own_floats, "default"));
}

#if defined(__x86_64__)
#include <asm/prctl.h>

int arch_prctl(int code, unsigned long address);

static uint64_t read_gs(void)
{
	uint64_t word;
	__asm__ volatile("movq %%gs:0, %0" : "=r"(word));
	return word;
}

static void *keep_gs(void *argument)
{
	uint64_t block[2] = { (uintptr_t)argument, 0 }, base;
	CHECK(arch_prctl(ARCH_SET_GS, (uintptr_t)block) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(read_gs() == (uintptr_t)argument);
		__asm__ volatile("incq %%gs:8" : : : "memory");
		if (i % 10)
			sched_yield();
		else
			usleep(100);
	}
	CHECK(block[1] == ROUNDS);
	CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == (uintptr_t)block);
	return NULL;
}

static void *have_no_gs(void *argument)
{
	uint64_t base = 1;
	CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == 0);
	return argument;
}

// Each thread has its own GS base, beside threads without one.
void check_gs(void)
{
	pthread_t threads[CROWD];
	for (uintptr_t i = 0; i < CROWD; i++)
		threads[i] = begin(i % 4 ? keep_gs : have_no_gs, i % 4 ? (void *)(i + 1000) : NULL);
	for (int i = 0; i < CROWD; i++)
		join(threads[i]);
	join(begin(have_no_gs, NULL));
	say("done\n");
}
#endif

static void *keep_rights(void *argument)
{
	unsigned key = *(unsigned *)argument;
	uint64_t before = read_rights();
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t rights = changed_rights(before, key, i);
		write_rights(rights);
		if (i % 10)
			sched_yield();
		else
			usleep(100);
		CHECK(read_rights() == rights);
	}
	write_rights(before);
	return NULL;
}

// Each thread has its own rights of protection keys.
void check_rights(void)
{
	int key = pkey_alloc(0, 0);
	if (key < 0)
		return say("no protection keys\n");
	pthread_t threads[CROWD];
	for (int i = 0; i < CROWD; i++)
		threads[i] = begin(keep_rights, &key);
	for (int i = 0; i < CROWD; i++)
		join(threads[i]);
	CHECK(pkey_free(key) == 0);
	say("done\n");
}
