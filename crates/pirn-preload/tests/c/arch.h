/* What depends on the processor: a system call without the C library. Returns what the kernel
 * does, an error as a negative number. */
static inline long inline_call(long number, long a, long b, long c)
{
#ifdef __aarch64__
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return number;
#endif
}
