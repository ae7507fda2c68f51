/* A program that makes one virtual thread by name joins it, also where pthread_create makes platform
 * threads. */
#include <pthread.h>
#include <stdio.h>

/* Of the library that is preloaded. */
__attribute__((weak)) int pirn_is_virtual(pthread_t);
__attribute__((weak)) int pirn_create_virtual(pthread_t *, const pthread_attr_t *,
					      void *(*)(void *), void *);

static void *run(void *result)
{
	return pirn_is_virtual(pthread_self()) ? result : NULL;
}

int main(void)
{
	pthread_t thread;
	void *result = NULL;
	int made = pirn_create_virtual(&thread, NULL, run, &thread);
	int joined = pthread_join(thread, &result);

	printf("%d %d %s\n", made, joined, result == &thread ? "virtual" : "platform");
	return 0;
}
