// Streams that many threads write to, and read from.
#include "posix_checks.h"
#include <printf.h>
#include <stdio_ext.h>
#include <sys/socket.h>
#include <wchar.h>

size_t (*pirn_count_pthreads)(uint64_t *counts, size_t room); // used by other checks

// glibc's own names, and the names that fortified programs call.
void _IO_flockfile(FILE *stream);
void _IO_funlockfile(FILE *stream);
int _IO_getc(FILE *stream);
char *_IO_fgets(char *text, int size, FILE *stream);
size_t _IO_fread(void *data, size_t size, size_t count, FILE *stream);
ssize_t __getdelim(char **text, size_t *room, int end, FILE *stream);
int _IO_vfprintf(FILE *stream, const char *format, va_list arguments);
int _IO_printf(const char *format, ...);
int _IO_fprintf(FILE *stream, const char *format, ...);
int _IO_puts(const char *text);
int _IO_fputs(const char *text, FILE *stream);
int _IO_putc(int letter, FILE *stream);
size_t _IO_fwrite(const void *data, size_t size, size_t count, FILE *stream);
int _IO_fflush(FILE *stream);
char *__fgets_chk(char *text, size_t room, int size, FILE *stream);
size_t __fread_chk(void *data, size_t room, size_t size, size_t count, FILE *stream);
int __printf_chk(int flag, const char *format, ...);
int __fprintf_chk(FILE *stream, int flag, const char *format, ...);
int __vprintf_chk(int flag, const char *format, va_list arguments);
int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments);

enum { CROWD = 40, WAYS = 14 };
static FILE *shared;
static atomic_int begun;

__attribute__((format(printf, 2, 3))) static int write_by_list(int way, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int result;
	switch (way) {
	case 0:
		result = vfprintf(shared, format, arguments);
		break;
	case 1:
		result = _IO_vfprintf(shared, format, arguments);
		break;
	default:
		result = __vfprintf_chk(shared, 0, format, arguments);
	}
	va_end(arguments);
	return result;
}

static void *write_line(void *argument)
{
	int number = (int)(intptr_t)argument;
	begun++;
	switch (number % WAYS) {
	case 0:
		CHECK(fprintf(shared, "%s%c", "line", '\n') == 5);
		break;
	case 1:
		CHECK(fputs("line\n", shared) >= 0);
		break;
	case 2:
		CHECK(fwrite("line\n", 1, 5, shared) == 5);
		break;
	case 3:
		CHECK(__fprintf_chk(shared, 0, "%s%c%d%s", "li", 'n', 3, "e\n") == 6);
		break;
	case 4:
		CHECK(_IO_fprintf(shared, "%.1f\n", 1.5) == 4);
		break;
	case 5:
		CHECK(_IO_fputs("line\n", shared) >= 0 && fflush(shared) == 0);
		break;
	case 6:
		CHECK(_IO_fwrite("line\n", 5, 1, shared) == 1 && _IO_fflush(shared) == 0);
		break;
	case 7:
		flockfile(shared);
		CHECK(putc('a', shared) == 'a' && fputc('\n', shared) == '\n');
		funlockfile(shared);
		break;
	case 8:
		_IO_flockfile(shared);
		CHECK(_IO_putc('a', shared) == 'a' && putc('\n', shared) == '\n');
		_IO_funlockfile(shared);
		break;
	default:
		CHECK(write_by_list(number % WAYS - 9, "line %d\n", 5) == 7);
	}
	return NULL;
}

// One has locked a stream and waits; many want to write to it meanwhile.
void check_writers(void)
{
	pthread_t threads[CROWD];
	int lines = 0, letter;
	CHECK((shared = tmpfile()));
	begun = 0;
	flockfile(shared);
	for (intptr_t i = 0; i < CROWD; i++)
		threads[i] = begin(write_line, (void *)i);
	while (begun < CROWD)
		sched_yield();
	struct timespec moment = { 0, 20000000 };
	nanosleep(&moment, NULL);
	CHECK(ftell(shared) == 0);
	CHECK(fputs("first\n", shared) >= 0);
	funlockfile(shared);
	for (int i = 0; i < CROWD; i++)
		join(threads[i]);
	rewind(shared);
	while ((letter = getc(shared)) != EOF)
		lines += letter == '\n';
	say("lines %d, end %d, errors %d\n", lines, !!feof(shared), ferror(shared));
	CHECK(fclose(shared) == 0);
}

struct reader {
	int number, pipes[2];
};

