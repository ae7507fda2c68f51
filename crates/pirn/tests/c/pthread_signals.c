// Checks of signals to threads that `pthread_create` has made virtual, as a library: the functions
// that begin with `check_` are called by `pthread_signals.rs`.
#include "signal_checks.h"
#include <poll.h>
#include <setjmp.h>
#include <spawn.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room);

static sigset_t set_of(int signal)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, signal);
	return set;
}

// What the handler has seen.
static atomic_int handled;
static _Atomic(pthread_t) handler_ran_on;
static atomic_int handler_value, handler_code;

static void note(int signal, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(signal == info->si_signo);
	handler_ran_on = pthread_self();
	handler_value = info->si_value.sival_int;
	handler_code = info->si_code;
	handled++;
}

static void await_handled(int count)
{
	while (handled < count)
		usleep(100);
	CHECK(handled == count);
}

static intptr_t join(pthread_t thread)
{
	void *result;
	CHECK(pthread_join(thread, &result) == 0);
	return (intptr_t)result;
}

// Sends a signal again and again until the thread has ended: it may not have begun its wait.
static intptr_t kill_until_it_ends(pthread_t thread)
{
	void *result;
	int error;
	while ((error = pthread_tryjoin_np(thread, &result)) == EBUSY) {
		CHECK(pthread_kill(thread, SIGUSR1) == 0);
		usleep(500);
	}
	CHECK(error == 0);
	return (intptr_t)result;
}

// Waits that fail.

static int ends[2];
static sem_t semaphore;

static void *read_byte(void *unused)
{
	(void)unused;
	char byte;
	ssize_t count = read(ends[0], &byte, 1);
	return (void *)(intptr_t)(count < 0 ? -errno : byte);
}

static void *sleep_long(void *unused)
{
	(void)unused;
	struct timespec time = { 1000, 0 }, left = { 0, 0 };
	CHECK(nanosleep(&time, &left) == -1);
	int error = errno;
	CHECK(left.tv_sec > 900 && left.tv_sec < 1000);
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR);
	CHECK(sleep(1000) > 900);
	return (void *)(intptr_t)-error;
}

static void *wait_for_semaphore(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)(sem_wait(&semaphore) < 0 ? -errno : 0);
}

static void *poll_pipe(void *unused)
{
	(void)unused;
	struct pollfd fd = { .fd = ends[0], .events = POLLIN };
	return (void *)(intptr_t)(poll(&fd, 1, -1) < 0 ? -errno : 0);
}

static void *wait_paused(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)(pause() < 0 ? -errno : 0);
}

void check_eintr(void)
{
	CHECK(pipe(ends) == 0 && sem_init(&semaphore, 0, 0) == 0);
	void *(*waits[])(void *) = { read_byte, sleep_long, wait_for_semaphore, poll_pipe, wait_paused };
	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		install(SIGUSR1, note, 0);
		pthread_t thread = start(waits[i], NULL);
		CHECK(kill_until_it_ends(thread) == -EINTR);
		CHECK(handled > 0 && handler_ran_on == thread && handler_code == SI_TKILL);
		handled = 0;
	}
	// These fail whatever SA_RESTART says.
	for (int i = 3; i < 5; i++) {
		install(SIGUSR1, note, SA_RESTART);
		CHECK(kill_until_it_ends(start(waits[i], NULL)) == -EINTR);
	}
}

// Waits that go on.

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int may_go;
static pthread_t joined;

static void *lock_it(void *unused)
{
	CHECK(pthread_mutex_lock(&lock) == 0 && pthread_mutex_unlock(&lock) == 0);
	return unused;
}

static void *wait_until_changed(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!may_go)
		CHECK(pthread_cond_wait(&changed, &lock) == 0);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *join_it(void *unused)
{
	CHECK(join(joined) == 7);
	return unused;
}

static void signal_ten_times(pthread_t thread)
{
	handled = 0;
	for (int i = 1; i <= 10; i++) {
		CHECK(pthread_kill(thread, SIGUSR1) == 0);
		await_handled(i);
		CHECK(handler_ran_on == thread);
	}
}

void check_restart(void)
{
	install(SIGUSR1, note, SA_RESTART);
	CHECK(pipe(ends) == 0 && sem_init(&semaphore, 0, 0) == 0);
	pthread_t reader = start(read_byte, NULL);
	signal_ten_times(reader);
	CHECK(write(ends[1], "x", 1) == 1);
	CHECK(join(reader) == 'x');

	pthread_t waiter = start(wait_for_semaphore, NULL);
	signal_ten_times(waiter);
	sem_post(&semaphore);
	CHECK(join(waiter) == 0);

	pthread_mutex_lock(&lock);
	pthread_t locker = start(lock_it, NULL);
	signal_ten_times(locker);
	pthread_mutex_unlock(&lock);
	join(locker);

	// Without SA_RESTART, too: POSIX has no EINTR for these.
	install(SIGUSR1, note, 0);
	may_go = 0;
	pthread_t condition = start(wait_until_changed, NULL);
	signal_ten_times(condition);
	pthread_mutex_lock(&lock);
	may_go = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	join(condition);

	joined = start(read_byte, NULL);
	install(SIGUSR1, note, SA_RESTART);
	pthread_t joiner = start(join_it, NULL);
	signal_ten_times(joiner);
	CHECK(write(ends[1], "\7", 1) == 1);
	join(joiner);
}

