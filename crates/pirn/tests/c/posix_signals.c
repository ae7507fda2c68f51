// Signals to threads, natively and with virtual threads.
#define _GNU_SOURCE
#include "posix_checks.h"
#include "processor.h"
#include "signal_checks.h"
#include <setjmp.h>
#include <ucontext.h>

// A thread that computes until a handler changes one of its registers.

static volatile int spins;
extern const char loop_begins[], loop_ends[];

__attribute__((noinline)) static long spin_until_changed(void)
{
	register long counts __asm__(KEPT_NAME) = 7;
	spins = 1;
	__asm__ volatile(".globl loop_begins, loop_ends\n"
			 LOOP_WHILE_7
			 : "+r"(counts)
			 :
			 : "cc");
	return counts;
}

static void change(int signal, siginfo_t *info, void *argument)
{
	(void)signal, (void)info;
	ucontext_t *context = argument;
	char local;
	const char *pc = (const char *)PC(context);
	intptr_t depth = SP(context) - (intptr_t)&local;
	// The next signal may find it where the first one has: it need not have run since.
	if (pc >= loop_begins && pc < loop_ends && KEPT(context) == 7) {
		say("in the loop, above the handler %d\n", depth > 0 && depth < 1 << 16);
		KEPT(context) = 42;
	}
}

static void *spin(void *unused)
{
	return (void *)(spin_until_changed() + (intptr_t)unused);
}

void check_registers(void)
{
	spins = 0;
	install(SIGUSR1, change, 0);
	pthread_t thread = begin(spin, NULL);
	while (!spins)
		sched_yield();
	// The first may find it one instruction before the loop.
	while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
		usleep(20000);
		CHECK(pthread_kill(thread, SIGUSR1) == 0);
	}
	say("over\n");
}

// Alternative stacks: each thread has its own, for faults and for signals that are sent to it.

enum { THREADS = 8, STACK = 64 << 10 };
static __thread char *own_stack;
static __thread volatile int on_own, nested;
static __thread sigjmp_buf out;

static int is_on(const char *stack)
{
	char local;
	return &local > stack && &local < stack + STACK;
}

static int says_on_stack(void)
{
	stack_t now;
	CHECK(sigaltstack(NULL, &now) == 0);
	return now.ss_flags == SS_ONSTACK && now.ss_sp == own_stack;
}

static void note_stack(int signal, siginfo_t *info, void *context)
{
	(void)info, (void)context;
	on_own += is_on(own_stack) && says_on_stack();
	stack_t other = { .ss_sp = own_stack, .ss_size = STACK };
	if (is_on(own_stack))
		CHECK(sigaltstack(&other, NULL) == -1 && errno == EPERM);
	if (signal == SIGUSR1 && !nested) {
		nested = 1;
		usleep(100);
		CHECK(pthread_kill(pthread_self(), SIGUSR2) == 0);
		on_own += is_on(own_stack);
	}
	if (signal == SIGSEGV) {
		CHECK(pthread_kill(pthread_self(), SIGUSR2) == 0);
		siglongjmp(out, 1);
	}
	if (signal == SIGILL)
		PC((ucontext_t *)context) += UNDEFINED_SIZE;
}

static void *with_own_stack(void *unused)
{
	own_stack = malloc(STACK);
	stack_t own = { .ss_sp = own_stack, .ss_size = STACK }, before;
	CHECK(sigaltstack(&own, NULL) == 0);
	for (int i = 0; i < 50; i++) {
		on_own = nested = 0;
		CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
		CHECK(on_own == 3);
		sched_yield();
		if (!sigsetjmp(out, 1))
			*(volatile char *)8 = 1;
		CHECK(!is_on(own_stack) && !says_on_stack());
		sched_yield();
		__asm__ volatile(UNDEFINED);
		CHECK(on_own == 6);
	}
	CHECK(sigaltstack(NULL, &before) == 0 && before.ss_sp == own_stack);
	CHECK(before.ss_flags == 0 && before.ss_size == STACK);
	stack_t none = { .ss_flags = SS_DISABLE };
	CHECK(sigaltstack(&none, NULL) == 0);
	CHECK(sigaltstack(NULL, &before) == 0 && before.ss_flags == SS_DISABLE);
	on_own = 0, nested = 1;
	memset(own_stack, 0x5a, STACK);
	__asm__ volatile(UNDEFINED);
	CHECK(on_own == 0);
	free(own_stack);
	return unused;
}

