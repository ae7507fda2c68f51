/* Threads of OpenMP, more than there are carriers, at barriers. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
	int sum = 0, rounds = 0;

	omp_set_num_threads(32);
	for (int i = 0; i < 20; i++) {
#pragma omp parallel reduction(+ : sum)
		{
			sum += omp_get_thread_num();
#pragma omp barrier
#pragma omp single
			rounds++;
		}
	}
	printf("%d in %d rounds\n", sum, rounds);
	return 0;
}
