//! The identity of a virtual thread as glibc sees it: `pthread_self`, its stack, its name and its
//! CPU.

use std::collections::HashSet;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Barrier, Mutex};

use crate::common::sys::check;
use crate::common::{child, crowd, crowd_size, migrate, skip, watched};

#[watched]
fn pthread_self_is_unique_and_stays() {
    let (ids, all_here) = (Mutex::new(HashSet::new()), Barrier::new(crowd_size()));
    crowd(|_| {
        // SAFETY: touches no memory.
        let id = unsafe { libc::pthread_self() };
        assert!(ids.lock().unwrap().insert(id));
        for _ in 0..5 {
            migrate();
            // SAFETY: touches no memory.
            assert!(unsafe { libc::pthread_equal(id, libc::pthread_self()) != 0 });
        }
        all_here.wait(); // so that none is freed and given out again
    });
}

#[watched]
fn the_stack_of_pthread_getattr_np_is_the_one_in_use() {
    crowd(|_| {
        for _ in 0..3 {
            let local = 0_u8;
            let (mut bottom, mut size) = (ptr::null_mut(), 0);
            let mut attributes = MaybeUninit::uninit();
            // SAFETY: `pthread_getattr_np` initialises the attributes.
            unsafe {
                let thread = libc::pthread_self();
                assert_eq!(libc::pthread_getattr_np(thread, attributes.as_mut_ptr()), 0);
                let attributes = attributes.as_mut_ptr();
                assert_eq!(
                    libc::pthread_attr_getstack(attributes, &mut bottom, &mut size),
                    0
                );
                assert_eq!(libc::pthread_attr_destroy(attributes), 0);
            }
            let (bottom, here) = (bottom as usize, &raw const local as usize);
            assert!(bottom < here && here < bottom + size);
            migrate();
        }
    });
}

#[watched]
fn pthread_names_are_per_virtual_thread() {
    crowd(|i| {
        let name = std::ffi::CString::new(format!("bobbin {i}")).unwrap();
        let mut read = [0 as c_char; 32];
        // SAFETY: the name is a C string, the buffer is valid for its length.
        unsafe {
            let this = libc::pthread_self();
            assert_eq!(libc::pthread_setname_np(this, name.as_ptr()), 0);
            migrate();
            assert_eq!(
                libc::pthread_getname_np(this, read.as_mut_ptr(), read.len()),
                0
            );
            assert_eq!(CStr::from_ptr(read.as_ptr()), name.as_c_str());
        }
    });
}

/// Returns the CPUs this process may run on.
fn allowed_cpus() -> Vec<usize> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set is valid for its size, and all-zero is an empty set.
    let set = unsafe {
        let size = size_of::<libc::cpu_set_t>();
        check(libc::sched_getaffinity(0, size, set.as_mut_ptr())).unwrap();
        set.assume_init()
    };
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are within the set.
    all.filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect()
}

#[watched]
fn sched_getcpu_is_where_the_carrier_runs() {
    let last = *allowed_cpus().last().unwrap();
    if last == 0 {
        // A zeroed answer would look like a correct one.
        skip("only CPU 0 may be used");
        return;
    }
    child::isolated(&[], || {
        // Everything started from here on inherits this.
        let mut only = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: the number is within the set, which is valid for its size.
        unsafe {
            libc::CPU_SET(last, &mut *only.as_mut_ptr());
            let size = size_of::<libc::cpu_set_t>();
            check(libc::sched_setaffinity(0, size, only.as_ptr())).unwrap();
        }
        crowd(|_| {
            // SAFETY: touches no memory.
            assert_eq!(unsafe { libc::sched_getcpu() }, last as i32);
            migrate();
            // SAFETY: touches no memory.
            assert_eq!(unsafe { libc::sched_getcpu() }, last as i32);
        });
    });
}
