#include "protocol.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char **params;
static int param_count;

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

times now(void) {
    return (times){nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_PROCESS_CPUTIME_ID)};
}

times since(times start) {
    times end = now();
    return (times){end.wall - start.wall, end.processor - start.processor};
}

void read_params(int count, char **arguments) {
    params = arguments;
    param_count = count;
}

uint64_t param(const char *key) {
    size_t length = strlen(key);
    for (int i = 0; i < param_count; i++)
        if (strncmp(params[i], key, length) == 0 && params[i][length] == '=')
            return strtoull(params[i] + length + 1, NULL, 10);
    say("{\"error\":\"the parameter %s is missing\"}", key);
    _exit(2);
}

void report(const char *metric, times taken, uint64_t pieces, const char *unit, uint64_t done,
            uint64_t due) {
    const char *line = "{\"metric\":\"%s%s\",\"value\":%.3f,\"unit\":\"%s\",\"done\":%llu,"
                       "\"due\":%llu}\n";
    double each = pieces > 0 ? (double)pieces : 1;
    unsigned long long did = done, must = due;
    printf(line, metric, "", (double)taken.wall / each, unit, did, must);
    printf(line, metric, ", processor", (double)taken.processor / each, unit, did, must);
    fflush(stdout);
}

void say(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    fflush(stdout);
}

/* Returns whether a line came that is this word. */
static int next_is(const char *word) {
    char line[64];
    if (!fgets(line, sizeof line, stdin))
        return 0;
    line[strcspn(line, "\r\n")] = 0;
    if (strcmp(line, word) == 0)
        return 1;
    say("{\"error\":\"expected %s\"}", word);
    _exit(2);
}

int another_round(void) {
    return next_is("round");
}

void stand_still(const char *place, uint64_t count) {
    say("{\"at\":\"%s\",\"count\":%llu}", place, (unsigned long long)count);
    if (!next_is("go"))
        _exit(0);
}

void until_end_of_input(void) {
    while (getchar() != EOF)
        ;
}

void fail(const char *what, int error) {
    say("{\"error\":\"%s: %s\"}", what, strerror(error));
    _exit(1);
}

uint64_t sum_below(uint64_t n) {
    return n == 0 ? 0 : n * (n - 1) / 2;
}
