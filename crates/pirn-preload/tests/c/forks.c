/* Children of forks: threads in them are as in any process. Makes the check with the number that it
 * is given, on its first thread and then on another one: `forks natively|virtually NUMBER`. */
#include "../../../pirn/tests/c/pthread_checks.h"
#include "limit.h"
#include <signal.h>

/* Not buffered: children must not write it again. */
#define say(...) dprintf(1, __VA_ARGS__)

static int natively;

static pthread_t begin(void *(*start)(void *), void *argument)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, start, argument) == 0);
	return thread;
}

static void *join(pthread_t thread)
{
	void *result;
	CHECK(pthread_join(thread, &result) == 0);
	return result;
}

enum { MANY = 40 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static int arrived, destroyed, pipes[2];

/* Returns whether the running thread is of the kind that it is to be: ids of virtual threads are
 * above all of the kernel's. */
static int is_as_asked(void)
{
	return (gettid() >= 1 << 22) == !natively;
}

static void destroy(void *value)
{
	CHECK(value == &key);
	CHECK(pthread_mutex_lock(&mutex) == 0);
	destroyed++;
	CHECK(pthread_mutex_unlock(&mutex) == 0);
}

/* Waits for all others, then for a byte. */
static void *meet(void *argument)
{
	char byte;
	CHECK(is_as_asked());
	CHECK(pthread_setspecific(key, &key) == 0);
	CHECK(pthread_mutex_lock(&mutex) == 0);
	arrived++;
	CHECK(pthread_cond_broadcast(&moved) == 0);
	while (arrived < MANY)
		CHECK(pthread_cond_wait(&moved, &mutex) == 0);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	usleep(100);
	CHECK(read(pipes[0], &byte, 1) == 1);
	return (char *)argument + 1;
}

/* Has threads wait for each other in each way. */
static void use_threads(void)
{
	pthread_t threads[MANY];
	char bytes[MANY] = {0};
	arrived = destroyed = 0;
	CHECK(pipe(pipes) == 0);
	for (int i = 0; i < MANY; i++)
		threads[i] = begin(meet, &bytes[i]);
	CHECK(pthread_mutex_lock(&mutex) == 0);
	while (arrived < MANY)
		CHECK(pthread_cond_wait(&moved, &mutex) == 0);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	CHECK(write(pipes[1], bytes, MANY) == MANY);
	for (int i = 0; i < MANY; i++)
		CHECK(join(threads[i]) == &bytes[i] + 1);
	CHECK(destroyed == MANY && close(pipes[0]) == 0 && close(pipes[1]) == 0);
}

static int wait_for(pid_t child)
{
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static pid_t fork_watched(void)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		limit_child();
	return child;
}

static void *sleep_long(void *none)
{
	for (;;)
		sleep(100);
	return none;
}

static void *hold_and_wait(void *held)
{
	CHECK(pthread_mutex_lock(held) == 0);
	return sleep_long(NULL);
}

/* The child, its child, and the parent go on with threads, while others wait in the first one. */
static void check_generations(void)
{
	static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
	CHECK(pthread_key_create(&key, destroy) == 0);
	for (int i = 0; i < 10; i++)
		begin(i % 2 ? sleep_long : hold_and_wait, &held);
	use_threads();
	pid_t child = fork_watched();
	if (child == 0) {
		use_threads();
		pid_t grandchild = fork_watched();
		if (grandchild == 0) {
			use_threads();
			_exit(3);
		}
		use_threads();
		_exit(WEXITSTATUS(wait_for(grandchild)) + 1);
	}
	use_threads();
	say("generations: %x\n", wait_for(child));
}

static void *fork_in_thread(void *none)
{
	pid_t child = fork_watched();
	if (child == 0) {
		use_threads();
		_exit(5);
	}
	say("in a thread: %x\n", wait_for(child));
	return none;
}

/* Each thread of a child forks: several runtimes come from one. */
static void *fork_from_child(void *none)
{
	CHECK(is_as_asked());
	return fork_in_thread(none);
}

static void check_threads_fork(void)
{
	CHECK(pthread_key_create(&key, destroy) == 0);
	join(begin(fork_in_thread, NULL));
	pid_t child = fork_watched();
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			join(begin(fork_from_child, NULL));
		_exit(6);
	}
	say("its threads: %x\n", wait_for(child));
}

static _Atomic int stop;

static void *nothing(void *argument)
{
	return argument;
}

