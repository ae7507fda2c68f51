// Checks of `pthread_create` and C11's `thrd_create` where they make virtual threads, as a library:
// the functions that begin with `check_` are called by `pthread_create.rs`.
#include "pthread_checks.h"

enum { MANY = 10000 };

// Set by who loads the library.
size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room);

static int os_threads(void)
{
	int count = 0;
	DIR *folder = opendir("/proc/self/task");
	CHECK(folder);
	for (struct dirent *entry; (entry = readdir(folder));)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

static struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec time;
	clock_gettime(clock, &time);
	time.tv_nsec += ms * 1000000;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

// Results: ten thousand threads, all alive at a time.

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int waiting, may_go;

static void *wait_and_add(void *argument)
{
	pthread_mutex_lock(&lock);
	waiting++;
	pthread_cond_broadcast(&changed);
	while (!may_go)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return (char *)argument + 1;
}

void check_many(void)
{
	static pthread_t threads[MANY];
	waiting = may_go = 0;
	for (intptr_t i = 0; i < MANY; i++)
		CHECK(pthread_create(&threads[i], NULL, wait_and_add, (void *)i) == 0);
	pthread_mutex_lock(&lock);
	while (waiting < MANY)
		pthread_cond_wait(&changed, &lock);
	CHECK(os_threads() < 200);
	may_go = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (intptr_t i = 0; i < MANY; i++) {
		void *result = NULL;
		CHECK(pthread_join(threads[i], &result) == 0);
		CHECK((intptr_t)result == i + 1);
	}
}

// One after another: what a thread had is given back.

static void *give_back(void *argument)
{
	return argument;
}

void check_reuse(void)
{
	enum { KEPT = 256 };
	static pthread_t seen[KEPT];
	int distinct = 0;
	for (int i = 0; i < MANY; i++) {
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, give_back, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		int at = 0;
		while (at < distinct && !pthread_equal(seen[at], thread))
			at++;
		if (at == distinct)
			seen[distinct++] = thread;
		CHECK(distinct < KEPT);
	}
}

// Detached threads, in three ways.

static sem_t done;
static atomic_int ended;

static void *count_end(void *argument)
{
	if (argument)
		CHECK(pthread_detach(pthread_self()) == 0);
	if (atomic_fetch_add(&ended, 1) + 1 == 3000)
		sem_post(&done);
	return NULL;
}

void check_detached(void)
{
	sem_init(&done, 0, 0);
	ended = 0;
	pthread_attr_t detached;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < 1000; i++) {
		pthread_t thread;
		CHECK(pthread_create(&thread, &detached, count_end, NULL) == 0);
		CHECK(pthread_create(&thread, NULL, count_end, NULL) == 0);
		CHECK(pthread_detach(thread) == 0);
		CHECK(pthread_create(&thread, NULL, count_end, "itself") == 0);
	}
	sem_wait(&done);
	CHECK(ended == 3000);
	pthread_attr_destroy(&detached);
}

// Exit through handlers.

static char order[16];

static void note(void *letter)
{
	strcat(order, letter);
}

static void note_variable(int *variable)
{
	note(*variable == 7 ? "v" : "?");
}

static void leave(void)
{
	__attribute__((cleanup(note_variable))) int variable = 7;
	pthread_exit((void *)42);
}

static void leave_deeply(void)
{
	__attribute__((cleanup(note_variable))) int variable = 7;
	leave();
}

