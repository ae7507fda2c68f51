// What checks must know of the processor:
//
//   PC(context), SP(context)  registers in the context of a handler
//   KEPT(context), KEPT_NAME  one that calls keep
//   LOOP_WHILE_7              a loop that ends when the register of operand 0 is not 7 any more
//   UNDEFINED                 an instruction for which the kernel sends SIGILL, of UNDEFINED_SIZE bytes
//   float_controls()          rounding, treatment of tiny numbers and the like, in one word, in which
//                             FLOAT_FLAGS are what has happened
//   float_variant()           such a word, changed in other things than rounding, in one of 4 ways
//   FLOAT_DEFAULT             what a thread begins with; FLOAT_DOWN and FLOAT_UP round otherwise
//   read_rights()             the rights of all protection keys
//   changed_rights()          the same, but for one key, which gets one of 3 rights
#pragma once
#include <stdint.h>
#include <ucontext.h>

#if defined(__x86_64__)

#define PC(context) ((context)->uc_mcontext.gregs[REG_RIP])
#define SP(context) ((context)->uc_mcontext.gregs[REG_RSP])
#define KEPT(context) ((context)->uc_mcontext.gregs[REG_R12])
#define KEPT_NAME "r12"
#define LOOP_WHILE_7 "loop_begins: cmp $7, %0\n je loop_begins\n loop_ends:"
#define UNDEFINED "ud2"
enum { UNDEFINED_SIZE = 2 };

// The word of the x87 unit, and MXCSR.
enum { FLOAT_DEFAULT = 0x037f1f80, FLOAT_DOWN = 0x077fbf80, FLOAT_UP = 0x0b7f5fbf, FLOAT_FLAGS = 0x3f };

static inline uint64_t float_controls(void)
{
	unsigned short x87;
	__asm__ volatile("fnstcw %0" : "=m"(x87));
	return (uint64_t)x87 << 16 | __builtin_ia32_stmxcsr();
}

static inline void set_float_controls(uint64_t controls)
{
	unsigned short x87 = controls >> 16;
	__builtin_ia32_ldmxcsr(controls & 0xffff);
	__asm__ volatile("fldcw %0" : : "m"(x87));
}

static inline uint64_t float_variant(uint64_t controls, int i)
{
	controls &= ~0x3008040ull;
	controls |= (i & 1 ? 0x8000 : 0) | (i & 2 ? 0x40 : 0);
	return controls | (i == 1 ? 0x2000000 : 0x3000000); // double precision, or extended
}

static inline uint64_t read_rights(void)
{
	unsigned rights, high;
	__asm__ volatile("rdpkru" : "=a"(rights), "=d"(high) : "c"(0));
	return rights;
}

static inline void write_rights(uint64_t rights)
{
	__asm__ volatile("wrpkru" : : "a"((unsigned)rights), "c"(0), "d"(0) : "memory");
}

static inline uint64_t changed_rights(uint64_t rights, unsigned key, unsigned i)
{
	return (rights & ~(3ull << 2 * key)) | (uint64_t)(i % 3) << 2 * key;
}

#elif defined(__aarch64__)

#define PC(context) ((context)->uc_mcontext.pc)
#define SP(context) ((context)->uc_mcontext.sp)
#define KEPT(context) ((context)->uc_mcontext.regs[19])
#define KEPT_NAME "x19"
#define LOOP_WHILE_7 "loop_begins: cmp %0, #7\n b.eq loop_begins\n loop_ends:"
#define UNDEFINED "udf #0"
enum { UNDEFINED_SIZE = 4 };

// FPCR: rounding in bits 22 and 23, and tiny numbers taken for zero (24).
enum { FLOAT_DEFAULT = 0, FLOAT_DOWN = 6 << 22, FLOAT_UP = 5 << 22, FLOAT_FLAGS = 0 };

static inline uint64_t float_controls(void)
{
	uint64_t controls;
	__asm__ volatile("mrs %0, fpcr" : "=r"(controls));
	return controls;
}

static inline void set_float_controls(uint64_t controls)
{
	__asm__ volatile("msr fpcr, %0" : : "r"(controls));
}

static inline uint64_t float_variant(uint64_t controls, int i)
{
	controls &= ~(3ull << 24);
	return controls | (uint64_t)i << 24; // tiny numbers taken for zero; the default NaN
}

static inline uint64_t read_rights(void)
{
	uint64_t rights;
	__asm__ volatile("mrs %0, s3_3_c10_c2_4" : "=r"(rights)); // POR_EL0
	return rights;
}

static inline void write_rights(uint64_t rights)
{
	__asm__ volatile("msr s3_3_c10_c2_4, %0\n isb" : : "r"(rights) : "memory");
}

static inline uint64_t changed_rights(uint64_t rights, unsigned key, unsigned i)
{
	static const uint64_t all_read_none[] = { 7, 1, 0 };
	return (rights & ~(15ull << 4 * key)) | all_read_none[i % 3] << 4 * key;
}

#endif
