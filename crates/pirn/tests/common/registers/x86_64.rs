//! x86-64.

use std::arch::asm;

/// Instructions that fill all registers that code can keep values in, and the red zone.
macro_rules! fill {
    () => {
        concat!(
            "vmovdqu ymm0, [{pattern}]\n",
            "vpaddq ymm1, ymm0, ymm0\n",
            "vpaddq ymm2, ymm1, ymm0\n",
            "vpaddq ymm3, ymm2, ymm0\n",
            "vpaddq ymm4, ymm3, ymm0\n",
            "vpaddq ymm5, ymm4, ymm0\n",
            "vpaddq ymm6, ymm5, ymm0\n",
            "vpaddq ymm7, ymm6, ymm0\n",
            "vpaddq ymm8, ymm7, ymm0\n",
            "vpaddq ymm9, ymm8, ymm0\n",
            "vpaddq ymm10, ymm9, ymm0\n",
            "vpaddq ymm11, ymm10, ymm0\n",
            "vpaddq ymm12, ymm11, ymm0\n",
            "vpaddq ymm13, ymm12, ymm0\n",
            "vpaddq ymm14, ymm13, ymm0\n",
            "vpaddq ymm15, ymm14, ymm0\n",
            "mov [rsp - 8], {seed}\n",
            "mov [rsp - 64], {seed}\n",
            "mov [rsp - 128], {seed}\n",
            "mov r8, {seed}\n",
            "lea r9, [r8 + 1]\n",
            "lea r10, [r8 + 2]\n",
            "lea r11, [r8 + 3]\n",
            "lea r12, [r8 + 4]\n",
            "lea r13, [r8 + 5]\n",
            "lea r14, [r8 + 6]\n",
            "lea r15, [r8 + 7]\n",
            "fld1\n",
            "fldpi\n",
            "fldl2e\n", // three deep in the x87 stack
        )
    };
}

/// Instructions that compare them with what they were filled with, and note differences in `wrong`.
macro_rules! compare {
    () => {
        concat!(
            "pushfq\n",
            "pop rax\n",
            "cld\n",
            "test eax, 0x400\n",
            "jnz 4f\n",
            "add {wrong}, 2\n",
            "4:\n",
            "fldl2e\n",
            "fcomip st, st(1)\n",
            "je 5f\n",
            "add {wrong}, 4\n",
            "5:\n",
            "fstp st(0)\n",
            "fldpi\n",
            "fcomip st, st(1)\n",
            "je 5f\n",
            "add {wrong}, 8\n",
            "5:\n",
            "fstp st(0)\n",
            "fld1\n",
            "fcomip st, st(1)\n",
            "je 5f\n",
            "add {wrong}, 16\n",
            "5:\n",
            "fstp st(0)\n",
            "cmp [rsp - 64], {seed}\n",
            "je 6f\n",
            "add {wrong}, 32\n",
            "6:\n",
            "cmp [rsp - 128], {seed}\n",
            "je 6f\n",
            "add {wrong}, 64\n",
            "6:\n",
            "sub r15, r14\n",
            "sub r13, r12\n",
            "sub r11, r10\n",
            "sub r9, r8\n",
            "add r15, r13\n",
            "add r15, r11\n",
            "add r15, r9\n",
            "cmp r15, 4\n",
            "je 6f\n",
            "add {wrong}, 128\n",
            "6:\n",
            "cmp r8, {seed}\n",
            "je 6f\n",
            "add {wrong}, 256\n",
            "6:\n",
            // Each register must be the one before plus the first.
            "vpsubq ymm15, ymm15, ymm14\n",
            "vpsubq ymm14, ymm14, ymm13\n",
            "vpsubq ymm13, ymm13, ymm12\n",
            "vpsubq ymm12, ymm12, ymm11\n",
            "vpsubq ymm11, ymm11, ymm10\n",
            "vpsubq ymm10, ymm10, ymm9\n",
            "vpsubq ymm9, ymm9, ymm8\n",
            "vpsubq ymm8, ymm8, ymm7\n",
            "vpsubq ymm7, ymm7, ymm6\n",
            "vpsubq ymm6, ymm6, ymm5\n",
            "vpsubq ymm5, ymm5, ymm4\n",
            "vpsubq ymm4, ymm4, ymm3\n",
            "vpsubq ymm3, ymm3, ymm2\n",
            "vpsubq ymm2, ymm2, ymm1\n",
            "vpsubq ymm1, ymm1, ymm0\n",
            "vmovdqu ymm0, [{pattern}]\n",
            "vpxor ymm1, ymm1, ymm0\n",
            "vpxor ymm2, ymm2, ymm0\n",
            "vpor ymm1, ymm1, ymm2\n",
            "vpxor ymm3, ymm3, ymm0\n",
            "vpxor ymm4, ymm4, ymm0\n",
            "vpor ymm3, ymm3, ymm4\n",
            "vpxor ymm5, ymm5, ymm0\n",
            "vpxor ymm6, ymm6, ymm0\n",
            "vpor ymm5, ymm5, ymm6\n",
            "vpxor ymm7, ymm7, ymm0\n",
            "vpxor ymm8, ymm8, ymm0\n",
            "vpor ymm7, ymm7, ymm8\n",
            "vpxor ymm9, ymm9, ymm0\n",
            "vpxor ymm10, ymm10, ymm0\n",
            "vpor ymm9, ymm9, ymm10\n",
            "vpxor ymm11, ymm11, ymm0\n",
            "vpxor ymm12, ymm12, ymm0\n",
            "vpor ymm11, ymm11, ymm12\n",
            "vpxor ymm13, ymm13, ymm0\n",
            "vpxor ymm14, ymm14, ymm0\n",
            "vpor ymm13, ymm13, ymm14\n",
            "vpxor ymm15, ymm15, ymm0\n",
            "vpor ymm1, ymm1, ymm15\n",
            "vpor ymm1, ymm1, ymm3\n",
            "vpor ymm1, ymm1, ymm5\n",
            "vpor ymm1, ymm1, ymm7\n",
            "vpor ymm1, ymm1, ymm9\n",
            "vpor ymm1, ymm1, ymm11\n",
            "vpor ymm1, ymm1, ymm13\n",
            "vptest ymm1, ymm1\n",
            "jz 6f\n",
            "add {wrong}, 512\n",
            "6:\n",
            "vzeroupper\n"
        )
    };
}

/// Fills all registers that code can keep values in, computes for a while, and compares. Returns
/// whether all were as they should be.
pub fn registers_stay(seed: u64) -> bool {
    let mut wrong: u64 = 0;
    let pattern: [u64; 4] = [seed, !seed, seed.rotate_left(13), seed.rotate_left(31)];
    // SAFETY: the instructions keep to the registers that are declared, and to the red zone.
    unsafe {
        asm!(
            fill!(),
            "mov rax, 20000",
            "std", "stc",
            // Neither changes the carry, and the direction must stay.
            "2:", "dec rax", "jnz 2b",
            "jc 3f", "inc {wrong}", "3:",
            compare!(),
            pattern = in(reg) pattern.as_ptr(),
            seed = in(reg) seed,
            wrong = inout(reg) wrong,
            out("rax") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
            out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
            out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
            out("ymm15") _,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
        );
    }
    assert_eq!(wrong, 0, "bits say which registers");
    true
}