static void *read_line(void *argument)
{
	struct reader *reader = argument;
	FILE *stream = fdopen(reader->pipes[0], "r");
	char line[8] = "", *text = NULL;
	size_t room = 0;
	CHECK(stream);
	begun++;
	errno = 77;
	switch (reader->number % 10) {
	case 0:
		CHECK(fgets(line, sizeof line, stream) == line);
		break;
	case 1:
		CHECK(fread(line, 1, 3, stream) == 3);
		break;
	case 2:
		CHECK(getline(&text, &room, stream) == 3 && strcpy(line, text));
		break;
	case 3:
		CHECK(getdelim(&text, &room, '\n', stream) == 3 && strcpy(line, text));
		break;
	case 4:
		CHECK(__getdelim(&text, &room, '\n', stream) == 3 && strcpy(line, text));
		break;
	case 5:
		CHECK(_IO_fgets(line, sizeof line, stream) == line);
		break;
	case 6:
		CHECK(_IO_fread(line, 3, 1, stream) == 1);
		break;
	case 7:
		CHECK(__fgets_chk(line, sizeof line, sizeof line, stream) == line);
		break;
	case 8:
		CHECK(__fread_chk(line, sizeof line, 1, 3, stream) == 3);
		break;
	default:
		line[0] = fgetc(stream), line[1] = getc(stream), line[2] = _IO_getc(stream);
	}
	CHECK(errno == 77 && strcmp(line, "hi\n") == 0);
	free(text);
	CHECK(getc(stream) == EOF && feof(stream) && fclose(stream) == 0);
	return NULL;
}

// Each waits for input of its own.
void check_readers(void)
{
	static struct reader readers[CROWD];
	pthread_t threads[CROWD];
	begun = 0;
	for (int i = 0; i < CROWD; i++) {
		readers[i].number = i;
		CHECK(pipe(readers[i].pipes) == 0);
		threads[i] = begin(read_line, &readers[i]);
	}
	while (begun < CROWD)
		sched_yield();
	for (int i = CROWD - 1; i >= 0; i--)
		CHECK(write(readers[i].pipes[1], "hi\n", 3) == 3 && close(readers[i].pipes[1]) == 0);
	for (int i = 0; i < CROWD; i++)
		join(threads[i]);
	int pipes[2];
	CHECK(pipe2(pipes, O_NONBLOCK) == 0);
	FILE *stream = fdopen(pipes[0], "r");
	SAY_RESULT(getc(stream)); // it does not wait
	CHECK(fclose(stream) == 0 && close(pipes[1]) == 0);
}

__attribute__((format(printf, 1, 2))) static void print_by_list(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	CHECK(vprintf(format, arguments) == 8);
	va_end(arguments);
	va_start(arguments, format);
	CHECK(__vprintf_chk(0, format, arguments) == 8);
	va_end(arguments);
}

static void *print_all(void *argument)
{
	CHECK(printf("%s %g\n", "printed", 0.5) == 12 && _IO_printf("printed\n") == 8);
	CHECK(__printf_chk(0, "%s\n", "printed") == 8 && puts("printed") >= 0);
	CHECK(_IO_puts("printed") >= 0 && putchar('\n') == '\n' && fflush(NULL) == 0);
	print_by_list("%s\n", "printed");
	CHECK(fflush(stdout) == 0);
	return argument;
}

// The standard streams.
void check_standard(void)
{
	char text[16] = "";
	int out = dup(1), in = dup(0), pipes[2];
	FILE *file = tmpfile();
	CHECK(out >= 0 && in >= 0 && file && pipe(pipes) == 0);
	CHECK(fflush(stdout) == 0 && dup2(fileno(file), 1) == 1 && dup2(pipes[0], 0) == 0);
	join(begin(print_all, NULL));
	CHECK(dup2(out, 1) == 1);
	rewind(file);
	while (fgets(text, sizeof text, file))
		say("%s", text);
	CHECK(write(pipes[1], "x", 1) == 1 && getchar() == 'x');
	CHECK(dup2(in, 0) == 0 && fclose(file) == 0);
	CHECK(close(in) == 0 && close(out) == 0 && close(pipes[0]) == 0 && close(pipes[1]) == 0);
}

static int prompts[2];

static void *ask(void *argument)
{
	printf("name? ");
	CHECK(fgetc(argument) == 'x');
	return NULL;
}

// The prompt is written before its thread waits for the answer.
static void answer(int reading, int writing, int buffering)
{
	char text[8] = "";
	FILE *stream = fdopen(reading, "r");
	CHECK(stream && (buffering == _IOFBF || setvbuf(stream, NULL, buffering, 0) == 0));
	pthread_t asks = begin(ask, stream);
	CHECK(read(prompts[0], text, 6) == 6 && strcmp(text, "name? ") == 0);
	CHECK(write(writing, "x\n", 2) == 2);
	join(asks);
	CHECK(fclose(stream) == 0 && close(writing) == 0);
}

