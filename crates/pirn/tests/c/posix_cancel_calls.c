// Cancellation at calls that rarely wait: each acts at its beginning, and those that wait for
// others while they do.
#include "posix_checks.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

enum {
	OPEN, OPENAT, CREAT, FSYNC, FDATASYNC, MSYNC, SYNC_RANGE, FALLOCATE, SETLKW, OFD_SETLKW, LOCKF,
	MSGSND, MSGRCV, TCDRAIN, CLOSE, PREAD, PWRITE, PREADV, PWRITEV, COPY, SENDMMSG, SPLICE, TEE,
	VMSPLICE, SIGSUSPEND, PAUSE, SIGWAIT, SIGWAITINFO, SIGTIMEDWAIT, CALLS
};

static char folder[] = "/tmp/pirn-cancel-XXXXXX";
static char path[64], fifo[64];
static int file, queue, in[2], out[2], sockets[2];
static void *page;
static sem_t here, go;

static void call(int which)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	struct { long kind; char text[1]; } message = { 1, { 0 } };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct mmsghdr messages = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };
	struct timespec long_time = { 100, 0 };
	sigset_t none, some;
	int number;
	sigemptyset(&none);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	switch (which) {
	case PREAD: pread(file, &byte, 1, 0); break;
	case PWRITE: pwrite(file, &byte, 1, 0); break;
	case PREADV: preadv(file, &part, 1, 0); break;
	case PWRITEV: pwritev(file, &part, 1, 0); break;
	case COPY: copy_file_range(file, &(off_t){ 0 }, file, &(off_t){ 2048 }, 1024, 0); break;
	case SENDMMSG: sendmmsg(sockets[0], &messages, 1, 0); break;
	case SPLICE: splice(in[0], NULL, out[1], NULL, 1, 0); break;
	case TEE: tee(in[0], out[1], 1, 0); break;
	case VMSPLICE: vmsplice(in[0], &part, 1, 0); break;
	case SIGSUSPEND: sigsuspend(&none); break;
	case PAUSE: pause(); break;
	case SIGWAIT: sigwait(&some, &number); break;
	case SIGWAITINFO: sigwaitinfo(&some, NULL); break;
	case SIGTIMEDWAIT: sigtimedwait(&some, NULL, &long_time); break;
	case OPEN: open(path, O_RDWR); break;
	case OPENAT: openat(AT_FDCWD, path, O_RDONLY); break;
	case CREAT: creat(path, 0600); break;
	case FSYNC: fsync(file); break;
	case FDATASYNC: fdatasync(file); break;
	case MSYNC: msync(page, 4096, MS_SYNC); break;
	case SYNC_RANGE: sync_file_range(file, 0, 4096, SYNC_FILE_RANGE_WRITE); break;
	case FALLOCATE: fallocate(file, 0, 0, 8192); break;
	case SETLKW: fcntl(file, F_SETLKW, &lock); break;
	case OFD_SETLKW: fcntl(file, F_OFD_SETLKW, &lock); break;
	case LOCKF: lockf(file, F_LOCK, 1); break;
	case MSGSND: msgsnd(queue, &message, 1, 0); break;
	case MSGRCV: msgrcv(queue, &message, 1, 0, 0); break;
	case TCDRAIN: tcdrain(file); break;
	case CLOSE: close(file); break;
	}
}

static void *cancelled_before(void *argument)
{
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
	sem_post(&here);
	sem_wait(&go);
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL) == 0);
	call((int)(intptr_t)argument);
	return "returned";
}

static void set_up(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/file", folder);
	snprintf(fifo, sizeof fifo, "%s/fifo", folder);
	CHECK((file = open(path, O_RDWR | O_CREAT, 0600)) >= 0 && ftruncate(file, 4096) == 0);
	CHECK(mkfifo(fifo, 0600) == 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(page != MAP_FAILED);
	CHECK((queue = msgget(IPC_PRIVATE, 0600)) >= 0);
	CHECK(pipe(in) == 0 && pipe(out) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0);
	CHECK(sem_init(&here, 0, 0) == 0 && sem_init(&go, 0, 0) == 0);
}

static void tear_down(void)
{
	CHECK(msgctl(queue, IPC_RMID, NULL) == 0 && munmap(page, 4096) == 0);
	CHECK(close(file) == 0); // no call has closed it
	CHECK(close(in[0]) == 0 && close(in[1]) == 0 && close(out[0]) == 0 && close(out[1]) == 0);
	CHECK(close(sockets[0]) == 0 && close(sockets[1]) == 0);
	CHECK(unlink(path) == 0 && unlink(fifo) == 0 && rmdir(folder) == 0);
}

void check_beginnings(void)
{
	set_up();
	pthread_attr_t bound;
	cpu_set_t all;
	pthread_attr_init(&bound);
	CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
	CHECK(pthread_attr_setaffinity_np(&bound, sizeof all, &all) == 0);
	for (int which = 0; which < 2 * CALLS; which++) {
		pthread_t thread; // then a platform thread as well
		pthread_attr_t *attributes = which < CALLS ? NULL : &bound;
		void *argument = (void *)(intptr_t)(which % CALLS);
		CHECK(pthread_create(&thread, attributes, cancelled_before, argument) == 0);
		sem_wait(&here);
		CHECK(pthread_cancel(thread) == 0);
		sem_post(&go);
		if (join(thread) != PTHREAD_CANCELED)
			say("call %d is no cancellation point\n", which);
	}
	tear_down();
}

enum { OPEN_FIFO, LOCK_PART, OPEN_TO_WRITE, CALLS_THAT_WAIT };
enum { WAITS = CALLS_THAT_WAIT + CALLS - SPLICE };

static void *wait_there(void *argument)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int other = open(path, O_RDWR);
	CHECK(other >= 0);
	sem_post(&here);
	switch ((int)(intptr_t)argument) {
	default: call(SPLICE + (int)(intptr_t)argument - CALLS_THAT_WAIT); break;
	case OPEN_FIFO: open(fifo, O_RDONLY); break;
	case LOCK_PART: fcntl(other, F_OFD_SETLKW, &lock); break;
	case OPEN_TO_WRITE: open(fifo, O_WRONLY); break;
	}
	return "returned";
}

// Calls that wait for others are cancelled while they do.
void check_waits(void)
{
	set_up();
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	CHECK(fcntl(file, F_OFD_SETLK, &lock) == 0);
	for (int round = 0; round < 2; round++) {
		for (int which = 0; which < WAITS; which++) {
			pthread_t thread = begin(wait_there, (void *)(intptr_t)which);
			struct timespec moment = { 0, 3000000 };
			sem_wait(&here);
			if (round) // likely to wait; the result is the same if it does not yet
				nanosleep(&moment, NULL);
			CHECK(pthread_cancel(thread) == 0);
			if (join(thread) != PTHREAD_CANCELED)
				say("wait %d has not been cancelled\n", which);
		}
	}
	tear_down();
}
