//! What a thread works for, as dumps show it.
//!
//! ```text
//!   annotate("orders", ..)        an annotation on the stack: "orders"
//!                                          ^ outer
//!     annotate("Buy", ..)         an annotation on the stack: "Buy"
//!                                          ^
//!                                        INNERMOST, in the thread's TLS block
//! ```
//!
//! A dump reads the list while the thread stands still: parked, held, or stopped by a signal at
//! whatever instruction. So the thread needs no atomic instruction, and must only not be seen with
//! an annotation that is not written yet, or not there any more: two fences for the compiler. A
//! dump finds the head at the same distance from the thread pointer in each thread's TLS block.
//!
//! Dumps do not read the list of a platform thread.

use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, compiler_fence};

/// The name that a call of [`annotate`] gives, on its stack. The fields are in the order of
/// `pirn_observe::dump::ANNOTATION_WORDS`.
#[repr(C)]
struct Annotation {
    text: *const u8,
    len: usize,
    outer: *mut Annotation,
}

#[cfg(feature = "dump")]
const _: () = {
    let words = size_of::<Annotation>() / size_of::<usize>();
    assert!(words == pirn_observe::dump::ANNOTATION_WORDS);
};

thread_local! {
    // Has no destructor, so that destructors of other thread-locals may call `annotate`.
    static INNERMOST: AtomicPtr<Annotation> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Calls a function. Meanwhile dumps say that the running thread works for this.
///
/// `what` names a request, a job, an actor, a tenant. `pirn dump` shows it with the thread, and
/// `--where for=…` finds the thread by it: so threads that have the same stack are told apart.
/// Calls nest: a dump shows the eight innermost names, of each the first 256 bytes.
///
/// The name follows the thread, and neither the threads that it spawns nor the subtasks that it
/// forks. On a platform thread it is not shown. It costs a few stores: no allocation, no lock, and
/// nothing that is shared.
///
/// # Panics
/// If `f` does. The names of the calls around it are in force again then.
///
/// # Examples
/// ```
/// use pirn::thread;
///
/// let waits = thread::spawn(|| thread::annotate("order 4711", thread::park));
/// # #[cfg(feature = "dump")]
/// while !pirn::dump::take().to_string().contains(r#"works for "order 4711""#) {
///     thread::yield_now(); // It has not come that far.
/// }
/// waits.thread().unpark();
/// waits.join().unwrap();
/// ```
#[inline]
pub fn annotate<R>(what: &str, f: impl FnOnce() -> R) -> R {
    /// Puts the outer annotation in force again.
    struct Leave(*mut Annotation);
    impl Drop for Leave {
        #[inline]
        fn drop(&mut self) {
            // Relaxed: a reader has stopped this thread.
            INNERMOST.with(|innermost| innermost.store(self.0, Relaxed));
            // Later uses of the memory of the annotation and its text come after this, also for the
            // handler of a signal.
            compiler_fence(SeqCst);
        }
    }
    let annotation = Annotation {
        text: what.as_ptr(),
        len: what.len(),
        // Relaxed: only this thread writes it.
        outer: INNERMOST.with(|innermost| innermost.load(Relaxed)),
    };
    let _leave = Leave(annotation.outer);
    // Release: the handler of a signal that stops this thread finds the annotation written.
    INNERMOST.with(|innermost| innermost.store((&raw const annotation).cast_mut(), Release));
    f()
}

/// Returns where a thread has the address of its innermost annotation, or 0, by the thread pointer
/// of its slot.
#[cfg(feature = "dump")]
pub(crate) fn innermost(tp: usize) -> usize {
    pirn_rt::glibc::tls::place_of(&INNERMOST, tp).addr()
}
