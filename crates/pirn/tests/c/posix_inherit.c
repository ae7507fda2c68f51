// What a program inherits that a thread starts, in every way that libc has. `posix_driver inherited`
// is that program, and says what it finds.
#include "posix_checks.h"
#include <grp.h>
#include <pty.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <wordexp.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

pid_t _Fork(void) __attribute__((weak)); // since glibc 2.34

static char *program, *arguments[3], command[300];
extern char **environ;

static void handle(int signal)
{
	(void)signal;
}

// Gives the running thread, and the process, what can be inherited.
static void prepare(void)
{
	program = getenv("CHECK_DRIVER");
	arguments[0] = program;
	arguments[1] = "inherited";
	snprintf(command, sizeof command, "exec %s inherited", program);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 3);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 && raise(SIGUSR1) == 0);
	CHECK(pthread_kill(pthread_self(), SIGRTMIN + 3) == 0);
	signal(SIGPIPE, SIG_DFL); // Rust ignores it.
	signal(SIGUSR2, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, handle);
	struct rlimit limit = { 4096, 8192 };
	CHECK(setrlimit(RLIMIT_CORE, &limit) == 0 && chdir("/usr") == 0);
	umask(027);
	int fd = open("/dev/null", O_RDONLY);
	CHECK(dup2(fd, 77) == 77 && fcntl(fd, F_DUPFD_CLOEXEC, 78) >= 78 && close(fd) == 0);
	gid_t groups[] = { 7, 8 };
	if (geteuid() == 0)
		CHECK(setgroups(2, groups) == 0 && setresgid(5, 6, 7) == 0);
	char niceness[20];
	snprintf(niceness, sizeof niceness, "%d", getpriority(PRIO_PROCESS, 0));
	CHECK(setenv("CHECK_NICE", niceness, 1) == 0);
	if (getenv("CHECK_PLAIN"))
		return;
	CHECK(setpriority(PRIO_PROCESS, 0, atoi(niceness) + 2) == 0);
	cpu_set_t all, one;
	CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
	int cpu = 0;
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
	struct sched_param param = { 0 };
	CHECK(sched_setscheduler(0, SCHED_BATCH, &param) == 0);
}

// For the commands of Rust.
void check_prepared(void)
{
	prepare();
}

// Waits for a child, which must have succeeded.
static void succeeds(pid_t child)
{
	int status;
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void fork_by(pid_t (*fork)(void))
{
	pid_t child = fork();
	if (child == 0) {
		execv(program, arguments);
		_exit(1);
	}
	succeeds(child);
}

void check_children(void)
{
	prepare();
	say("system\n");
	CHECK(system(command) == 0);
	say("popen\n");
	CHECK(pclose(popen(command, "r")) == 0);
	pid_t child;
	say("posix_spawn\n");
	CHECK(posix_spawn(&child, program, NULL, NULL, arguments, environ) == 0);
	succeeds(child);
	say("posix_spawnp\n");
	CHECK(posix_spawnp(&child, program, NULL, NULL, arguments, environ) == 0);
	succeeds(child);
	say("fork\n");
	fork_by(fork);
	say("vfork\n");
	fork_by(vfork);
	if (_Fork) {
		say("_Fork\n");
		fork_by(_Fork);
	}
	say("wordexp\n");
	wordexp_t words;
	snprintf(command, sizeof command, "$(%s inherited)", program);
	CHECK(wordexp(command, &words, 0) == 0);
	wordfree(&words);
	say("forkpty\n");
	int terminal;
	child = forkpty(&terminal, NULL, NULL, NULL);
	if (child == 0) {
		execv(program, arguments);
		_exit(1);
	}
	succeeds(child);
	CHECK(close(terminal) == 0);
	say("daemon\n");
	int ends[2];
	char byte;
	CHECK(pipe(ends) == 0 && dup2(ends[1], 90) == 90 && close(ends[1]) == 0);
	CHECK(fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0);
	child = fork();
	if (child == 0) {
		if (daemon(1, 1) == 0)
			execv(program, arguments);
		_exit(1);
	}
	CHECK(close(90) == 0);
	succeeds(child);
	CHECK(read(ends[0], &byte, 1) == 0); // The end of the daemon, which has the other end.
}

void check_execve(void)
{
	prepare();
	execve(program, arguments, environ);
}

void check_execv(void)
{
	prepare();
	execv(program, arguments);
}

void check_execvp(void)
{
	prepare();
	execvp(program, arguments);
}

void check_execvpe(void)
{
	prepare();
	execvpe(program, arguments, environ);
}

void check_execl(void)
{
	prepare();
	execl(program, program, "inherited", NULL);
}

void check_execlp(void)
{
	prepare();
	execlp(program, program, "inherited", "1", "2", "3", "4", "5", "6", NULL);
}

void check_execle(void)
{
	prepare();
	execle(program, program, "inherited", NULL, environ);
}

void check_fexecve(void)
{
	prepare();
	fexecve(open(program, O_RDONLY | O_CLOEXEC), arguments, environ);
}

int execveat(int, const char *, char *const[], char *const[], int) __attribute__((weak)); // 2.34

void check_execveat(void)
{
	prepare();
	if (execveat)
		execveat(AT_FDCWD, program, arguments, environ, 0);
	syscall(SYS_execveat, AT_FDCWD, program, arguments, environ, 0);
}

void check_execveat_by_number(void)
{
	prepare();
	syscall(SYS_execveat, AT_FDCWD, program, arguments, environ, 0);
}

// One that fails changes nothing.
void check_failing(void)
{
	prepare();
	SAY_RESULT(execv("/nowhere", arguments));
	SAY_RESULT(execl("/nowhere", "", NULL));
	sigset_t set;
	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &set) == 0);
	say("blocked %d %d\n", sigismember(&set, SIGUSR1), sigismember(&set, SIGUSR2));
	CHECK(sigpending(&set) == 0);
	say("pending %d %d\n", sigismember(&set, SIGUSR1), sigismember(&set, SIGRTMIN + 3));
	char *many[1000];
	for (int i = 0; i < 999; i++)
		many[i] = program;
	many[1] = "inherited";
	many[999] = NULL;
	execv(program, many);
}
