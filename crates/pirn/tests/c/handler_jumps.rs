//! Signal handlers that are left by a jump.

use std::ffi::{c_int, c_void};
use std::io::{self, Read, Write};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::processor::{can_step, set_step_flag};
use crate::common::sys::{check, on_signal};
use crate::common::{block_then, child, most_carriers, on_virtual, pipes, watched, write_to_all};
use libc::{SIGTRAP, SIGUSR1};
use pirn::thread;

/// `sigjmp_buf` of glibc.
#[repr(C, align(16))]
struct Buffer([u64; 32]);
unsafe extern "C" {
    fn __sigsetjmp(buffer: *mut Buffer, savemask: c_int) -> c_int;
    fn longjmp(buffer: *mut Buffer, value: c_int) -> !;
    fn _longjmp(buffer: *mut Buffer, value: c_int) -> !;
    fn siglongjmp(buffer: *mut Buffer, value: c_int) -> !;
    fn __longjmp_chk(buffer: *mut Buffer, value: c_int) -> !;
}
static JUMP_BACK: AtomicUsize = AtomicUsize::new(0);
static JUMPS: AtomicUsize = AtomicUsize::new(0);

/// A handler that is left by a jump: its thread may be parked again afterwards.
#[watched(alone)]
fn a_thread_whose_handler_jumped_out_parks_as_before() {
    extern "C" fn jump(_signal: c_int) {
        let jumps = [longjmp, _longjmp, siglongjmp, __longjmp_chk];
        let jump = jumps[JUMPS.fetch_add(1, SeqCst) % jumps.len()];
        // SAFETY: set by the interrupted function, which has not returned.
        unsafe { jump(JUMP_BACK.load(SeqCst) as *mut Buffer, 1) };
    }
    #[inline(never)]
    fn jump_out() {
        let mut buffer = Buffer([0; 32]);
        JUMP_BACK.store(&raw mut buffer as usize, SeqCst);
        // SAFETY: no local of this frame changes between the two returns.
        unsafe {
            if __sigsetjmp(&mut buffer, 1) == 0 {
                libc::raise(SIGUSR1);
                unreachable!();
            }
        }
    }
    for flags in [0, libc::SA_ONSTACK] {
        on_signal(SIGUSR1, flags, jump);
        on_virtual(jump_out);
        let pipes = pipes(most_carriers() + 1);
        let alone = Mutex::new(());
        // More of them than there can be carriers, so that each must park.
        let read = |i: usize| {
            let guard = alone.lock().unwrap();
            jump_out();
            drop(guard);
            assert_eq!((&pipes[i].0).read(&mut [0]).unwrap(), 1);
        };
        block_then(pipes.len(), read, || write_to_all(&pipes));
    }
}

/// The number of instructions after which [`trapped`] jumps.
static STEPS: AtomicUsize = AtomicUsize::new(0);

/// Runs after each instruction while the trap flag is set.
extern "C" fn trapped(_signal: c_int) {
    if STEPS.fetch_sub(1, SeqCst) == 1 {
        // SAFETY: set by `jump_after`, which has not returned.
        unsafe { siglongjmp(JUMP_BACK.load(SeqCst) as *mut Buffer, 1) };
    }
}

extern "C" fn nothing(_signal: c_int) {}

/// Returns the function that the kernel calls for `signal`.
fn called_by_kernel(signal: c_int) -> extern "C" fn(c_int, *mut c_void, *mut c_void) {
    let mut action = [0usize; 4];
    let (number, new) = (libc::SYS_rt_sigaction, ptr::null::<usize>());
    // SAFETY: room for the kernel's structure, which begins with the handler.
    unsafe {
        check(libc::syscall(number, signal, new, action.as_mut_ptr(), 8) as c_int).unwrap();
        std::mem::transmute(action[0])
    }
}

/// Calls a handler as the kernel does, and leaves it by a jump after this many instructions.
/// Returns whether it had not ended before.
#[inline(never)]
fn jump_after(steps: usize, handler: extern "C" fn(c_int, *mut c_void, *mut c_void)) -> bool {
    let mut buffer = Buffer([0; 32]);
    JUMP_BACK.store(&raw mut buffer as usize, SeqCst);
    STEPS.store(steps, SeqCst);
    // SAFETY: no local of this frame changes between the two returns; the jump, whose origin is a
    // handler without the flag for steps, clears the flag.
    unsafe {
        if __sigsetjmp(&mut buffer, 1) != 0 {
            return true;
        }
        set_step_flag(true);
        handler(SIGUSR1, ptr::null_mut(), ptr::null_mut());
        set_step_flag(false);
    }
    false
}

