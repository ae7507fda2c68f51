/* The protocol of bench/PROTOCOL.md, for programs in C. */

#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdint.h>

/* Points in time, or the time between two: on the clock, and of all processors for this process.
 * In nanoseconds. */
typedef struct {
    uint64_t wall, processor;
} times;

times now(void);
times since(times start);

/* Reads the parameters key=value of the command line. */
void read_params(int count, char **arguments);

/* Returns the value of a parameter. Without it the program ends. */
uint64_t param(const char *key);

/* Reports a metric and its share of the processors, as NAME and "NAME, processor". */
void report(const char *metric, times taken, uint64_t pieces, const char *unit, uint64_t done,
            uint64_t due);

/* Stands still, to be looked at from outside, until the harness says "go". */
void stand_still(const char *place, uint64_t count);

/* Prints a line of the protocol. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns whether the harness wants another round. Fails if it says something else. */
int another_round(void);

/* Waits for the end of the input. */
void until_end_of_input(void);

/* Reports what failed, with the error's text, and ends the process. */
_Noreturn void fail(const char *what, int error);

/* Returns the sum of 0 ... n-1. */
uint64_t sum_below(uint64_t n);

#endif