static void *exit_through_handlers(void *argument)
{
	(void)argument;
	pthread_cleanup_push(note, "a");
	pthread_cleanup_push(note, "b");
	pthread_cleanup_push(note, "c");
	pthread_cleanup_pop(1);
	leave_deeply();
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

void check_exit(void)
{
	order[0] = 0;
	pthread_t thread;
	void *result = NULL;
	CHECK(pthread_create(&thread, NULL, exit_through_handlers, NULL) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(result == (void *)42);
	CHECK(strcmp(order, "cvvba") == 0);
}

// Joining.

static void *await_go(void *argument)
{
	sem_wait(argument);
	return (void *)5;
}

static void *join_other(void *argument)
{
	return (void *)(intptr_t)pthread_join(*(pthread_t *)argument, NULL);
}

static void *join_itself(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)pthread_join(pthread_self(), NULL);
}

static pthread_t maker;

static void *join_maker(void *argument)
{
	struct timespec past = { 1, 0 };
	int error;
	(void)argument;
	do
		error = pthread_timedjoin_np(maker, NULL, &past);
	while (error == ETIMEDOUT); // until it joins us
	return (void *)(intptr_t)error;
}

static void check_deadlocks(void)
{
	pthread_t thread;
	void *result = NULL;
	CHECK(pthread_create(&thread, NULL, join_itself, NULL) == 0);
	CHECK(pthread_join(thread, &result) == 0 && (intptr_t)result == EDEADLK);
	maker = pthread_self();
	CHECK(pthread_create(&thread, NULL, join_maker, NULL) == 0);
	int error;
	do
		error = pthread_join(thread, &result);
	while (error == EDEADLK); // while it tries to join us
	CHECK(error == 0 && (intptr_t)result == EDEADLK);
}

void check_join(void)
{
	sem_t go;
	sem_init(&go, 0, 0);
	pthread_t thread;
	void *result = NULL;
	CHECK(pthread_create(&thread, NULL, await_go, &go) == 0);
	CHECK(pthread_tryjoin_np(thread, &result) == EBUSY);
	struct timespec soon = in_ms(CLOCK_REALTIME, 2);
	CHECK(pthread_timedjoin_np(thread, &result, &soon) == ETIMEDOUT);
	soon = in_ms(CLOCK_MONOTONIC, 2);
	CHECK(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
	struct timespec invalid = { 0, 1000000000 };
	CHECK(pthread_timedjoin_np(thread, &result, &invalid) == EINVAL);

	// Of two joiners the second is refused. Which of them that is, they tell.
	pthread_t joiners[2];
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&joiners[i], NULL, join_other, &thread) == 0);
	int refused = -1;
	while (refused < 0)
		for (int i = 0; i < 2 && refused < 0; i++)
			if (pthread_tryjoin_np(joiners[i], &result) == 0)
				refused = i;
	CHECK((intptr_t)result == EINVAL);
	CHECK(pthread_detach(thread) == 0); // as in glibc: a thread joins it, so nothing happens
	sem_post(&go);
	CHECK(pthread_join(joiners[!refused], &result) == 0 && result == NULL);

	// Ended before it is joined.
	CHECK(pthread_create(&thread, NULL, await_go, &go) == 0);
	sem_post(&go);
	while (pthread_tryjoin_np(thread, &result) == EBUSY)
		sched_yield();
	CHECK(result == (void *)5);
	CHECK(pthread_create(&thread, NULL, await_go, &go) == 0);
	sem_post(&go);
	struct timespec late = in_ms(CLOCK_REALTIME, 60000);
	CHECK(pthread_timedjoin_np(thread, &result, &late) == 0 && result == (void *)5);

	// Detached.
	CHECK(pthread_create(&thread, NULL, await_go, &go) == 0);
	CHECK(pthread_detach(thread) == 0);
	CHECK(pthread_join(thread, NULL) == EINVAL);
	CHECK(pthread_detach(thread) == EINVAL);
	CHECK(pthread_tryjoin_np(thread, NULL) == EBUSY);
	sem_post(&go);
	check_deadlocks();
}

// Thread-local data.

static _Thread_local int initialised = 3, zero;
static pthread_key_t keys[2];
static atomic_int destroyed;

static void destroy(void *value)
{
	CHECK((intptr_t)value == 10 || (intptr_t)value == 11);
	if (atomic_fetch_add(&destroyed, 1) % 4 == 0)
		CHECK(pthread_setspecific(keys[0], (void *)11) == 0); // another round
}

static void *use_data(void *argument)
{
	CHECK(initialised == 3 && zero == 0);
	initialised = 4;
	zero = 1;
	CHECK(pthread_getspecific(keys[0]) == NULL);
	CHECK(pthread_setspecific(keys[0], (void *)10) == 0);
	CHECK(pthread_setspecific(keys[1], (void *)10) == 0);
	for (int i = 0; i < 3; i++) {
		sched_yield();
		CHECK(initialised == 4 && zero == 1 && pthread_getspecific(keys[1]) == (void *)10);
		errno = 100 + i;
		sched_yield();
		CHECK(errno == 100 + i);
	}
	if (argument)
		pthread_exit(NULL);
	return NULL;
}

