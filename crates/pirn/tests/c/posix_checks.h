// What checks share that run natively and with virtual threads, and must say the same.
#pragma once
#include "pthread_checks.h"
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>

// Appends to the file that the two runs are compared by.
__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	int file = open(getenv("CHECK_SAYS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
	CHECK(file >= 0 && write(file, text, length) == length && close(file) == 0);
}

static inline pthread_t begin(void *(*start)(void *), void *argument)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, start, argument) == 0);
	return thread;
}

static inline void *join(pthread_t thread)
{
	void *result;
	CHECK(pthread_join(thread, &result) == 0);
	return result;
}

// Says what a call returns, and the error.
#define SAY_RESULT(call) \
	do { \
		errno = 0; \
		long result = (call); \
		say("%s: %ld, %d\n", #call, result, result == -1 ? errno : 0); \
	} while (0)
