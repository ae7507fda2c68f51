/* Signals that a call raises for its own thread: what each call does with each action, on a thread,
 * or on the first one: `raised natively|virtually thread|first`. */
#define _GNU_SOURCE
#include "../../../pirn/tests/c/pthread_checks.h"
#include "arch.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { LIMIT = 4096 };
/* A pipe and sockets without a reader, and a pipe, a file and a socket to move bytes from; a file
 * that is as long as it may be. */
static int broken, unix_socket, tcp, full_pipe, source, long_file;
static char buffer[64];
static struct iovec vector = { buffer, 8 };
static struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
static struct mmsghdr messages = { .msg_hdr = { .msg_iov = &vector, .msg_iovlen = 1 } };

static long inline_write(int fd)
{
	long result = inline_call(SYS_write, fd, (long)buffer, 8);
	return result < 0 ? (errno = -result, -1) : result;
}

static long by_stdio(int fd, int buffered)
{
	FILE *file = fdopen(fd, "a");
	CHECK(file && setvbuf(file, NULL, buffered ? _IOFBF : _IONBF, 512) == 0);
	int result = fprintf(file, "text") < 0 ? -1 : 0;
	return buffered ? fflush(file) : result;
}

static long offset_of_limit = LIMIT;

/* Whether it raises SIGPIPE, else SIGXFSZ, and the call. */
#define CALLS(CALL) \
	CALL(1, write(broken, buffer, 8)) \
	CALL(1, writev(broken, &vector, 1)) \
	CALL(1, pwritev2(broken, &vector, 1, -1, 0)) \
	CALL(1, syscall(SYS_write, broken, buffer, 8)) \
	CALL(1, inline_write(broken)) \
	CALL(1, dprintf(broken, "text")) \
	CALL(1, by_stdio(broken, 0)) \
	CALL(1, by_stdio(broken, 1)) \
	CALL(1, write(unix_socket, buffer, 8)) \
	CALL(1, send(unix_socket, buffer, 8, 0)) \
	CALL(1, send(unix_socket, buffer, 8, MSG_NOSIGNAL)) \
	CALL(1, sendto(unix_socket, buffer, 8, 0, NULL, 0)) \
	CALL(1, sendmsg(unix_socket, &message, 0)) \
	CALL(1, sendmsg(unix_socket, &message, MSG_NOSIGNAL)) \
	CALL(1, sendmmsg(unix_socket, &messages, 1, 0)) \
	CALL(1, write(tcp, buffer, 8)) \
	CALL(1, send(tcp, buffer, 8, 0)) \
	CALL(1, send(tcp, buffer, 8, MSG_NOSIGNAL)) \
	CALL(1, splice(full_pipe, NULL, broken, NULL, 8, 0)) \
	CALL(1, splice(full_pipe, NULL, unix_socket, NULL, 8, 0)) \
	CALL(1, splice(source, NULL, broken, NULL, 8, 0)) \
	CALL(1, tee(full_pipe, broken, 8, 0)) \
	CALL(1, vmsplice(broken, &vector, 1, 0)) \
	CALL(1, sendfile(broken, source, NULL, 8)) \
	CALL(1, sendfile(unix_socket, source, NULL, 8)) \
	CALL(0, write(long_file, buffer, 8)) \
	CALL(0, writev(long_file, &vector, 1)) \
	CALL(0, pwrite(long_file, buffer, 8, LIMIT)) \
	CALL(0, pwritev(long_file, &vector, 1, LIMIT)) \
	CALL(0, syscall(SYS_write, long_file, buffer, 8)) \
	CALL(0, inline_write(long_file)) \
	CALL(0, dprintf(long_file, "text")) \
	CALL(0, by_stdio(long_file, 0)) \
	CALL(0, by_stdio(long_file, 1)) \
	CALL(0, ftruncate(long_file, LIMIT + 1)) \
	CALL(0, truncate("raised-long", LIMIT + 1)) \
	CALL(0, fallocate(long_file, 0, LIMIT, 8)) \
	CALL(0, posix_fallocate(long_file, LIMIT, 8)) \
	CALL(0, copy_file_range(source, NULL, long_file, &offset_of_limit, 8, 0)) \
	CALL(0, sendfile(long_file, source, NULL, 8)) \
	CALL(0, splice(full_pipe, NULL, long_file, NULL, 8, 0))

#define FUNCTION(IS_PIPE, CALL) ({ long call(void) { return CALL; } call; })

