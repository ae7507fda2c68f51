// Cancellation: of threads that wait, at each point; of threads that are about to; refused.
#include "posix_checks.h"
#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

static sem_t here, never;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static int pipes[2], full_pipes[2], sockets[2], full_sockets[2], listener, epoll;
static mqd_t queue;
static atomic_int cleaned, destroyed, unlocked;
static pthread_t sleeper;

static void clean(void *argument)
{
	cleaned += (int)(intptr_t)argument;
	struct timespec moment = { 0, 1000 };
	nanosleep(&moment, NULL); // waits work in a handler
}

static void unlock(void *argument)
{
	unlocked++;
	CHECK(pthread_mutex_unlock(argument) == 0);
}

static void destroy(void *value)
{
	destroyed += value != NULL;
}

enum {
	READ, READV, RECV, RECVFROM, RECVMSG, WRITE, SEND, POLL, PPOLL, SELECT, PSELECT, EPOLL, ACCEPT,
	SLEEP, USLEEP, NANOSLEEP, SEM, TIMED_SEM, COND, TIMED_COND, JOIN, TEST, RECVMMSG, MQUEUE, POINTS
};

static void wait_for_signal(int timed)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_sec += 100;
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, &mutex);
	for (;;)
		timed ? pthread_cond_timedwait(&cond, &mutex, &time) : pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(1);
}

static void wait_at(int point)
{
	char byte[1 << 17];
	struct iovec part = { byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct pollfd entry = { pipes[0], POLLIN, 0 };
	struct epoll_event event;
	struct timespec time = { 100, 0 }, until;
	fd_set set;
	FD_ZERO(&set);
	FD_SET(pipes[0], &set);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 100;
	memset(byte, 0, sizeof byte);
	switch (point) {
	case READ: read(pipes[0], byte, 1); break;
	case READV: readv(pipes[0], &part, 1); break;
	case RECV: recv(sockets[0], byte, 1, 0); break;
	case RECVFROM: recvfrom(sockets[0], byte, 1, 0, NULL, NULL); break;
	case RECVMSG: recvmsg(sockets[0], &message, 0); break;
	case WRITE: for (;;) write(full_pipes[1], byte, sizeof byte); break;
	case SEND: for (;;) send(full_sockets[1], byte, sizeof byte, 0); break;
	case POLL: poll(&entry, 1, -1); break;
	case PPOLL: ppoll(&entry, 1, &time, NULL); break;
	case SELECT: select(pipes[0] + 1, &set, NULL, NULL, NULL); break;
	case PSELECT: pselect(pipes[0] + 1, &set, NULL, NULL, &time, NULL); break;
	case EPOLL: epoll_wait(epoll, &event, 1, -1); break;
	case ACCEPT: accept(listener, NULL, NULL); break;
	case SLEEP: sleep(100); break;
	case USLEEP: usleep(100000000); break;
	case NANOSLEEP: nanosleep(&time, NULL); break;
	case SEM: sem_wait(&never); break;
	case TIMED_SEM: sem_timedwait(&never, &until); break;
	case COND: wait_for_signal(0); break;
	case TIMED_COND: wait_for_signal(1); break;
	case JOIN: pthread_join(sleeper, NULL); break;
	case RECVMMSG: recvmmsg(sockets[0], &(struct mmsghdr){ .msg_hdr = message }, 1, 0, NULL); break;
	case MQUEUE: mq_receive(queue, byte, sizeof byte, NULL); break;
	case TEST: for (;;) pthread_testcancel(), sched_yield(); break;
	}
	CHECK(!"passed");
}

static void *wait_there(void *argument)
{
	CHECK(pthread_setspecific(key, &key) == 0);
	pthread_cleanup_push(clean, (void *)1);
	pthread_cleanup_push(clean, (void *)100);
	sem_post(&here);
	wait_at((int)(intptr_t)argument);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return "returned";
}

static void *disabled_first(void *argument)
{
	int old = -1;
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0);
	CHECK(old == PTHREAD_CANCEL_ENABLE);
	sem_post(&here);
	sem_wait(argument); // the cancellation has come
	struct timespec moment = { 0, 2000000 };
	CHECK(nanosleep(&moment, NULL) == 0);
	pthread_testcancel();
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0);
	CHECK(old == PTHREAD_CANCEL_DISABLE);
	return wait_there((void *)READ);
}

