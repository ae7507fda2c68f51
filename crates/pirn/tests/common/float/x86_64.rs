//! x86-64.

/// The control words of both floating-point units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    sse: u32,
    x87: u16,
}

impl Control {
    /// Rounding to nearest, all exceptions masked.
    pub const DEFAULT: Control = Control {
        sse: 0x1F80,
        x87: 0x037F,
    };

    /// Returns the default with another rounding mode, of four.
    pub fn rounding(mode: usize) -> Control {
        Control {
            sse: Self::DEFAULT.sse | (mode as u32) << 13,
            x87: Self::DEFAULT.x87 | (mode as u16) << 10,
        }
    }

    pub fn get() -> Control {
        let mut control = Control { sse: 0, x87: 0 };
        // SAFETY: stores the two words where they belong.
        unsafe {
            std::arch::asm!(
                "stmxcsr [{}]", "fnstcw [{}]",
                in(reg) &mut control.sse, in(reg) &mut control.x87,
            );
        }
        control.sse &= !0x3F; // without the flags of past exceptions
        control
    }

    /// Sets the control words. Until the return to the default, no Rust code may calculate.
    pub fn set(self) {
        // SAFETY: loads valid words; the tests do no floating-point arithmetic of their own.
        unsafe {
            std::arch::asm!(
                "ldmxcsr [{}]", "fldcw [{}]",
                in(reg) &self.sse, in(reg) &self.x87,
            );
        }
    }
}