/* Begins and ends threads, allocates, waits and writes: a fork finds it anywhere. */
static void *churn(void *descriptors)
{
	int *pair = descriptors;
	while (!stop) {
		char byte = 0;
		join(begin(nothing, NULL));
		free(malloc(1000));
		CHECK(write(pair[1], &byte, 1) == 1);
		CHECK(read(pair[0], &byte, 1) == 1);
		sched_yield();
	}
	return NULL;
}

static void check_busy_parent(void)
{
	enum { CHURNERS = 6, FORKS = 12 };
	pthread_t churners[CHURNERS];
	int pairs[CHURNERS][2], good = 0;
	stop = 0;
	CHECK(pthread_key_create(&key, destroy) == 0);
	for (int i = 0; i < CHURNERS; i++) {
		CHECK(pipe(pairs[i]) == 0);
		churners[i] = begin(churn, pairs[i]);
	}
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork_watched();
		if (child == 0) {
			use_threads();
			_exit(7);
		}
		good += wait_for(child) == 7 << 8;
	}
	stop = 1;
	for (int i = 0; i < CHURNERS; i++)
		join(churners[i]);
	say("of a busy parent: %d\n", good);
}

static int tell;
static _Atomic int signalled;

static void on_signal(int signal)
{
	signalled = signal;
}

static void *await_signal(void *none)
{
	sigset_t set;
	int got;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(sigwait(&set, &got) == 0 && got == SIGUSR2);
	return none;
}

/* The thread that forked is one of libc's in the child, and others know it. */
static void *check_identity(void *none)
{
	pid_t child = fork_watched();
	if (child != 0) {
		say("identity: %x\n", wait_for(child));
		return none;
	}
	pthread_attr_t attributes;
	void *lowest;
	size_t size;
	CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	pthread_t other = begin(await_signal, NULL);
	CHECK(gettid() == getpid());
	CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0 && signalled == SIGUSR1);
	CHECK(pthread_kill(other, SIGUSR2) == 0 && join(other) == NULL);
	CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
	CHECK(pthread_attr_getstack(&attributes, &lowest, &size) == 0);
	CHECK((char *)&set > (char *)lowest && (char *)&set < (char *)lowest + size);
	CHECK(pthread_setname_np(pthread_self(), "forked") == 0);
	_exit(8);
}

static void check_the_one_that_forked(void)
{
	begin(nothing, NULL);
	join(begin(check_identity, NULL));
	check_identity(NULL);
}

static void *outlive(void *descriptor)
{
	usleep(50000);
	CHECK(write(*(int *)descriptor, "x", 1) == 1);
	return NULL;
}

static void *fork_and_end(void *exits)
{
	static int ends[2];
	CHECK(pipe(ends) == 0);
	pid_t child = fork_watched();
	if (child == 0) {
		tell = ends[1];
		begin(outlive, &tell);
		if (exits)
			pthread_exit(NULL);
		return NULL; /* as the first thread of its process, not its last */
	}
	char bytes[4];
	CHECK(close(ends[1]) == 0);
	int status = wait_for(child);
	say("ends: %x, %zd\n", status, read(ends[0], bytes, sizeof bytes));
	CHECK(close(ends[0]) == 0);
	return NULL;
}

static void check_ends_of_children(void)
{
	join(begin(fork_and_end, NULL));
	join(begin(fork_and_end, "exits"));
}

static int handled;

/* Is a thread of libc's already, and may make others. */
static void handle_in_child(void)
{
	limit_child();
	CHECK(gettid() == getpid());
	usleep(100);
	CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
	CHECK(join(begin(nothing, &handled)) == &handled);
	handled = 9;
}

static void *fork_handled(void *none)
{
	pid_t child = fork();
	if (child == 0)
		_exit(handled);
	say("handled: %x\n", wait_for(child));
	return none;
}

/* A handler that was registered before there were threads. */
static void check_handlers(void)
{
	static int registered;
	if (!registered++)
		CHECK(pthread_atfork(NULL, NULL, handle_in_child) == 0);
	fork_handled(NULL);
	join(begin(fork_handled, NULL));
}

static void *check(void *number)
{
	static void (*const checks[])(void) = {
		check_generations, check_threads_fork, check_busy_parent, check_the_one_that_forked,
		check_ends_of_children, check_handlers,
	};
	checks[*(int *)number]();
	return NULL;
}

int main(int count, char **arguments)
{
	int number = count == 3 ? atoi(arguments[2]) : 0;
	natively = count > 1 && arguments[1][0] == 'n';
	check(&number);
	join(begin(check, &number));
	return 0;
}