void check_own_stacks(void)
{
	int signals[] = { SIGUSR1, SIGUSR2, SIGSEGV, SIGILL };
	for (int i = 0; i < 4; i++)
		install(signals[i], note_stack, SA_ONSTACK);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		threads[i] = begin(with_own_stack, NULL);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	stack_t tiny = { .ss_sp = threads, .ss_size = 64 }, wrong = { .ss_flags = 77 };
	SAY_RESULT(sigaltstack(&tiny, NULL));
	SAY_RESULT(sigaltstack(&wrong, NULL));
}

// A thread begins with the mask of its attributes, or else with its creator's.

static void *say_mask(void *what)
{
	sigset_t mask;
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
	say("%s: USR1 %d, USR2 %d\n", (char *)what, sigismember(&mask, SIGUSR1), sigismember(&mask, SIGUSR2));
	return NULL;
}

static void begin_with(const pthread_attr_t *attributes, char *what)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, attributes, say_mask, what) == 0);
	join(thread);
}

void check_first_mask(void)
{
	pthread_attr_t attributes, original;
	sigset_t one, other, before;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	sigemptyset(&other);
	sigaddset(&other, SIGUSR2);
	CHECK(pthread_getattr_default_np(&original) == 0 && pthread_attr_init(&attributes) == 0);
	CHECK(pthread_sigmask(SIG_SETMASK, &one, &before) == 0);
	begin_with(NULL, "its creator's");
	begin_with(&attributes, "its creator's");
	CHECK(pthread_attr_setsigmask_np(&attributes, &other) == 0);
	begin_with(&attributes, "its own");
	CHECK(pthread_setattr_default_np(&attributes) == 0);
	begin_with(NULL, "the default");
	CHECK(pthread_attr_setsigmask_np(&attributes, NULL) == 0);
	begin_with(&attributes, "its creator's");
	CHECK(pthread_setattr_default_np(&original) == 0);
	begin_with(NULL, "its creator's");
	CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

// What only the sender does not block is delivered before `kill` returns.

static volatile int caught;

static void catch(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	caught++;
}

static void *kill_oneself(void *argument)
{
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
	for (int i = 0; i < 100; i++) {
		CHECK(kill(getpid(), SIGUSR1) == 0);
		CHECK(caught == i + 1);
	}
	return argument;
}

static void *wait_to_end(void *go)
{
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
	sem_post(go);
	while (sem_wait((sem_t *)go + 1) != 0)
		CHECK(errno == EINTR);
	return NULL;
}

// What is sent before a thread is told to end is not lost with it.
static void kill_another(void)
{
	sem_t both[2];
	for (int i = 1; i <= 30; i++) {
		sem_init(&both[0], 0, 0);
		sem_init(&both[1], 0, 0);
		caught = 0;
		pthread_t thread = begin(wait_to_end, both);
		sem_wait(&both[0]);
		CHECK(kill(getpid(), SIGUSR1) == 0);
		sem_post(&both[1]);
		join(thread);
		CHECK(caught == 1);
	}
}

void check_kill(void)
{
	pid_t child = fork(); // in which there are no other threads
	CHECK(child >= 0);
	if (child == 0) {
		sigset_t all;
		sigfillset(&all);
		install(SIGUSR1, catch, 0);
		CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
		join(begin(kill_oneself, NULL));
		kill_another();
		_exit(5);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	say("status %x\n", status);
}
