/* The first thread of a program whose address space is full: it cannot be made, as natively, and
 * the program goes on. `no_memory natively|virtually NUMBER`. */
#include "../../../pirn/tests/c/pthread_checks.h"
#include <sys/mman.h>
#include <sys/resource.h>

static struct { void *start; size_t bytes; } taken[4096];
static size_t count;

static void take_all(void)
{
	for (size_t bytes = 16 << 20; bytes >= 4096; bytes /= 2) {
		void *start;
		while ((start = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED) {
			CHECK(count < 4096);
			taken[count].start = start;
			taken[count++].bytes = bytes;
		}
	}
	while (malloc(16) != NULL)
		;
}

static void give_back(void)
{
	while (count > 0) {
		count--;
		CHECK(munmap(taken[count].start, taken[count].bytes) == 0);
	}
}

static void *end(void *nothing)
{
	return nothing;
}

int main(void)
{
	struct rlimit all, few;
	pthread_t thread;
	printf("begin\n"); /* Standard output has its buffer now. */
	CHECK(getrlimit(RLIMIT_AS, &all) == 0);
	few = all;
	few.rlim_cur = 256 << 20;
	CHECK(setrlimit(RLIMIT_AS, &few) == 0);
	take_all();
	int error = pthread_create(&thread, NULL, end, NULL);
	printf("without memory: %s\n", error == EAGAIN ? "EAGAIN" : "something else");
	give_back();
	CHECK(setrlimit(RLIMIT_AS, &all) == 0);
	CHECK(pthread_create(&thread, NULL, end, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	printf("with memory: made\n");
	return 0;
}
