//! Alternative signal stacks of virtual threads: `sigaltstack`.
//!
//! The kernel knows the carrier's alternative stack. The stack that a virtual thread sets is noted
//! in its thread-local storage, and its handlers with `SA_ONSTACK` are called on that stack:
//!
//! ```text
//!   a fault, on the carrier's stack            a signal to the thread, delivered on its own stack
//!   |  the kernel's frame        |             |  frames of the thread      |
//!   |  `dispatch`                |             |  `call_handler`            |
//!   +----------------------------+             +----------------------------+
//!        | call_on_stack                            | call_on_stack
//!        v                                          v
//!   |  the program's handler     |  <- the thread's alternative stack, in both cases
//! ```
//!
//! While the handler of a fault runs, the kernel is told that this stack is the alternative one: a
//! second fault would otherwise write over the frames on the carrier's. It is told the carrier's
//! again before the handler is left, by a return or by a jump ([`leave`]).
//!
//! A thread that has set no stack is shown its carrier's. Otherwise Rust's `std` would map one for
//! each thread, and a process can have only 65,530 mappings.

use crate::registry::interposed;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr;
use libc::stack_t;
use pirn_libc_macros::libc_fn;
use pirn_rt::arch;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread;

interposed! {
    family "Alternative signal stacks" for Correctness,
        cannot "preempt a thread in a handler on its alternative stack";

    Own by hand { sigaltstack }
}

/// Disarms the stack while a handler runs on it. Missing in the `libc` crate.
const SS_AUTODISARM: c_int = 1 << 31;

/// The alternative stack that a virtual thread has set.
#[derive(Clone, Copy)]
enum Own {
    /// None: it is shown the carrier's.
    Carriers,
    Disabled,
    At(Stack),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stack {
    start: usize,
    bytes: usize,
    disarms: bool,
}

impl Stack {
    fn range(&self) -> Range<usize> {
        self.start..self.start.saturating_add(self.bytes)
    }

    fn contains(&self, sp: usize) -> bool {
        // As the kernel checks it: the end, where an empty stack begins, is inside.
        sp > self.start && sp - self.start <= self.bytes
    }

    /// Returns where a handler begins that interrupts code with this stack pointer.
    fn top(&self, interrupted: usize) -> usize {
        match self.contains(interrupted) {
            true => interrupted - arch::RED_ZONE,
            false => self.range().end,
        }
    }