/// Leaves a handler at each of its instructions in turn. Then another thread gets the only carrier.
fn jump_out_everywhere() {
    on_signal(SIGUSR1, 0, nothing);
    on_signal(SIGTRAP, 0, trapped);
    let handler = called_by_kernel(SIGUSR1);
    let (mut there, back) = (io::pipe().unwrap(), io::pipe().unwrap());
    let (mut reader, mut writer) = (back.0, there.1);
    let echo = thread::spawn(move || {
        let (mut byte, mut writer) = ([0], back.1);
        while there.0.read(&mut byte).unwrap() == 1 {
            writer.write_all(&byte).unwrap();
        }
    });
    let steps = thread::spawn(move || {
        let mut steps = 1;
        while jump_after(steps, handler) {
            writer.write_all(&[0]).unwrap();
            reader.read_exact(&mut [0]).unwrap();
            steps += 1;
        }
        steps
    });
    assert!(steps.join().unwrap() > 20);
    echo.join().unwrap();
}

#[watched]
fn a_handler_may_be_left_by_a_jump_at_each_of_its_instructions() {
    let settings = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];
    if can_step() {
        child::isolated(&settings, jump_out_everywhere);
    }
}

/// The kernel disarms the alternative stack for the time of the handler.
fn jump_from_a_disarmed_stack() {
    const SS_AUTODISARM: c_int = 1 << 31;
    extern "C" fn jump(_signal: c_int) {
        // SAFETY: set by the interrupted function, which has not returned.
        unsafe { siglongjmp(JUMP_BACK.load(SeqCst) as *mut Buffer, 1) };
    }
    #[inline(never)]
    fn jump_out(stack: usize) {
        let mut buffer = Buffer([0; 32]);
        JUMP_BACK.store(&raw mut buffer as usize, SeqCst);
        let alternative = libc::stack_t {
            ss_sp: ptr::with_exposed_provenance_mut(stack),
            ss_flags: SS_AUTODISARM,
            ss_size: STACK,
        };
        // SAFETY: no local of this frame changes between the two returns; the stack is alive, and
        // nothing else uses it.
        unsafe {
            let mut before: libc::stack_t = std::mem::zeroed();
            check(libc::sigaltstack(&alternative, &mut before)).unwrap();
            if __sigsetjmp(&mut buffer, 1) == 0 {
                libc::raise(SIGUSR1);
                unreachable!();
            }
            check(libc::sigaltstack(&before, ptr::null_mut())).unwrap();
        }
    }
    const STACK: usize = 1 << 20;
    // Above the virtual threads' stacks, and below.
    let above = vec![0u8; STACK];
    on_virtual(|| ());
    let below = vec![0u8; STACK];
    on_signal(SIGUSR1, libc::SA_ONSTACK, jump);
    let stacks = [&above, &below].map(|stack| stack.as_ptr().expose_provenance());
    for stack in stacks {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let jumper = thread::spawn(move || {
            jump_out(stack);
            reader.read_exact(&mut [0]).unwrap();
        });
        let other = thread::spawn(move || writer.write_all(&[0]).unwrap());
        jumper.join().unwrap();
        other.join().unwrap();
    }
}

#[watched]
fn a_handler_on_a_stack_that_disarms_itself_may_be_left_by_a_jump() {
    let settings = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];
    child::isolated(&settings, jump_from_a_disarmed_stack);
}

/// Leaves the handler of a trap after each instruction of a yield in turn: one of the first of them
/// is in the runtime.
fn jump_out_of_the_runtime() {
    #[inline(never)]
    fn yield_until(steps: usize) {
        let mut buffer = Buffer([0; 32]);
        JUMP_BACK.store(&raw mut buffer as usize, SeqCst);
        STEPS.store(steps, SeqCst);
        // SAFETY: as in `jump_after`.
        unsafe {
            if __sigsetjmp(&mut buffer, 1) == 0 {
                set_step_flag(true);
                std::thread::yield_now();
                set_step_flag(false);
            }
        }
    }
    on_signal(SIGTRAP, 0, trapped);
    on_virtual(|| (1..1000).for_each(yield_until));
}

#[watched]
fn a_jump_out_of_the_middle_of_the_runtime_is_fatal() {
    if !can_step() {
        return;
    }
    if child::is_here() {
        crate::common::sys::no_core_file();
        return jump_out_of_the_runtime();
    }
    let output = child::run(&[("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("jumped out of its handler of signal 5, which"),
        "{}",
        child::report(&output)
    );
}
