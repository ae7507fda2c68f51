//! Attributes of a thread, as `pthread_getattr_np` tells them.

use super::scheduling;
use crate::identity::slot_with;
use crate::posix;
use crate::registry::interposed;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ops::Range;
use libc::{cpu_set_t, pthread_attr_t, pthread_t, size_t};
use pirn_libc_macros::libc_fn;

interposed! {
    family "Attributes of threads" for Correctness;

    Own by hand { pthread_getattr_np, pthread_setattr_default_np }
}

unsafe extern "C" {
    fn pthread_attr_setstack(
        attributes: *mut pthread_attr_t,
        stack: *mut c_void,
        size: size_t,
    ) -> c_int;
    fn pthread_attr_setguardsize(attributes: *mut pthread_attr_t, size: size_t) -> c_int;
}

/// For a virtual thread, gives its stack.
#[libc_fn]
pub unsafe fn pthread_getattr_np(thread: pthread_t, attributes: *mut pthread_attr_t) -> c_int {
    let Some(slot) = slot_with(thread) else {
        return libcs!();
    };
    let record = posix::find(thread);
    let (lowest, guard) = match record {
        Some(record) => record.stack(slot),
        None => (slot.bottom(), slot.bottom() - slot.base()),
    };
    let state = match record.is_none_or(|record| record.is_detached()) {
        true => libc::PTHREAD_CREATE_DETACHED,
        false => libc::PTHREAD_CREATE_JOINABLE,
    };
    // SAFETY: the caller's contract: room for attributes, initialised here.
    unsafe {
        match libc::pthread_attr_init(attributes) {
            0 => {}
            e => return e,
        }
        pthread_attr_setguardsize(attributes, guard);
        libc::pthread_attr_setdetachstate(attributes, state);
        set_stack(attributes, lowest..slot.end());
        add_cpus(thread, attributes)
    }
}

/// Sets the bounds of a stack.
///
/// libc refuses one that is smaller than `PTHREAD_STACK_MIN`, 128 KiB on some processors. Then it
/// gets a size that no other word of attributes has, which is replaced where libc has put it.
///
/// # Safety
/// The attributes are initialised.
unsafe fn set_stack(attributes: *mut pthread_attr_t, stack: Range<usize>) {
    const PLACEHOLDER: usize = 0x5a5a_5a5a_0000;
    // SAFETY: the caller's contract; attributes consist of words.
    unsafe {
        let set = |size: usize| {
            let lowest = stack.end.wrapping_sub(size) as *mut c_void;
            pthread_attr_setstack(attributes, lowest, size)
        };
        if set(stack.len()) != 0 && set(PLACEHOLDER) == 0 {
            const WORDS: usize = size_of::<pthread_attr_t>() / size_of::<usize>();
            let words = &mut *attributes.cast::<[usize; WORDS]>();
            let size = words.iter_mut().find(|word| **word == PLACEHOLDER);
            size.into_iter().for_each(|size| *size = stack.len());
        }
    }
}

/// Adds the CPUs that a thread may run on to its attributes, as libc does: without memory for that
/// there are no attributes.
///
/// # Safety
/// The thread exists, and the attributes are initialised.
unsafe fn add_cpus(thread: pthread_t, attributes: *mut pthread_attr_t) -> c_int {
    let mut cpus = MaybeUninit::<cpu_set_t>::zeroed();
    let (size, cpus) = (size_of::<cpu_set_t>(), cpus.as_mut_ptr());
    // SAFETY: the caller's contract; room for the set.
    unsafe {
        if scheduling::pthread_getaffinity_np(thread, size, cpus) != 0 {
            return 0; // There are more CPUs than such a set has room for.
        }
        let error = libc::pthread_attr_setaffinity_np(attributes, size, cpus);
        if error != 0 {
            libc::pthread_attr_destroy(attributes);
        }
        error
    }
}

#[libc_fn]
pub unsafe fn pthread_setattr_default_np(attributes: *const pthread_attr_t) -> c_int {
    posix::note_defaults();
    libcs!()
}
