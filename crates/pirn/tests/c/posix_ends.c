// The ends of threads, of the first thread, and of the process.
#include "posix_checks.h"
#include <sys/prctl.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

static pthread_key_t first, second;
static int calls;

static void exit_again(void *value)
{
	calls++;
	if (value == &first)
		pthread_exit("from the destructor");
}

static void count_call(void *value)
{
	calls += 10;
	(void)value;
}

static void *set_both(void *argument)
{
	CHECK(pthread_setspecific(first, &first) == 0);
	CHECK(pthread_setspecific(second, &second) == 0);
	if (argument)
		pthread_exit(argument);
	return "returned";
}

// A destructor that calls `pthread_exit`: the result is the new one.
void check_exit_in_destructor(void)
{
	CHECK(pthread_key_create(&first, exit_again) == 0);
	CHECK(pthread_key_create(&second, count_call) == 0);
	for (int i = 0; i < 2; i++) {
		calls = 0;
		char *result = join(begin(set_both, i ? "exited" : NULL));
		say("exit in destructor: %s, %d\n", result, calls % 10); // the others are not promised
	}
	CHECK(pthread_key_delete(first) == 0 && pthread_key_delete(second) == 0);
}

static void set_anew(void *value)
{
	calls++;
	CHECK(pthread_setspecific(first, value) == 0);
}

static void *set_first(void *argument)
{
	CHECK(pthread_setspecific(first, argument) == 0);
	return NULL;
}

// A destructor that sets its value anew is not called for ever.
void check_rounds(void)
{
	CHECK(pthread_key_create(&first, set_anew) == 0);
	calls = 0;
	join(begin(set_first, "value"));
	say("rounds: %d\n", calls);
	CHECK(pthread_key_delete(first) == 0);
}

static void *post(void *argument)
{
	sem_post(argument);
	return argument;
}

// A thread exists until it has been joined.
void check_ended(void)
{
	sem_t ending;
	sem_init(&ending, 0, 0);
	pthread_t thread = begin(post, &ending);
	sem_wait(&ending);
	for (int i = 0; i < 1000; i++) {
		CHECK(pthread_kill(thread, 0) == 0);
		sched_yield();
	}
	CHECK(join(thread) == &ending);
}

// Names: of oneself, of others, inherited, too long.

struct named {
	sem_t here, go;
	char own[16];
};

static void *be_named(void *argument)
{
	struct named *named = argument;
	sem_post(&named->here);
	sem_wait(&named->go);
	CHECK(prctl(PR_GET_NAME, named->own) == 0);
	CHECK(pthread_setname_np(pthread_self(), "myself") == 0);
	sem_post(&named->here);
	sem_wait(&named->go);
	return NULL;
}

static void name_one(const char *what)
{
	struct named named;
	char seen[16];
	sem_init(&named.here, 0, 0);
	sem_init(&named.go, 0, 0);
	pthread_t thread = begin(be_named, &named);
	sem_wait(&named.here);
	CHECK(pthread_getname_np(thread, seen, sizeof seen) == 0);
	say("%s: begins as %s\n", what, seen);
	say("too long: %d\n", pthread_setname_np(thread, "0123456789abcdef"));
	say("no room: %d\n", pthread_getname_np(thread, seen, 15));
	CHECK(pthread_setname_np(thread, "by another") == 0);
	sem_post(&named.go);
	sem_wait(&named.here);
	CHECK(pthread_getname_np(thread, seen, sizeof seen) == 0);
	say("%s: was %s, is %s\n", what, named.own, seen);
	sem_post(&named.go);
	join(thread);
}

void check_names(void)
{
	CHECK(pthread_setname_np(pthread_self(), "creator") == 0);
	name_one("by pthread_setname_np");
	CHECK(prctl(PR_SET_NAME, "the other creator") == 0);
	name_one("by prctl");
}

// What threads without attributes get.

static void *measure(void *argument)
{
	pthread_attr_t own;
	size_t stack, guard;
	CHECK(pthread_getattr_np(pthread_self(), &own) == 0);
	CHECK(pthread_attr_getstacksize(&own, &stack) == 0);
	CHECK(pthread_attr_getguardsize(&own, &guard) == 0);
	CHECK(pthread_attr_destroy(&own) == 0);
	say("stack %s, guard %zu\n", stack >= *(size_t *)argument ? "large enough" : "too small", guard);
	return NULL;
}

