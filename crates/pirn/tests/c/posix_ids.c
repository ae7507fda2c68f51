// Ids of threads, and the functions that take them.
#include "posix_checks.h"
#include <dlfcn.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

// glibc's own names.
int __sched_getscheduler(pid_t id);
int __sched_setscheduler(pid_t id, int policy, const struct sched_param *param);
int __sched_getparam(pid_t id, struct sched_param *param);

enum { CROWD = 100 };

struct member {
	pthread_t thread;
	sem_t here, go;
	pid_t id, again;
};

static void *tell_id(void *argument)
{
	struct member *member = argument;
	member->id = gettid();
	CHECK(syscall(SYS_gettid) == member->id);
	sem_post(&member->here);
	sem_wait(&member->go);
	sched_yield();
	member->again = gettid();
	return NULL;
}

static void begin_member(struct member *member)
{
	CHECK(sem_init(&member->here, 0, 0) == 0 && sem_init(&member->go, 0, 0) == 0);
	member->thread = begin(tell_id, member);
	sem_wait(&member->here);
}

static void end_member(struct member *member)
{
	sem_post(&member->go);
	join(member->thread);
	CHECK(member->again == member->id);
}

static int by_value(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

// Ids differ, and lead to their threads until these have ended.
void check_ids(void)
{
	static struct member members[CROWD];
	pid_t ids[CROWD];
	for (int i = 0; i < CROWD; i++) {
		begin_member(&members[i]);
		ids[i] = members[i].id;
		CHECK(ids[i] > 0 && ids[i] < 1 << 30 && ids[i] != gettid() && ids[i] != getpid());
		CHECK(tgkill(getpid(), ids[i], 0) == 0);
		CHECK(syscall(SYS_tgkill, getpid(), ids[i], 0) == 0 && syscall(SYS_tkill, ids[i], 0) == 0);
	}
	qsort(ids, CROWD, sizeof ids[0], by_value);
	for (int i = 1; i < CROWD; i++)
		CHECK(ids[i] != ids[i - 1]);
	for (int i = 0; i < CROWD; i++)
		end_member(&members[i]);
	pid_t gone = members[0].id;
	cpu_set_t set;
	struct sched_param param;
	SAY_RESULT(tgkill(getpid(), gone, 0));
	SAY_RESULT(syscall(SYS_tkill, gone, 0));
	SAY_RESULT(sched_getaffinity(gone, sizeof set, &set));
	SAY_RESULT(sched_getscheduler(gone));
	SAY_RESULT(sched_getparam(gone, &param));
	SAY_RESULT(getpriority(PRIO_PROCESS, gone));
	SAY_RESULT(tgkill(getpid(), 0, 0));
	SAY_RESULT(tgkill(0, gettid(), 0));
	SAY_RESULT(tgkill(getpid(), -1, 0));
	CHECK(tgkill(getpid(), gettid(), 0) == 0);
}

static void *tell_only_id(void *argument)
{
	*(pid_t *)argument = gettid();
	return NULL;
}

// One after another: an id does not come back soon.
void check_ids_in_turn(void)
{
	enum { TURNS = 15 };
	pid_t ids[TURNS];
	for (int i = 0; i < TURNS; i++)
		join(begin(tell_only_id, &ids[i]));
	qsort(ids, TURNS, sizeof ids[0], by_value);
	for (int i = 1; i < TURNS; i++)
		CHECK(ids[i] != ids[i - 1]);
}

static int count(pid_t id)
{
	cpu_set_t set;
	CHECK(sched_getaffinity(id, sizeof set, &set) == 0);
	return CPU_COUNT(&set);
}

static void *count_own(void *argument)
{
	cpu_set_t set;
	CHECK(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0);
	CHECK(CPU_COUNT(&set) == count(gettid()) && CPU_COUNT(&set) == count(0));
	say("%s: bound to %s\n", (char *)argument, CPU_COUNT(&set) == 1 ? "one" : "all");
	return NULL;
}

// Affinity is each thread's own, by its id or its `pthread_t`, and inherited.
static void *bind_others(void *argument)
{
	struct member *members = argument;
	cpu_set_t all, one, none;
	CPU_ZERO(&none);
	CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
	int cpu = 0;
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	int many = CPU_COUNT(&all);
	CHECK(sched_setaffinity(members[0].id, sizeof one, &one) == 0);
	CHECK(pthread_setaffinity_np(members[1].thread, sizeof one, &one) == 0);
	CHECK(count(members[0].id) == 1 && count(members[1].id) == 1);
	CHECK(count(members[2].id) == many && count(0) == many);
	CHECK(syscall(SYS_sched_getaffinity, members[0].id, sizeof one, &one) >= 8);
	CHECK(CPU_COUNT(&one) == 1);
	SAY_RESULT(sched_setaffinity(members[2].id, sizeof none, &none));
	SAY_RESULT(pthread_setaffinity_np(members[2].thread, sizeof none, &none));
	SAY_RESULT(sched_getaffinity(0, 1, &none));
	CHECK(syscall(SYS_sched_setaffinity, 0, sizeof one, &one) == 0 && count(0) == 1);
	join(begin(count_own, "created by a bound one"));
	pthread_attr_t attributes;
	CHECK(pthread_getattr_np(members[0].thread, &attributes) == 0);
	CPU_ZERO(&one);
	CHECK(pthread_attr_getaffinity_np(&attributes, sizeof one, &one) == 0);
	CHECK(CPU_COUNT(&one) == 1 && pthread_attr_destroy(&attributes) == 0);
	CHECK(sched_setaffinity(members[1].id, sizeof all, &all) == 0);
	CHECK(count(members[1].id) == many);
	return NULL;
}

static void *set_priorities(void *argument)
{
	struct member *members = argument;
	pid_t other = members[0].id;
	int policy;
	struct sched_param param;
	if (geteuid() == 0) { // Others may not become less nice than the tests are.
		CHECK(setpriority(PRIO_PROCESS, other, 5) == 0 && setpriority(PRIO_PROCESS, 0, 7) == 0);
		SAY_RESULT(getpriority(PRIO_PROCESS, other) - 5);
		SAY_RESULT(getpriority(PRIO_PROCESS, gettid()));
		SAY_RESULT(getpriority(PRIO_PROCESS, members[1].id));
		SAY_RESULT(syscall(SYS_getpriority, PRIO_PROCESS, members[0].id));
		SAY_RESULT(nice(2));
		SAY_RESULT(getpriority(PRIO_PROCESS, 0));
	}
	pid_t third = members[1].id;
	CHECK(pthread_getschedparam(members[1].thread, &policy, &param) == 0);
	say("policy %d %d\n", policy, param.sched_priority);
	SAY_RESULT(pthread_setschedparam(members[1].thread, SCHED_BATCH, &param));
	SAY_RESULT(sched_getscheduler(third));
	SAY_RESULT(pthread_setschedprio(members[1].thread, 3));
	param.sched_priority = 3;
	SAY_RESULT(pthread_setschedparam(members[1].thread, SCHED_OTHER, &param));
	SAY_RESULT(sched_setparam(third, &param));
	SAY_RESULT(sched_setscheduler(third, 77, &param));
	param.sched_priority = 0;
	SAY_RESULT(sched_setscheduler(third, SCHED_IDLE, &param));
	CHECK(sched_getparam(third, &param) == 0 && param.sched_priority == 0);
	SAY_RESULT(sched_getscheduler(third));
	CHECK(__sched_setscheduler(third, SCHED_BATCH, &param) == 0);
	CHECK(__sched_getscheduler(third) == SCHED_BATCH && __sched_getparam(third, &param) == 0);
	struct timespec interval;
	CHECK(sched_rr_get_interval(members[0].id, &interval) == 0);
	pthread_attr_t attributes; // a priority that the ordinary policy does not have
	pthread_t thread;
	param.sched_priority = 1;
	CHECK(pthread_attr_init(&attributes) == 0);
	CHECK(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0);
	CHECK(pthread_attr_setschedpolicy(&attributes, SCHED_FIFO) == 0);
	CHECK(pthread_attr_setschedparam(&attributes, &param) == 0);
	CHECK(pthread_attr_setschedpolicy(&attributes, SCHED_OTHER) == 0);
	say("created: %d\n", pthread_create(&thread, &attributes, tell_only_id, &third));
	return NULL;
}

// All attributes at once, by number, as GLib asks for them.

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t niceness;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static struct attributes of(pid_t id)
{
	struct attributes found;
	CHECK(syscall(SYS_sched_getattr, id, &found, sizeof found, 0) == 0);
	return found;
}

static void *set_attributes(void *argument)
{
	struct member *members = argument;
	struct attributes wanted = of(getpid());
	uint32_t size = wanted.size;
	int own = wanted.niceness;
	int step = own <= 15; // Others may not become less nice than the tests are, and 19 is the most.
	int more = own + 3 * step;
	SAY_RESULT(syscall(SYS_sched_setattr, gettid(), &wanted, 0));
	wanted.policy = SCHED_BATCH;
	wanted.niceness = more;
	SAY_RESULT(syscall(SYS_sched_setattr, members[0].id, &wanted, 0));
	SAY_RESULT(sched_getscheduler(members[0].id));
	CHECK(of(members[0].id).niceness == more && of(members[1].id).niceness == own);
	say("policies %u %u %u\n", of(members[0].id).policy, of(members[1].id).policy, of(0).policy);
	wanted.flags = 0x10; // SCHED_FLAG_KEEP_PARAMS
	wanted.niceness = more + step;
	SAY_RESULT(syscall(SYS_sched_setattr, members[1].id, &wanted, 0));
	CHECK(of(members[1].id).niceness == own);
	say("keeps its parameters, policy %u\n", of(members[1].id).policy);
	wanted.flags = 0;
	wanted.size = 0; // the first size that there was
	SAY_RESULT(syscall(SYS_sched_setattr, 0, &wanted, 0));
	CHECK(of(gettid()).niceness == more + step);
	wanted.policy = 77;
	wanted.niceness = more + 2;
	SAY_RESULT(syscall(SYS_sched_setattr, 0, &wanted, 0));
	CHECK(of(0).niceness == more + step);
	SAY_RESULT(syscall(SYS_sched_setattr, 0, &wanted, 1));
	SAY_RESULT(syscall(SYS_sched_setattr, 0, NULL, 0));
	SAY_RESULT(syscall(SYS_sched_getattr, 0, &wanted, 8, 0));
	SAY_RESULT(syscall(SYS_sched_getattr, 0, NULL, size, 0));
	wanted.size = 8;
	SAY_RESULT(syscall(SYS_sched_setattr, 0, &wanted, 0));
	// glibc has sched_getattr() and sched_setattr() since 2.41. They are its own where the program was
	// linked with an older one.
	Dl_info where;
	void *here = dlsym(RTLD_DEFAULT, "sched_getattr");
	if (here && dladdr(here, &where) && strstr(where.dli_fname, "libc.so"))
		return NULL;
	long (*get)(pid_t, struct attributes *, unsigned, unsigned) = dlsym(RTLD_DEFAULT, "sched_getattr");
	long (*set)(pid_t, struct attributes *, unsigned) = dlsym(RTLD_DEFAULT, "sched_setattr");
	wanted = of(0);
	wanted.niceness += 1;
	CHECK(!set || (int)set(gettid(), &wanted, 0) == 0);
	CHECK(!get || ((int)get(0, &wanted, sizeof wanted, 0) == 0 && wanted.niceness == more + 2));
	return NULL;
}

static void with_three(void *(*start)(void *))
{
	static struct member members[3];
	for (int i = 0; i < 3; i++)
		begin_member(&members[i]);
	join(begin(start, members));
	for (int i = 0; i < 3; i++)
		end_member(&members[i]);
}

void check_affinity(void)
{
	with_three(bind_others);
	join(begin(count_own, "created by an unbound one"));
}

void check_priorities(void)
{
	with_three(set_priorities);
}

void check_attributes(void)
{
	with_three(set_attributes);
}