static void *wait_for_go(void *argument)
{
	CHECK(sem_wait(argument) == 0);
	return "went";
}

static void set_up(void)
{
	CHECK(sem_init(&here, 0, 0) == 0 && sem_init(&never, 0, 0) == 0);
	CHECK(pthread_key_create(&key, destroy) == 0);
	CHECK(pipe(pipes) == 0 && pipe(full_pipes) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, full_sockets) == 0);
	CHECK((listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	CHECK(bind(listener, (struct sockaddr *)&any, sizeof any.sun_family) == 0);
	CHECK(listen(listener, 1) == 0);
	CHECK((epoll = epoll_create1(0)) >= 0);
	struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	char name[32];
	snprintf(name, sizeof name, "/pirn-cancel-%d", getpid());
	queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
	mq_unlink(name);
	cleaned = destroyed = unlocked = 0;
}

static void tear_down(void)
{
	for (int i = 0; i < 2; i++)
		CHECK(!close(pipes[i]) && !close(sockets[i]) && !close(full_pipes[i]) && !close(full_sockets[i]));
	if (queue != -1)
		CHECK(mq_close(queue) == 0);
	CHECK(close(listener) == 0 && close(epoll) == 0 && pthread_key_delete(key) == 0);
}

// Waits until a thread is likely to wait; the result is the same if it does not yet.
static void let_it_wait(int round)
{
	struct timespec moment = { 0, 3000000 };
	sem_wait(&here);
	if (round)
		nanosleep(&moment, NULL);
}

void check_points(void)
{
	sem_t go;
	set_up();
	sem_init(&go, 0, 0);
	sleeper = begin(wait_for_go, &go);
	for (int round = 0; round < 2; round++) {
		for (int point = 0; point < POINTS; point++) {
			if (point == MQUEUE && queue == -1)
				continue; // not in this kernel
			pthread_t thread = begin(wait_there, (void *)(intptr_t)point);
			let_it_wait(round);
			CHECK(pthread_cancel(thread) == 0);
			if (join(thread) != PTHREAD_CANCELED)
				say("point %d does not cancel\n", point);
			CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
		}
	}
	sem_post(&go);
	CHECK(strcmp(join(sleeper), "went") == 0);
	say("cleaned %d, destroyed %d, unlocked %d\n", cleaned, destroyed, unlocked);
	tear_down();
}

void check_state(void)
{
	sem_t go;
	set_up();
	sem_init(&go, 0, 0);
	pthread_t thread = begin(disabled_first, &go);
	sem_wait(&here);
	CHECK(pthread_cancel(thread) == 0 && pthread_cancel(thread) == 0);
	sem_post(&go);
	CHECK(join(thread) == PTHREAD_CANCELED);
	say("cleaned %d, destroyed %d\n", cleaned, destroyed);
	int old;
	SAY_RESULT(pthread_setcancelstate(77, &old));
	SAY_RESULT(pthread_setcanceltype(77, &old));
	SAY_RESULT(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL));
	tear_down();
}

static void *cancel_oneself(void *argument)
{
	pthread_cleanup_push(clean, (void *)1);
	if (argument)
		CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
	CHECK(pthread_cancel(pthread_self()) == 0);
	cleaned += 100;
	pthread_testcancel();
	cleaned += 10000;
	pthread_cleanup_pop(0);
	return NULL;
}

static void *end_at_once(void *argument)
{
	return argument;
}

void check_oneself(void)
{
	cleaned = 0;
	CHECK(join(begin(cancel_oneself, NULL)) == PTHREAD_CANCELED);
	say("deferred %d\n", cleaned);
	CHECK(join(begin(cancel_oneself, "")) == PTHREAD_CANCELED);
	say("asynchronous %d\n", cleaned);
	pthread_t thread = begin(end_at_once, "done");
	sched_yield();
	CHECK(pthread_cancel(thread) == 0);
	CHECK(strcmp(join(thread), "done") == 0);
}

