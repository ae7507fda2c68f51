//! Using a stack, and asking for its size.

use pirn::thread;
use std::hint::black_box;

/// Recurses until `bytes` of the stack are used, with a switch at the bottom. Returns the bytes
/// used.
pub fn dive(bytes: usize) -> usize {
    #[inline(never)]
    fn deeper(top: usize, bytes: usize) -> usize {
        let frame = [1_u8; 512];
        let used = top - black_box(&frame).as_ptr().addr();
        if used >= bytes {
            thread::yield_now();
            return used;
        }
        let used = deeper(top, bytes);
        black_box(&frame); // so that the frame is still needed, and the call is no tail call
        used
    }
    let top = 0_u8;
    deeper((&raw const top).addr(), bytes)
}

/// Recurses for ever.
#[inline(never)]
pub fn sink(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if frame[0] == u64::MAX {
        return 0; // never comes
    }
    sink(black_box(depth + 1)) + frame[1]
}

/// Returns the size of the running thread's stack as libc knows it, and the bytes of it below this
/// function's frame.
pub fn own_stack() -> [usize; 2] {
    let mut bottom = std::ptr::null_mut();
    let mut size = 0;
    // SAFETY: attributes that are filled in by the first call, and room for results.
    unsafe {
        let mut attributes = std::mem::zeroed();
        assert_eq!(
            libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
            0
        );
        libc::pthread_attr_getstack(&attributes, &mut bottom, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
    }
    [size, (&raw const size).addr() - bottom.addr()]
}