void check_default_attributes(void)
{
	pthread_attr_t original, changed;
	CHECK(pthread_getattr_default_np(&original) == 0);
	size_t size;
	CHECK(pthread_attr_getstacksize(&original, &size) == 0);
	join(begin(measure, &size));
	size = 3 << 20;
	CHECK(pthread_attr_init(&changed) == 0);
	CHECK(pthread_attr_setstacksize(&changed, size) == 0);
	CHECK(pthread_attr_setguardsize(&changed, 20480) == 0);
	CHECK(pthread_setattr_default_np(&changed) == 0);
	for (int i = 0; i < 3; i++)
		join(begin(measure, &size));
	CHECK(pthread_setattr_default_np(&original) == 0);
	CHECK(pthread_attr_getstacksize(&original, &size) == 0);
	join(begin(measure, &size));
}

static void exit_by_signal(int signal)
{
	(void)signal;
	pthread_exit("from the handler");
}

static void *fault(void *argument)
{
	*(volatile int *)argument = 1;
	return "no fault";
}

// A handler of a fault ends its thread. The next thread there has its own mask, with which a fault
// is not blocked.
void check_exit_in_handler(void)
{
	struct sigaction action = { .sa_handler = exit_by_signal }, before;
	CHECK(sigaction(SIGSEGV, &action, &before) == 0);
	for (int i = 0; i < 20; i++) {
		char *result = join(begin(fault, NULL));
		say("exit in handler: %s\n", result);
	}
	CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
}

// `main` leaves.

static int tell;

static void at_exit(void)
{
	CHECK(write(tell, "a", 1) == 1);
}

static void *last(void *argument)
{
	struct timespec moment = { 0, 20000000 };
	nanosleep(&moment, NULL); // `main` has probably left by then; either way is correct
	CHECK(write(tell, "t", 1) == 1);
	if (argument)
		exit(*(int *)argument);
	return NULL;
}

static void *end_main(void *argument)
{
	CHECK(pthread_cancel(*(pthread_t *)argument) == 0);
	return NULL;
}

static void leave(void)
{
	pthread_exit("main has left");
}

static void wait_for_cancel(void)
{
	for (;;)
		sleep(100);
}

// Calls a function on a stack of its own: Rust's frames cannot be unwound.
static void leave_by(void (*function)(void))
{
	static char stack[1 << 16];
	ucontext_t context;
	CHECK(getcontext(&context) == 0);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = sizeof stack;
	context.uc_link = NULL;
	makecontext(&context, function, 0);
	setcontext(&context);
}

static void *join_main(void *argument)
{
	const char *result = join(*(pthread_t *)argument);
	CHECK(write(tell, strcmp(result, "main has left") == 0 ? "t" : "x", 1) == 1);
	return NULL;
}

enum { JOINED = 16 };

static void begin_others(int with)
{
	static pthread_t self;
	static int status = 7;
	pthread_attr_t bound;
	cpu_set_t set;
	pthread_attr_init(&bound);
	CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
	CHECK(pthread_attr_setaffinity_np(&bound, sizeof set, &set) == 0);
	pthread_t thread;
	if (with & 1)
		begin(last, NULL);
	if (with & 2)
		CHECK(pthread_create(&thread, &bound, last, NULL) == 0);
	if (with & 4)
		begin(last, &status);
	self = pthread_self();
	if (with & 8)
		begin(end_main, &self);
	if (with & JOINED)
		begin(join_main, &self);
	leave_by(with & 8 ? wait_for_cancel : leave);
}

static void leave_main(int with)
{
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(pipes[0]);
		tell = pipes[1];
		CHECK(atexit(at_exit) == 0);
		begin_others(with);
	}
	close(pipes[1]);
	char byte;
	int status, threads = 0, exits = 0;
	while (read(pipes[0], &byte, 1) == 1)
		*(byte == 't' ? &threads : &exits) += 1;
	CHECK(waitpid(child, &status, 0) == child && close(pipes[0]) == 0);
	say("main %d: status %x, threads %d, exits %d\n", with, status, threads, exits);
}

void check_main(void)
{
	for (int with = 0; with <= 4; with++) // beyond: whether the others write before the exit is not known
		leave_main(with);
}

void check_joined_main(void)
{
	leave_main(JOINED);
}
