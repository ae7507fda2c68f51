// Timers that signal one thread, and other calls that take the id of one.
#include "posix_checks.h"
#include <linux/kcmp.h>
#include <sys/uio.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

pid_t __getpgid(pid_t id);
int pidfd_open(pid_t id, unsigned flags) __attribute__((weak)); // since glibc 2.36

static atomic_int hits, others;
static _Thread_local int is_mine;

static void count(int signal, siginfo_t *info, void *context)
{
	(void)context;
	hits++;
	others += !is_mine;
	CHECK(signal == SIGRTMIN + 1 && info->si_signo == signal && info->si_code == SI_TIMER);
	CHECK(info->si_value.sival_int == 4711);
}

static timer_t begin_timer(pid_t id, int by_number)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1 };
	event.sigev_value.sival_int = 4711;
	event._sigev_un._tid = id;
	timer_t timer = NULL;
	struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
	int kernels = 0;
	if (by_number) {
		CHECK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &kernels) == 0);
		CHECK(syscall(SYS_timer_settime, kernels, 0, &often, NULL) == 0);
		return (timer_t)(intptr_t)kernels;
	}
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &often, NULL) == 0);
	return timer;
}

struct member {
	pid_t id;
	sem_t here, go;
};

static void *wait_to_go(void *argument)
{
	struct member *member = argument;
	is_mine = 1;
	member->id = gettid();
	sem_post(&member->here);
	while (sem_wait(&member->go) != 0)
		CHECK(errno == EINTR);
	return NULL;
}

static pthread_t begin_member(struct member *member)
{
	CHECK(sem_init(&member->here, 0, 0) == 0 && sem_init(&member->go, 0, 0) == 0);
	pthread_t thread = begin(wait_to_go, member);
	while (sem_wait(&member->here) != 0)
		CHECK(errno == EINTR);
	return thread;
}

void check_timers(void)
{
	struct sigaction action = { .sa_sigaction = count, .sa_flags = SA_SIGINFO };
	CHECK(sigaction(SIGRTMIN + 1, &action, NULL) == 0);
	for (int by_number = 0; by_number < 2; by_number++) {
		// One that computes.
		hits = others = 0;
		is_mine = 1;
		timer_t timer = begin_timer(gettid(), by_number);
		while (hits < 10) {
		}
		CHECK((by_number ? syscall(SYS_timer_delete, timer) : timer_delete(timer)) == 0);
		CHECK(others == 0);
		is_mine = 0;
		// Another, which waits.
		struct member member;
		pthread_t thread = begin_member(&member);
		hits = 0;
		timer = begin_timer(member.id, by_number);
		while (hits < 10)
			sched_yield();
		CHECK((by_number ? syscall(SYS_timer_delete, timer) : timer_delete(timer)) == 0);
		CHECK(others == 0);
		sem_post(&member.go);
		join(thread);
	}
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = 99 };
	event._sigev_un._tid = gettid();
	timer_t timer;
	SAY_RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
	event.sigev_signo = SIGUSR1;
	event._sigev_un._tid = (1 << 30) - 5; // no thread's
	SAY_RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
	event.sigev_notify = SIGEV_NONE;
	SAY_RESULT(timer_create(CLOCK_MONOTONIC, &event, &timer));
	SAY_RESULT(timer_delete(timer));
	SAY_RESULT(timer_create(CLOCK_MONOTONIC, NULL, &timer));
	SAY_RESULT(timer_delete(timer));
}

static void ask(pid_t id)
{
	struct rlimit limit;
	CHECK(prlimit(id, RLIMIT_NOFILE, NULL, &limit) == 0);
	CHECK(prlimit64(id, RLIMIT_NOFILE, NULL, (void *)&limit) == 0);
	CHECK(syscall(SYS_prlimit64, id, RLIMIT_NOFILE, &limit, NULL) == 0);
	char from = 7, to = 0;
	struct iovec here = { &to, 1 }, there = { &from, 1 };
	CHECK(process_vm_readv(id, &here, 1, &there, 1, 0) == 1 && to == 7);
	to = 8;
	CHECK(process_vm_writev(id, &here, 1, &there, 1, 0) == 1 && from == 8);
	CHECK(syscall(SYS_process_vm_readv, id, &here, 1, &there, 1, 0) == 1 && to == 8);
	CHECK(getpgid(id) == getpgid(0) && __getpgid(id) == getpgid(0) && getsid(id) == getsid(0));
	CHECK(syscall(SYS_getpgid, id) == getpgid(0));
	SAY_RESULT(kill(id, 0));
	SAY_RESULT(syscall(SYS_kill, id, 0));
	SAY_RESULT(sigqueue(id, 0, (union sigval){ 0 }));
	siginfo_t info = { .si_code = SI_QUEUE };
	SAY_RESULT(syscall(SYS_rt_sigqueueinfo, id, 0, &info));
	SAY_RESULT(syscall(SYS_rt_tgsigqueueinfo, getpid(), id, 0, &info));
	SAY_RESULT(syscall(SYS_rt_tgsigqueueinfo, getpid(), id, 99, &info));
	SAY_RESULT(syscall(SYS_ioprio_get, 1, id) >= 0);
	SAY_RESULT(syscall(SYS_kcmp, id, getpid(), KCMP_VM, 0, 0));
	SAY_RESULT(syscall(SYS_move_pages, id, 0, NULL, NULL, NULL, 0));
	void *head = NULL;
	size_t size = 0;
	SAY_RESULT(syscall(SYS_get_robust_list, id, &head, &size));
	CHECK(head != NULL && size == 24);
	struct { uint32_t version; int id; } header = { 0x20080522, id };
	uint32_t sets[6];
	SAY_RESULT(syscall(SYS_capget, &header, sets));
}

// Each call that takes the id of a thread takes the id of any thread of the process.
void check_other_ids(void)
{
	struct member member;
	pthread_t thread = begin_member(&member);
	ask(member.id);
	ask(gettid());
	if (pidfd_open) {
		CHECK(close(pidfd_open(getpid(), 0)) == 0);
		CHECK(member.id == getpid() || pidfd_open(member.id, 0) == -1);
	}
	sem_post(&member.go);
	join(thread);
	// The kernel forgets a thread a moment after it has let the joiner go on.
	while (kill(member.id, 0) == 0)
		sched_yield();
	struct rlimit limit;
	SAY_RESULT(prlimit(member.id, RLIMIT_NOFILE, NULL, &limit));
	SAY_RESULT(kill(member.id, 0));
	SAY_RESULT(getpgid(member.id));
}
