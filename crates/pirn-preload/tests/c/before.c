/* A bad address is an error before the first thread, too: the runtime has not started, and with it
 * the handler of faults has not. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	long result = syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)64, NULL, 8L);

	printf("%ld %s\n", result, errno == EFAULT ? "EFAULT" : "another error");
	return 0;
}