// A read that has got something is not cancelled.
static void *read_all(void *argument)
{
	char byte;
	int *count = argument;
	while (read(pipes[0], &byte, 1) == 1)
		++*count;
	return NULL;
}

void check_nothing_is_lost(void)
{
	for (int i = 0; i < 300; i++) {
		set_up();
		int before = 0, after = 0;
		pthread_t thread = begin(read_all, &before);
		CHECK(write(pipes[1], "abcde", 5) == 5);
		if (i % 2)
			sched_yield();
		CHECK(pthread_cancel(thread) == 0);
		CHECK(join(thread) == PTHREAD_CANCELED);
		char rest[8];
		if (before < 5)
			after = read(pipes[0], rest, sizeof rest);
		CHECK(before + after == 5);
		tear_down();
	}
}

// Platform threads are cancelled at the same points.
void check_platform(void)
{
	pthread_attr_t bound;
	cpu_set_t all;
	sem_t go;
	set_up();
	sem_init(&go, 0, 0);
	sleeper = begin(wait_for_go, &go);
	pthread_attr_init(&bound);
	CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
	CHECK(pthread_attr_setaffinity_np(&bound, sizeof all, &all) == 0);
	for (int point = 0; point < RECVMMSG; point++) {
		if (point >= COND && point <= JOIN)
			continue; // docs/limits.md says so
		pthread_t thread;
		CHECK(pthread_create(&thread, &bound, wait_there, (void *)(intptr_t)point) == 0);
		let_it_wait(1);
		CHECK(pthread_cancel(thread) == 0);
		CHECK(join(thread) == PTHREAD_CANCELED);
	}
	sem_post(&go);
	join(sleeper);
	say("cleaned %d, destroyed %d\n", cleaned, destroyed);
	tear_down();
}

// Asynchronous cancellation of a thread that computes, and of one that has disabled it meanwhile.

static volatile int computing, go_on;

static void *compute(void *kind)
{
	int old;
	pthread_cleanup_push(clean, (void *)1);
	CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old) == 0);
	if (kind)
		CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
	computing = 1;
	while (!go_on)
		;
	if (kind) {
		say("still here\n");
		CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL) == 0);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;

static void *lock_and_compute(void *argument)
{
	CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
	computing = 1;
	pthread_mutex_lock(&taken);
	while (!go_on)
		;
	return argument;
}

// A thread that waits for a mutex when it is cancelled ends in the wait, or when it goes on.
void check_asynchronous_in_lock(void)
{
	struct timespec moment = { 0, 3000000 };
	for (int i = 0; i < 10; i++) {
		computing = go_on = 0;
		pthread_mutex_init(&taken, NULL);
		CHECK(pthread_mutex_lock(&taken) == 0);
		pthread_t thread = begin(lock_and_compute, NULL);
		while (!computing)
			sched_yield();
		if (i % 2)
			nanosleep(&moment, NULL);
		CHECK(pthread_cancel(thread) == 0);
		CHECK(pthread_mutex_unlock(&taken) == 0);
		CHECK(join(thread) == PTHREAD_CANCELED);
	}
	say("ended\n");
}

void check_asynchronous(void)
{
	for (int i = 0; i < 20; i++) {
		cleaned = computing = go_on = 0;
		pthread_t thread = begin(compute, NULL);
		while (!computing)
			sched_yield();
		CHECK(pthread_cancel(thread) == 0);
		CHECK(join(thread) == PTHREAD_CANCELED);
		CHECK(cleaned == 1);
	}
	cleaned = computing = go_on = 0;
	pthread_t thread = begin(compute, "");
	while (!computing)
		sched_yield();
	CHECK(pthread_cancel(thread) == 0);
	usleep(2000);
	go_on = 1;
	say("result %d, cleaned %d\n", join(thread) == PTHREAD_CANCELED, cleaned);
}