// Threads that compute.

static void *spin(void *stop)
{
	unsigned long count = 0;
	while (!*(volatile atomic_int *)stop)
		count++;
	return (void *)count;
}

void check_running(void)
{
	static atomic_int stop[4];
	pthread_t threads[4];
	install(SIGUSR1, note, 0);
	for (int i = 0; i < 4; i++) {
		stop[i] = 0;
		threads[i] = start(spin, &stop[i]);
	}
	for (int i = 0; i < 4; i++)
		signal_ten_times(threads[i]);
	for (int i = 0; i < 4; i++) {
		stop[i] = 1;
		join(threads[i]);
	}
}

// Masks.

static atomic_int stage;

static void await_stage(int awaited)
{
	while (stage < awaited)
		usleep(100);
}

static int blocks(int signal)
{
	sigset_t mask;
	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
	return sigismember(&mask, signal);
}

static int is_pending(int signal)
{
	sigset_t set;
	CHECK(sigpending(&set) == 0);
	return sigismember(&set, signal);
}

static void *inherits(void *unused)
{
	CHECK(blocks(SIGUSR1) && !blocks(SIGUSR2));
	return unused;
}

static void *blocks_and_unblocks(void *unused)
{
	CHECK(!blocks(SIGUSR1));
	sigset_t set = set_of(SIGUSR1), old;
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	join(start(inherits, NULL));
	stage = 1;
	await_stage(2); // parks: the mask comes along
	CHECK(blocks(SIGUSR1) && is_pending(SIGUSR1) && handled == 0);
	CHECK(sigprocmask(SIG_UNBLOCK, &set, &old) == 0);
	CHECK(handled == 1 && sigismember(&old, SIGUSR1) && !is_pending(SIGUSR1));
	CHECK(sigprocmask(77, &set, NULL) == -1 && errno == EINVAL);
	sigfillset(&set);
	CHECK(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
	CHECK(blocks(SIGUSR2) && !blocks(SIGKILL) && !blocks(SIGSTOP));
	CHECK(raise(SIGUSR1) == 0 && handled == 1);
	sigemptyset(&set);
	CHECK(sigprocmask(SIG_SETMASK, &set, NULL) == 0 && handled == 2);
	CHECK(raise(SIGUSR1) == 0 && handled == 3);
	CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0 && handled == 4);
	CHECK(tgkill(getpid(), gettid(), SIGUSR1) == 0 && handled == 5);
	CHECK(handler_ran_on == pthread_self());
	return unused;
}

void check_masks(void)
{
	install(SIGUSR1, note, 0);
	handled = stage = 0;
	pthread_t thread = start(blocks_and_unblocks, NULL);
	await_stage(1);
	CHECK(!blocks(SIGUSR1)); // another thread's mask is its own
	CHECK(pthread_kill(thread, SIGUSR1) == 0 && pthread_kill(thread, SIGUSR1) == 0);
	CHECK(pthread_kill(thread, 0) == 0 && pthread_kill(thread, 99) == EINVAL);
	stage = 2;
	join(thread);
}

// Signals that are waited for.

static void *wait_for_signals(void *unused)
{
	sigset_t set = set_of(SIGUSR1);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	stage = 1;
	int signal = 0;
	CHECK(sigwait(&set, &signal) == 0 && signal == SIGUSR1);
	stage = 2;
	siginfo_t info;
	for (int i = 0; i < 5; i++) {
		CHECK(sigwaitinfo(&set, &info) == SIGRTMIN);
		CHECK(info.si_value.sival_int == i && info.si_code == SI_QUEUE && info.si_pid == getpid());
	}
	struct timespec soon = { 0, 1000000 };
	CHECK(sigtimedwait(&set, &info, &soon) == -1 && errno == EAGAIN);
	sigset_t none;
	sigemptyset(&none);
	handled = 0;
	stage = 3;
	CHECK(sigsuspend(&none) == -1 && errno == EINTR && handled == 1);
	CHECK(blocks(SIGUSR1));
	return unused;
}

void check_waits(void)
{
	install(SIGUSR1, note, 0);
	stage = 0;
	pthread_t thread = start(wait_for_signals, NULL);
	await_stage(1);
	CHECK(pthread_kill(thread, SIGUSR1) == 0);
	await_stage(2);
	for (int i = 0; i < 5; i++) {
		union sigval value = { .sival_int = i };
		CHECK(pthread_sigqueue(thread, SIGRTMIN, value) == 0);
	}
	await_stage(3);
	CHECK(pthread_kill(thread, SIGUSR1) == 0);
	join(thread);
}

