//! AArch64.

/// FPCR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control(u64);

impl Control {
    /// Rounding to nearest, all exceptions masked.
    pub const DEFAULT: Control = Control(0);

    /// Returns the default with another rounding mode, of four.
    pub fn rounding(mode: usize) -> Control {
        Control((mode as u64) << 22)
    }

    pub fn get() -> Control {
        let control;
        // SAFETY: reads a register.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) control) };
        Control(control)
    }

    /// Sets the control word. Until the return to the default, no Rust code may calculate.
    pub fn set(self) {
        // SAFETY: a valid word; the tests do no floating-point arithmetic of their own.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) self.0) };
    }
}