    fn for_kernel(&self) -> stack_t {
        stack_t {
            ss_sp: ptr::with_exposed_provenance_mut(self.start),
            ss_flags: 0,
            ss_size: self.bytes,
        }
    }
}

thread_local! {
    static OWN: Cell<Own> = const { Cell::new(Own::Carriers) };
    /// On a virtual thread in the handler of a fault: the carrier's stack, which the kernel does
    /// not know meanwhile, in the frame of [`in_fault`]. Null otherwise.
    static HIDDEN: Cell<*const Stack> = const { Cell::new(ptr::null()) };
}

fn own() -> Option<Stack> {
    match OWN.get() {
        Own::At(stack) => Some(stack),
        _ => None,
    }
}

/// Calls `f` on the stack that the running virtual thread has set, if it is not on it already.
///
/// # Safety
/// The contract of `f`.
pub(super) unsafe fn call_on_own(f: impl FnOnce()) {
    match own() {
        Some(stack) if !stack.contains(arch::stack_pointer()) => {
            // SAFETY: the program's, for this, and no frame is on it; the caller's contract.
            unsafe { call_on(stack, stack.range().end, f) }
        }
        _ => f(),
    }
}

/// Calls `f` on a stack, below `top`.
///
/// # Safety
/// As for [`arch::call_on_stack`]; the contract of `f`.
unsafe fn call_on<F: FnOnce()>(stack: Stack, top: usize, f: F) {
    unsafe extern "C-unwind" fn run<F: FnOnce()>(f: *mut c_void) {
        // SAFETY: from below, once.
        let f = unsafe { f.cast::<Option<F>>().as_mut() };
        if let Some(f) = f.and_then(Option::take) {
            f();
        }
    }
    let mut f = Some(f);
    if stack.disarms {
        OWN.set(Own::Disabled);
    }
    // SAFETY: the caller's contract; as deep as the program has made it.
    unsafe { arch::call_on_stack(top & !15, run::<F>, (&raw mut f).cast()) };
    if stack.disarms {
        OWN.set(Own::At(stack));
    }
}

/// Makes the kernel use a stack. Must not be called on the stack that the kernel uses.
fn tell_kernel(stack: Stack) {
    let new = stack.for_kernel();
    // SAFETY: the program's stack, or the carrier's.
    let _ = unsafe { call!(libc::SYS_sigaltstack, &raw const new, 0) };
}

/// Calls the handler of a fault with the range of the alternative stack that the handler runs on:
/// the running virtual thread's own, if the thread has set one and the kernel has switched to the
/// carrier's, which is `alternative`.
///
/// # Safety
/// `context` is the third argument of the handler that is running; the contract of `handler`.
pub(crate) unsafe fn in_fault(
    context: *const c_void,
    alternative: Range<usize>,
    handler: impl FnOnce(&Range<usize>),
) {
    let carriers = Stack {
        start: alternative.start,
        bytes: alternative.len(),
        disarms: false,
    };
    let stack = own().filter(|own| *own != carriers && carriers.contains(arch::stack_pointer()));
    let Some(stack) = stack else {
        return handler(&alternative);
    };
    // SAFETY: the caller's contract.
    let interrupted = unsafe { arch::Interruption::new(context.cast_mut()) }.sp();
    let body = || {
        tell_kernel(stack);
        HIDDEN.set(&raw const carriers);
        handler(&stack.range());
    };
    let _left = Left; // Also if the handler unwinds.
    // SAFETY: the caller's contract; the stack is the program's, and what it interrupts above.
    unsafe { call_on(stack, stack.top(interrupted), body) };
}

/// Ends a handler that was called on the thread's own stack.
struct Left;

impl Drop for Left {
    fn drop(&mut self) {
        leave();
    }
}

/// Tells the kernel the carrier's stack again, if the running thread is about to leave a handler
/// that runs on the thread's own stack.
pub(crate) fn leave() {
    // SAFETY: in a frame of a handler that has not been left yet.
    let Some(&carriers) = (unsafe { HIDDEN.replace(ptr::null()).as_ref() }) else {
        return;
    };
    match carriers.contains(arch::stack_pointer()) {
        true => tell_kernel(carriers),
        false => {
            let body = || tell_kernel(carriers);
            // SAFETY: the frames on the carrier's stack belong to the handler that is left.
            unsafe { call_on(carriers, carriers.range().end, body) }
        }
    }
}

/// Shows what the running virtual thread has set.
fn shown(own: Own, sp: usize) -> Result<stack_t, Errno> {
    // SAFETY: all zeros is valid.
    let mut shown: stack_t = unsafe { core::mem::zeroed() };
    match own {
        Own::At(stack) => {
            shown = stack.for_kernel();
            if stack.disarms {
                shown.ss_flags = SS_AUTODISARM;
            } else if stack.contains(sp) {
                shown.ss_flags = libc::SS_ONSTACK;
            }
        }
        Own::Disabled => shown.ss_flags = libc::SS_DISABLE,
        // SAFETY: the kernel writes one.
        Own::Carriers => drop(unsafe { call!(libc::SYS_sigaltstack, 0, &raw mut shown) }?),
    }
    Ok(shown)
}

/// Returns what a program asks for, as the kernel checks it.
fn wanted(new: &stack_t) -> Result<Own, Errno> {
    const SMALLEST: usize = 2048; // MINSIGSTKSZ, the oldest of its values.
    let disarms = new.ss_flags & SS_AUTODISARM != 0;
    match new.ss_flags & !SS_AUTODISARM {
        libc::SS_DISABLE => Ok(Own::Disabled),
        0 | libc::SS_ONSTACK if new.ss_size < SMALLEST => Err(Errno(libc::ENOMEM)),
        0 | libc::SS_ONSTACK => Ok(Own::At(Stack {
            start: new.ss_sp.expose_provenance(),
            bytes: new.ss_size,
            disarms,
        })),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// Changes the alternative stack of the running virtual thread.
///
/// # Safety
/// As for `sigaltstack`.
unsafe fn change(new: *const stack_t, old: *mut stack_t) -> SysResult {
    let sp = arch::stack_pointer();
    let before = OWN.get();
    // SAFETY: the caller's contract. Read before it is written: the two may be the same.
    let wanted = unsafe { new.as_ref() }.map(wanted);
    if !old.is_null() {
        // SAFETY: the caller's contract.
        unsafe { old.write(shown(before, sp)?) };
    }
    if let Some(wanted) = wanted {
        if matches!(before, Own::At(stack) if !stack.disarms && stack.contains(sp)) {
            return Err(Errno(libc::EPERM));
        }
        OWN.set(wanted?);
    }
    Ok(0)
}

#[libc_fn]
pub unsafe fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int {
    let result = match vthread::current() {
        Some(_) => change(new, old),
        None => call!(libc::SYS_sigaltstack, new, old),
    };
    sys::to_c(result) as c_int
}
