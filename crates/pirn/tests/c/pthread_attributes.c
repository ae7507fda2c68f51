// Checks of the attributes and the identity of threads that `pthread_create` makes virtual; see
// `pthread_create.c`.
#include "pthread_checks.h"

static int is_os_thread(void)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d", (int)gettid());
	return access(path, F_OK) == 0;
}

static void *where(void *argument)
{
	int here = 0;
	*(void **)argument = &here;
	return (void *)(intptr_t)is_os_thread();
}

static int is_platform(const pthread_attr_t *attributes, void **place)
{
	pthread_t thread;
	void *result = NULL;
	CHECK(pthread_create(&thread, attributes, where, place) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	return (int)(intptr_t)result;
}

void check_fallback(void)
{
	enum { SIZE = 1 << 20 };
	void *place;
	uint64_t before[7], after[7];
	CHECK(pirn_count_pthreads(before, 7) >= 7);
	CHECK(!is_platform(NULL, &place));
	pthread_attr_t own, scheduled, bound;
	char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_init(&own);
	CHECK(pthread_attr_setstack(&own, stack, SIZE) == 0);
	CHECK(is_platform(&own, &place));
	CHECK((char *)place > stack && (char *)place < stack + SIZE);
	pthread_attr_init(&scheduled);
	pthread_attr_setinheritsched(&scheduled, PTHREAD_EXPLICIT_SCHED);
	CHECK(!is_platform(&scheduled, &place));
	pthread_attr_setschedpolicy(&scheduled, SCHED_RR);
	struct sched_param param = { .sched_priority = 1 };
	pthread_attr_setschedparam(&scheduled, &param);
	pthread_t thread;
	int error = pthread_create(&thread, &scheduled, where, &place);
	CHECK(error == 0 || error == EPERM);
	if (error == 0)
		CHECK(pthread_join(thread, NULL) == 0);
	cpu_set_t set;
	CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
	pthread_attr_init(&bound);
	CHECK(pthread_attr_setaffinity_np(&bound, sizeof set, &set) == 0);
	CHECK(is_platform(&bound, &place));
	pirn_count_pthreads(after, 7);
	for (int i = 1; i <= 3; i++)
		CHECK(after[i] == before[i] + 1);
	pthread_attr_destroy(&own);
	pthread_attr_destroy(&scheduled);
	pthread_attr_destroy(&bound);
}

static int dive(int depth)
{
	volatile char frame[4096];
	frame[0] = (char)depth;
	return depth == 0 ? frame[0] : dive(depth - 1) + frame[0] - (char)depth;
}

static int can_read(const char *place)
{
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	int can = write(pipes[1], place, 1) == 1;
	CHECK(can || errno == EFAULT);
	close(pipes[0]);
	close(pipes[1]);
	return can;
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

struct seen {
	size_t size, guard;
	int detached, inside;
	char name[16];
};

static void *look(void *argument)
{
	struct seen *seen = argument;
	pthread_attr_t attributes;
	void *lowest;
	CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
	CHECK(pthread_attr_getstack(&attributes, &lowest, &seen->size) == 0);
	pthread_attr_getguardsize(&attributes, &seen->guard);
	pthread_attr_getdetachstate(&attributes, &seen->detached);
	pthread_attr_destroy(&attributes);
	seen->inside = (char *)seen->name != lowest && (char *)&attributes > (char *)lowest
		&& (char *)&attributes < (char *)lowest + seen->size;
	CHECK(can_read(lowest));
	for (size_t below = 1; below <= seen->guard; below += page_size())
		CHECK(!can_read((char *)lowest - below));
	CHECK(pthread_setname_np(pthread_self(), "shuttle") == 0);
	CHECK(pthread_getname_np(pthread_self(), seen->name, sizeof seen->name) == 0);
	CHECK(dive((int)((seen->size - 16384) / 4096 * 3 / 4)) == 0);
	return NULL;
}

static struct seen look_with(const pthread_attr_t *attributes)
{
	struct seen seen;
	pthread_t thread;
	CHECK(pthread_create(&thread, attributes, look, &seen) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(seen.inside && seen.detached == PTHREAD_CREATE_JOINABLE);
	CHECK(strcmp(seen.name, "shuttle") == 0);
	return seen;
}

void check_attributes(void)
{
	pthread_attr_t attributes;
	size_t size, large = 256 * page_size();
	pthread_attr_init(&attributes);
	pthread_attr_getstacksize(&attributes, &size);
	struct seen seen = look_with(NULL);
	CHECK(seen.size >= size && seen.guard == page_size());
	for (size = PTHREAD_STACK_MIN; size <= 32 << 20; size = size * 3 + page_size()) {
		CHECK(pthread_attr_setstacksize(&attributes, size) == 0);
		CHECK(look_with(&attributes).size >= size);
	}
	pthread_attr_setstacksize(&attributes, large);
	for (size_t guard = 0; guard <= large; guard = guard * 4 + page_size()) {
		CHECK(pthread_attr_setguardsize(&attributes, guard) == 0);
		seen = look_with(&attributes);
		CHECK(seen.guard == guard && seen.size >= large && seen.size < large + 65536 + 2 * page_size());
	}
	// What was a guard is a stack for the next.
	pthread_attr_setstacksize(&attributes, large - 16 * page_size());
	pthread_attr_setguardsize(&attributes, 17 * page_size());
	look_with(&attributes);
	pthread_attr_setstacksize(&attributes, large);
	pthread_attr_setguardsize(&attributes, page_size());
	look_with(&attributes);
	pthread_attr_destroy(&attributes);
}

// Identity.

static void *identify(void *argument)
{
	pid_t id = gettid();
	for (int i = 0; i < 10; i++) {
		CHECK(gettid() == id && syscall(SYS_gettid) == id);
		sched_yield();
	}
	CHECK(id != getpid());
	*(pid_t *)argument = id;
	return NULL;
}

void check_identity(void)
{
	enum { COUNT = 12 };
	pid_t ids[COUNT];
	for (int i = 0; i < COUNT; i++) {
		pthread_t thread; // one after another, in the same memory
		CHECK(pthread_create(&thread, NULL, identify, &ids[i]) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		for (int j = 0; j < i; j++)
			CHECK(ids[i] != ids[j]);
	}
}