enum action { DEFAULT, HANDLER, PLAIN_HANDLER, ONCE, IGNORED, BLOCKED, BLOCKED_DEFAULT, WAITED };
static const char *actions[] = { "default", "handler", "plain handler", "once", "ignored",
	"blocked", "blocked, default", "waited for" };
static volatile int handled;

static void note(int signal, siginfo_t *info, void *context)
{
	(void)context;
	handled += info->si_signo == signal && info->si_code == SI_USER && info->si_pid == getpid();
}

static void note_plainly(int signal)
{
	handled += signal > 0;
}

static void prepare(void)
{
	int ends[2], other[2];
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof address;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
	broken = ends[1];
	CHECK(pipe(ends) == 0 && write(ends[1], buffer, 32) == 32);
	full_pipe = ends[0];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0 && close(other[1]) == 0);
	unix_socket = other[0];
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (void *)&address, &length) == 0);
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(tcp, (void *)&address, sizeof address) == 0 && shutdown(tcp, SHUT_WR) == 0);
	source = open("raised-source", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(write(source, buffer, 32) == 32 && lseek(source, 0, SEEK_SET) == 0);
	long_file = open("raised-long", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(ftruncate(long_file, LIMIT) == 0 && lseek(long_file, 0, SEEK_END) == LIMIT);
	struct rlimit limit = { LIMIT, RLIM_INFINITY };
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static struct { int is_pipe; enum action action; long (*call)(void); } now;

/* Says what the call returns, how often the handler had run then, and what is pending. */
static void *make_call(void *unused)
{
	int signal = now.is_pipe ? SIGPIPE : SIGXFSZ;
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	sigset_t set, pending;
	sigemptyset(&set);
	sigaddset(&set, signal);
	action.sa_sigaction = note;
	if (now.action == DEFAULT || now.action == BLOCKED_DEFAULT)
		action.sa_handler = SIG_DFL;
	else if (now.action == IGNORED)
		action.sa_handler = SIG_IGN;
	else if (now.action == PLAIN_HANDLER || now.action == ONCE)
		action = (struct sigaction) { .sa_handler = note_plainly };
	if (now.action == ONCE)
		action.sa_flags = SA_RESETHAND;
	CHECK(sigaction(signal, &action, NULL) == 0);
	if (now.action >= BLOCKED)
		CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	errno = 0;
	long result = now.call();
	int error = errno, before = handled;
	CHECK(sigpending(&pending) == 0);
	printf("%ld %d, handled %d, pending %d", result, error, before, sigismember(&pending, signal));
	if (now.action == WAITED) {
		siginfo_t info = { 0 };
		struct timespec none = { 0 };
		int waited = sigtimedwait(&set, &info, &none);
		printf(", waited for %d", waited == signal && info.si_pid == getpid());
	} else if (now.action == BLOCKED || now.action == BLOCKED_DEFAULT) {
		fflush(stdout);
		CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
		printf(", then handled %d", handled);
	}
	CHECK(sigaction(signal, NULL, &action) == 0);
	printf(", then action %d\n", action.sa_handler == SIG_DFL ? 0 : action.sa_handler == SIG_IGN ? 1 : 2);
	fflush(stdout);
	return unused;
}

static void in_child(const char *name, int is_pipe, enum action action, long (*call)(void), int thread)
{
	int status;
	printf("%s, %s: ", name, actions[action]);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		struct rlimit none = { 0, 0 };
		setrlimit(RLIMIT_CORE, &none);
		prepare();
		now.is_pipe = is_pipe, now.action = action, now.call = call;
		pthread_t other;
		if (!thread)
			make_call(NULL);
		else
			CHECK(pthread_create(&other, NULL, make_call, NULL) == 0 && pthread_join(other, NULL) == 0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	printf("    status %x\n", status & ~0x80);
}

int main(int count, char **arguments)
{
	int thread = count > 2 && strcmp(arguments[2], "thread") == 0;
	char folder[] = "/tmp/raised-XXXXXX";
	CHECK(mkdtemp(folder) && chdir(folder) == 0);
#define EACH(IS_PIPE, CALL) \
	for (int action = DEFAULT; action <= WAITED; action++) \
		in_child(#CALL, IS_PIPE, action, FUNCTION(IS_PIPE, CALL), thread);
	CALLS(EACH)
	unlink("raised-source");
	unlink("raised-long");
	CHECK(chdir("/") == 0 && rmdir(folder) == 0);
	return 0;
}
