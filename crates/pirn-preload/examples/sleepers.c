/* Ten thousand threads, each with a stack as large as ever, that wait to be woken.
 *
 *     cc sleepers.c $(pkg-config --cflags --libs pirn) -o sleepers
 */
#include <pirn.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 10000 };

static void *sleeper(void *number)
{
	if (!pirn_is_virtual(pthread_self()))
		abort();
	pirn_park();
	return number;
}

static void *platform(void *unused)
{
	(void)unused;
	return pirn_is_virtual(pthread_self()) ? NULL : stdout;
}

static void check(int error, const char *what)
{
	if (error != 0) {
		fprintf(stderr, "%s: error %d\n", what, error);
		exit(1);
	}
}

int main(void)
{
	static pthread_t threads[THREADS];
	long sum = 0;
	for (long i = 0; i < THREADS; i++)
		check(pthread_create(&threads[i], NULL, sleeper, (void *)i), "pthread_create");
	for (int i = 0; i < THREADS; i++)
		pirn_unpark(threads[i]);
	for (int i = 0; i < THREADS; i++) {
		void *number;
		check(pthread_join(threads[i], &number), "pthread_join");
		sum += (long)number;
	}
	printf("%d virtual threads, sum %ld\n", THREADS, sum);

	pthread_t other;
	void *result;
	check(pirn_create_platform(&other, NULL, platform, NULL), "pirn_create_platform");
	check(pthread_join(other, &result), "pthread_join");
	check(pirn_create_virtual(&other, NULL, platform, NULL), "pirn_create_virtual");
	void *none;
	check(pthread_join(other, &none), "pthread_join");
	printf("one of each kind: %s\n", result != NULL && none == NULL ? "yes" : "no");

	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	pirn_unpark(pthread_self());
	int first = pirn_park_until(&now);
	int second = pirn_park_until(&now);
	printf("a permit: %d, none: %s\n", first, second != 0 ? "timed out" : "?");
	return 0;
}
