// Calls by number that wait: many threads wait at a time, more than there are carriers.
#include "posix_checks.h"
#include <linux/futex.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

enum { CROWD = 40 };
static pthread_t threads[CROWD];
static atomic_int begun;

static void begin_crowd(void *(*start)(void *), void *argument)
{
	begun = 0;
	for (int i = 0; i < CROWD; i++)
		threads[i] = begin(start, argument);
	while (begun < CROWD)
		sched_yield();
}

static void join_crowd(void)
{
	for (int i = 0; i < CROWD; i++)
		CHECK(join(threads[i]) == NULL);
}

struct entry {
	uint64_t value, address;
	uint32_t flags, reserved;
};

static atomic_uint words[2];

static void *wait_for_either(void *argument)
{
	enum { SIZE_U32 = 2, PRIVATE = 128, WAITV = 449 };
	struct entry entries[2] = {
		{ 0, (uintptr_t)&words[0], SIZE_U32 | PRIVATE, 0 },
		{ 0, (uintptr_t)&words[1], SIZE_U32 | PRIVATE, 0 },
	};
	begun++;
	while (words[0] == 0 && words[1] == 0) {
		long result = syscall(WAITV, entries, 2, 0, NULL, CLOCK_MONOTONIC);
		CHECK(result == 0 || result == 1 || (result == -1 && errno == EAGAIN));
	}
	return argument;
}

void check_waitv(void)
{
	if (syscall(449, NULL, 0, 0, NULL, 0) == -1 && errno == ENOSYS)
		return say("no futex_waitv\n");
	for (int which = 0; which < 2; which++) {
		words[0] = words[1] = 0;
		begin_crowd(wait_for_either, NULL);
		words[which] = 1;
		syscall(SYS_futex, &words[which], FUTEX_WAKE_PRIVATE, INT_MAX);
		join_crowd();
	}
	struct entry wrong = { 1, (uintptr_t)&words[0], 2 | 128, 0 };
	SAY_RESULT(syscall(449, &wrong, 1, 0, NULL, 0));
	SAY_RESULT(syscall(449, &wrong, 129, 0, NULL, 0));
	SAY_RESULT(syscall(449, NULL, 1, 0, NULL, 0));
}

struct letter {
	long kind;
	char text[8];
};

static void *receive(void *argument)
{
	struct letter letter;
	begun++;
	CHECK(syscall(SYS_msgrcv, *(int *)argument, &letter, sizeof letter.text, 0, 0) == 3);
	return strcmp(letter.text, "hi") ? argument : NULL;
}

static void *take_one(void *argument)
{
	struct sembuf take = { 0, -1, 0 };
	begun++;
	CHECK(syscall(SYS_semop, *(int *)argument, &take, 1) == 0);
	return NULL;
}

void check_ipc(void)
{
	int queue = msgget(IPC_PRIVATE, 0600), semaphore = semget(IPC_PRIVATE, 1, 0600);
	CHECK(queue >= 0 && semaphore >= 0);
	struct letter letter = { 1, "hi" };
	begin_crowd(receive, &queue);
	for (int i = 0; i < CROWD; i++)
		CHECK(syscall(SYS_msgsnd, queue, &letter, 3, 0) == 0);
	join_crowd();
	begin_crowd(take_one, &semaphore);
	struct sembuf give = { 0, CROWD, 0 };
	CHECK(syscall(SYS_semtimedop, semaphore, &give, 1, NULL) == 0);
	join_crowd();
	SAY_RESULT(syscall(SYS_msgrcv, queue, &letter, sizeof letter.text, 0, IPC_NOWAIT));
	CHECK(msgctl(queue, IPC_RMID, NULL) == 0 && semctl(semaphore, 0, IPC_RMID) == 0);
	SAY_RESULT(syscall(SYS_semop, semaphore, &give, 1));
}