void check_prompts(void)
{
	int out = dup(1), pipes[2], terminal = posix_openpt(O_RDWR | O_NOCTTY);
	CHECK(pipe(prompts) == 0 && fflush(stdout) == 0 && dup2(prompts[1], 1) == 1);
	CHECK(setvbuf(stdout, NULL, _IOLBF, 0) == 0);
	CHECK(pipe(pipes) == 0);
	answer(pipes[0], pipes[1], _IONBF);
	CHECK(pipe(pipes) == 0);
	answer(pipes[0], pipes[1], _IOLBF);
	CHECK(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	answer(open(ptsname(terminal), O_RDWR | O_NOCTTY), terminal, _IOFBF);
	CHECK(dup2(out, 1) == 1 && setvbuf(stdout, NULL, _IOFBF, BUFSIZ) == 0);
	CHECK(close(out) == 0 && close(prompts[0]) == 0 && close(prompts[1]) == 0);
}

static int print_both(FILE *stream, const struct printf_info *info, const void *const *arguments)
{
	(void)info, (void)arguments;
	return fprintf(stream, "a") + (fputs("b", stream) >= 0) + (putc('c', stream) == 'c');
}

static int no_arguments(const struct printf_info *info, size_t room, int *types, int *sizes)
{
	(void)info, (void)room, (void)types, (void)sizes;
	return 0;
}

static void *write_unlocked(void *argument)
{
	char text[8] = "";
	const char *volatile format = "%W"; // the compiler does not know it
	CHECK(snprintf(text, sizeof text, format) == 3 && strcmp(text, "abc") == 0);
	CHECK(fputs("text", argument) >= 0);
	return NULL;
}

// Streams without a lock, and those whose lock is the program's business.
void check_unlocked(void)
{
	FILE *stream = tmpfile();
	CHECK(stream && register_printf_specifier('W', print_both, no_arguments) == 0);
	__fsetlocking(stream, FSETLOCKING_BYCALLER);
	flockfile(stream);
	join(begin(write_unlocked, stream));
	CHECK(ftell(stream) == 4);
	funlockfile(stream);
	CHECK(fclose(stream) == 0);
}

static void *answer_it(void *argument)
{
	char text[16] = "";
	int *socket = argument;
	CHECK(read(*socket, text, 9) == 9 && strcmp(text, "question\n") == 0);
	CHECK(write(*socket, "x", 1) == 1);
	return NULL;
}

static void *read_nothing(void *argument)
{
	char text[8], *none = NULL;
	wchar_t wide[8];
	int pipes[2], pair[2];
	size_t room = 0;
	CHECK(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	FILE *in = fdopen(pipes[0], "r"), *out = fdopen(pipes[1], "w"), *both = fdopen(pair[0], "r+");
	SAY_RESULT(fread(text, 0, 1, in) + fread(text, 1, 0, in));
	SAY_RESULT(fgets(text, 1, in) == text);
	SAY_RESULT(getdelim(NULL, &room, '\n', in));
	CHECK(getdelim(&none, NULL, '\n', in) == -1); // glibc 2.41 leaves errno as it is
	SAY_RESULT(fgetc(out)); // only for writing
	CHECK(write(pipes[1], "ab", 2) == 2 && getc(in) == 'a' && ungetc('q', in) == 'q');
	CHECK(getc(in) == 'q' && getc(in) == 'b');
	CHECK(fclose(in) == 0 && fclose(out) == 0 && pipe(pipes) == 0);
	in = fdopen(pipes[0], "r");
	CHECK(write(pipes[1], "wide\nx", 6) == 6 && fgetws(wide, 8, in) == wide);
	SAY_RESULT(getc(in)); // not for bytes
	CHECK(fputs("question\n", both) >= 0); // written before the answer is read
	pthread_t answers = begin(answer_it, &pair[1]);
	SAY_RESULT(getc(both) == 'x');
	join(answers);
	CHECK(shutdown(pair[1], SHUT_WR) == 0 && getc(both) == EOF);
	CHECK(fclose(in) == 0 && fclose(both) == 0 && close(pair[1]) == 0 && close(pipes[1]) == 0);
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	CHECK(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	in = fdopen(open(ptsname(terminal), O_RDWR | O_NOCTTY), "r");
	CHECK(in && write(terminal, "\4", 1) == 1 && getc(in) == EOF);
	SAY_RESULT(getc(in)); // the end is the end
	CHECK(fclose(in) == 0 && close(terminal) == 0);
	return argument;
}

// What does not read does not wait.
void check_nothing_read(void)
{
	join(begin(read_nothing, NULL));
}