// Handlers that park.

enum { STOPPED = 50 };

static void *work(void *argument)
{
	volatile double sum = 0;
	for (intptr_t i = 0; !*(volatile atomic_int *)argument; i++) {
		switch (i % 4) {
		case 0:
			usleep(100);
			break;
		case 1:
			for (int j = 0; j < 20000; j++)
				sum = sum * 0.5 + j;
			break;
		case 2:
			pthread_mutex_lock(&lock);
			sched_yield();
			pthread_mutex_unlock(&lock);
			break;
		default:
			free(malloc(1000));
		}
	}
	return argument;
}

void check_stopping(void)
{
	static atomic_int over;
	pthread_t threads[STOPPED];
	over = 0;
	prepare_stops();
	for (int i = 0; i < STOPPED; i++)
		threads[i] = start(work, &over);
	stop_and_go(threads, STOPPED, 10);
	over = 1;
	for (int i = 0; i < STOPPED; i++)
		join(threads[i]);
}

// Handlers that end their thread, in the calls that run handlers.

static void leave(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	pthread_exit((void *)9);
}

static void *raise_it(void *unused)
{
	raise(SIGUSR1);
	return unused;
}

static void *unblock_it(void *unused)
{
	sigset_t set = set_of(SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return unused;
}

void check_leaving(void)
{
	install(SIGUSR1, leave, 0);
	CHECK(join(start(raise_it, NULL)) == 9);
	CHECK(join(start(unblock_it, NULL)) == 9);
}

// Flags of actions, and jumps.

static sigjmp_buf back;
static volatile int depth, deepest, raises;

static void jump(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	siglongjmp(back, 1);
}

static void nest(int signal, siginfo_t *info, void *context)
{
	(void)info, (void)context;
	depth++;
	if (depth > deepest)
		deepest = depth;
	if (raises-- > 0)
		raise(signal);
	depth--;
}

static void see_mask(int signal, siginfo_t *info, void *context)
{
	(void)info;
	CHECK(blocks(signal) && blocks(SIGUSR2));
	CHECK(!sigismember(&((ucontext_t *)context)->uc_sigmask, signal));
	// In force when the handler has returned.
	sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGHUP);
	handled++;
}

static void *use_flags(void *unused)
{
	for (volatile int i = 0; i < 3; i++) {
		install(SIGUSR1, jump, 0);
		if (sigsetjmp(back, 1) == 0) {
			raise(SIGUSR1);
			CHECK(!"reached");
		}
		CHECK(!blocks(SIGUSR1));
	}
	install(SIGUSR1, nest, SA_NODEFER);
	raises = 2;
	raise(SIGUSR1);
	CHECK(deepest == 3 && depth == 0 && raises == -1);
	install(SIGUSR1, nest, 0);
	deepest = 0;
	raises = 2;
	raise(SIGUSR1);
	CHECK(deepest == 1 && depth == 0 && raises == -1);

	install(SIGWINCH, note, SA_RESETHAND);
	handled = 0;
	CHECK(raise(SIGWINCH) == 0 && raise(SIGWINCH) == 0 && handled == 1);
	struct sigaction action = { .sa_sigaction = see_mask, .sa_flags = SA_SIGINFO };
	sigaddset(&action.sa_mask, SIGUSR2);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(raise(SIGUSR1) == 0 && handled == 2);
	CHECK(!blocks(SIGUSR1) && !blocks(SIGUSR2) && blocks(SIGHUP));
	sigset_t set = set_of(SIGHUP);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR && raise(SIGUSR1) == 0);
	CHECK(handled == 2);
	return unused;
}

void check_flags(void)
{
	join(start(use_flags, NULL));
}

// Children.

extern char **environ;

static void *have_children(void *unused)
{
	sigset_t set = set_of(SIGUSR1);
	CHECK(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0);
	pid_t child = fork();
	if (child == 0)
		_exit(blocks(SIGUSR1) && !blocks(SIGTERM) ? 3 : 4);
	int status;
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
	// The mask has SIGUSR1 alone.
	char script[] = "read -r _ mask <<X\n$(grep SigBlk /proc/self/status)\nX\n"
			"test $mask = 0000000000000200";
	char *arguments[] = { "sh", "-c", script, NULL };
	CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(system(script) == 0);
	return unused;
}

static void *be_killed(void *signal)
{
	CHECK(raise((int)(intptr_t)signal) == 0);
	pause();
	return signal;
}

void check_children(void)
{
	join(start(have_children, NULL));
}

// Not to return.
void check_default_action(void)
{
	join(start(be_killed, (void *)(intptr_t)SIGUSR2));
}
