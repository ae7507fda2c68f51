//! What a reader of a stack needs to know of the machine. Each processor's switch leaves its words
//! at the same places.

use super::{call_as_pthread, fetch_u64};
use core::arch::global_asm;

/// Bytes that the switch leaves on the stack of what it suspends.
pub(crate) const SAVED_BYTES: usize = 32;

/// Returns where a suspended context goes on, its stack pointer and its frame pointer, given what
/// the `switch` has saved. A drawing at the head of that file shows where they are.
///
/// # Safety
/// The runtime's handler of faults is in place.
pub unsafe fn saved_registers(sp: usize) -> Option<[usize; 3]> {
    // SAFETY: the caller's contract. What is not there fails.
    let [pc, bp] = unsafe { [fetch_u64(sp), fetch_u64(sp + 24)] };
    let registers = [pc.value as usize, sp + SAVED_BYTES, bp.value as usize];
    (pc.failed | bp.failed == 0).then_some(registers)
}

// Hidden: a library in the same process may have a section of this name. Weak: a program without
// virtual threads may have none.
global_asm!(
    ".weak __start_pirn_switches; .hidden __start_pirn_switches",
    ".weak __stop_pirn_switches; .hidden __stop_pirn_switches",
);

unsafe extern "C" {
    /// The bounds of the section with the places of all copies of the switch: the linker's.
    #[link_name = "__start_pirn_switches"]
    static SWITCHES: [i32; 0];
    #[link_name = "__stop_pirn_switches"]
    static SWITCHES_END: [i32; 0];
    /// The address to which the outermost call of a virtual thread's stack would return.
    #[link_name = "pirn_outermost"]
    static OUTERMOST: [u8; 0];
    /// The address to which the start routine of a thread of C's returns.
    #[link_name = "pirn_pthread_called"]
    static PTHREAD_CALLED: [u8; 0];
    /// The address to which the body of the trampoline returns.
    #[link_name = "pirn_preempted"]
    static PREEMPTED: [u8; 0];
}

/// Returns the bounds of the section with the places of all copies of the switch: pairs of
/// distances from where they stand, 32 bits each, to the first instruction and to after the last.
pub const fn switch_table() -> [*const (); 2] {
    [
        (&raw const SWITCHES).cast(),
        (&raw const SWITCHES_END).cast(),
    ]
}

/// Returns the addresses of [`is_outermost`] and [`is_preempted`].
pub const fn marks() -> [*const (); 2] {
    [(&raw const OUTERMOST).cast(), (&raw const PREEMPTED).cast()]
}

/// Returns the addresses of all copies of the switch: of the first instruction, and after the last.
pub(crate) fn switches() -> impl Iterator<Item = (usize, usize)> {
    let (start, end) = (&raw const SWITCHES, &raw const SWITCHES_END);
    let entries = (end.addr() - start.addr()) / size_of::<[i32; 2]>();
    (0..entries).map(move |entry| {
        let place = start.cast::<i32>().wrapping_add(2 * entry);
        let address = |place: *const i32| {
            // SAFETY: inside the section, which consists of such pairs.
            place.addr().wrapping_add_signed(unsafe { *place } as isize)
        };
        (address(place), address(place.wrapping_add(1)))
    })
}

/// Returns whether a thread that is interrupted here is in the middle of a switch: the stack is not
/// as the unwind information says, or is another's.
pub fn in_switch(pc: usize) -> bool {
    switches().any(|(start, end)| start < pc && pc < end)
}

/// Returns whether this is the address to which the outermost call on a virtual thread's stack
/// returns: a stack that is read to there is complete.
#[inline]
pub fn is_outermost(pc: usize) -> bool {
    pc == (&raw const OUTERMOST).addr()
}

/// Returns whether this is an address in [`call_as_pthread`] at which it calls: its frame has no
/// caller, so a stack that is read to there is complete.
pub fn is_in_call_as_pthread(pc: usize) -> bool {
    // The function itself is named, too: without it, the linker would not find the label.
    let begin = call_as_pthread as *const () as usize;
    (begin..=(&raw const PTHREAD_CALLED).addr()).contains(&pc)
}

/// Returns whether the caller of the frame with this address has been interrupted, and made no
/// call: at the next address is the instruction that runs next.
#[inline]
pub fn is_preempted(pc: usize) -> bool {
    pc == (&raw const PREEMPTED).addr()
}