void check_data(void)
{
	pthread_key_create(&keys[0], destroy);
	pthread_key_create(&keys[1], destroy);
	for (int i = 0; i < 100; i++) {
		destroyed = 0;
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, use_data, i % 2 ? "exit" : NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(destroyed == 3); // before the join returns
	}
	pthread_key_delete(keys[0]);
	pthread_key_delete(keys[1]);
}

// C11.

static int return_int(void *argument)
{
	CHECK(thrd_equal(thrd_current(), thrd_current()));
	return *(int *)argument;
}

static int exit_int(void *argument)
{
	thrd_exit(*(int *)argument);
}

void check_c11(void)
{
	uint64_t before, after;
	CHECK(pirn_count_pthreads(&before, 1) >= 1);
	int numbers[] = { INT_MIN, -1, 0, 1, INT_MAX };
	for (int i = 0; i < 5; i++) {
		thrd_t thread;
		int result = 77;
		CHECK(thrd_create(&thread, return_int, &numbers[i]) == thrd_success);
		CHECK(thrd_join(thread, &result) == thrd_success && result == numbers[i]);
		CHECK(thrd_create(&thread, exit_int, &numbers[i]) == thrd_success);
		CHECK(thrd_join(thread, &result) == thrd_success && result == numbers[i]);
		CHECK(thrd_create(&thread, return_int, &numbers[i]) == thrd_success);
		CHECK(thrd_detach(thread) == thrd_success);
	}
	pirn_count_pthreads(&after, 1);
	CHECK(after == before + 15);
	struct timespec moment = { 0, 50000000 };
	thrd_sleep(&moment, NULL); // `numbers` is used by the detached ones
}

// No memory.

void check_shortage(void)
{
	struct rlimit limit = { 6ul << 30, RLIM_INFINITY };
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	pthread_attr_t large;
	pthread_attr_init(&large);
	CHECK(pthread_attr_setstacksize(&large, 512 << 20) == 0);
	sem_t go;
	sem_init(&go, 0, 0);
	pthread_t threads[64];
	int made = 0, error = 0;
	while (made < 64 && !(error = pthread_create(&threads[made], &large, await_go, &go)))
		made++;
	CHECK(error == EAGAIN && made > 0);
	for (int i = 0; i < made; i++)
		sem_post(&go);
	for (int i = 0; i < made; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(pthread_create(&threads[0], &large, await_go, &go) == 0);
	sem_post(&go);
	CHECK(pthread_join(threads[0], NULL) == 0);
	pthread_attr_destroy(&large);
}

// The first thread leaves.

static int tell;

static void *outlive(void *argument)
{
	struct timespec moment = { 0, 20000000 };
	nanosleep(&moment, NULL);
	CHECK(write(tell, argument, 1) == 1);
	return NULL;
}

static void leave_first(void)
{
	pthread_exit(NULL);
}

void check_main_exits(void)
{
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	pid_t child = fork(); // in which this is the first thread
	CHECK(child >= 0);
	if (child == 0) {
		close(pipes[0]);
		tell = pipes[1];
		pthread_attr_t bound;
		cpu_set_t set;
		pthread_attr_init(&bound);
		CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
		CHECK(pthread_attr_setaffinity_np(&bound, sizeof set, &set) == 0);
		pthread_t thread;
		for (int i = 0; i < 20; i++)
			CHECK(pthread_create(&thread, i % 10 ? NULL : &bound, outlive, "x") == 0);
		// On a stack of its own: Rust's frames, on this one, cannot be unwound.
		static char stack[1 << 16];
		ucontext_t context;
		CHECK(getcontext(&context) == 0);
		context.uc_stack.ss_sp = stack;
		context.uc_stack.ss_size = sizeof stack;
		context.uc_link = NULL;
		makecontext(&context, leave_first, 0);
		setcontext(&context);
	}
	close(pipes[1]);
	char byte;
	int bytes = 0, status;
	while (read(pipes[0], &byte, 1) == 1)
		bytes++;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(bytes == 20);
}
