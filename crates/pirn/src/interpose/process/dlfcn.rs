//! `dlfcn.h`: opening and closing libraries.
//!
//! On a virtual thread these calls run on a platform thread of their own: reading files blocks, a
//! library's initialisers may do anything, and the dynamic linker's lock, which is held meanwhile,
//! would block every carrier that wants it. On any thread, virtual threads must be told of the
//! library's thread-local data before it is used ([`late`]); if this fails, the call fails.
//!
//! A library that calls `dlopen` may have a search path of its own (`RUNPATH`), so libc must see
//! the library as the caller.
//!
//! glibc keeps the text for `dlerror` per thread and clears it at the next success, even of our own
//! `dlsym`. So the text of a failed call is kept here, for the thread that made it.
//!
//! `dlsym` is not interposed, because its result depends on the caller.
//!
//! Libraries that libc opens itself (`iconv`'s and the name service's modules, `libgcc_s`) do not
//! reach this code; they are noticed when the program opens something, or by [`catch_up`].

use crate::arch::{RETURN, call_as_if_from, forward_with_caller};
use crate::blocking::offload;
use crate::glibc::symbols::{Real, real};
use crate::glibc::{late, objects};
use crate::interpose::registry::interposed;
use crate::sched::preempt;
use crate::stack::region;
use crate::vthread::awaited::Awaited;
use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;

interposed! {
    family "Libraries" for Correctness,
        cannot "notice libraries that libc opens itself until the program opens one";

    Dedicated by hand { dlopen, dlmopen, dlclose }
    Own by hand { dlerror, dl_iterate_phdr: "the thread is not preempted meanwhile" }
}

forward_with_caller! {
    /// `dlopen`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    dlopen => open_for
}

forward_with_caller! {
    /// `dlmopen`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    dlmopen => open_in_namespace_for
}

unsafe extern "C" fn open_for(path: usize, flags: usize, _: usize, caller: usize) -> *mut c_void {
    static REAL: Real = Real::new(c"dlopen");
    // SAFETY: the caller's contract.
    open(path == 0, || unsafe {
        call_from(caller, REAL.get() as usize, [path, flags, 0])
    })
}

unsafe extern "C" fn open_in_namespace_for(
    namespace: usize,
    path: usize,
    flags: usize,
    caller: usize,
) -> *mut c_void {
    static REAL: Real = Real::new(c"dlmopen");
    // SAFETY: the caller's contract.
    open(path == 0, || unsafe {
        call_from(caller, REAL.get() as usize, [namespace, path, flags])
    })
}

/// Calls libc's `function` on behalf of the library that `caller` is an address in.
///
/// # Safety
/// As for the function.
pub(in crate::interpose) unsafe fn call_from(
    caller: usize,
    function: usize,
    arguments: [usize; 3],
) -> *mut c_void {
    // SAFETY: the caller's contract; an instruction of that library.
    unsafe {
        match find_return(caller) {
            Some(ret) => call_as_if_from(ret, function, &arguments) as *mut c_void,
            None => {
                type Resolution = unsafe extern "C" fn(usize, usize, usize) -> *mut c_void;
                core::mem::transmute::<usize, Resolution>(function)(
                    arguments[0],
                    arguments[1],
                    arguments[2],
                )
            }
        }
    }
}

/// Returns the address of a `ret` instruction, in the code of the library that contains the address
/// `inside`; `None` for the library that contains this code.
fn find_return(inside: usize) -> Option<usize> {
    objects::find_in(|object| {
        let range = object
            .segments(libc::PF_X)
            .find(|range| range.contains(&inside))?;
        if range.contains(&(find_return as *const () as usize)) {
            return Some(None);
        }
        // SAFETY: mapped code, which is readable on Linux unless the program asks otherwise.
        let bytes = unsafe { core::slice::from_raw_parts(range.start as *const u8, range.len()) };
        let at = bytes.iter().position(|&byte| byte == RETURN);
        Some(at.map(|at| range.start + at))
    })
    .flatten()
}

/// `dlclose`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // SAFETY: the caller's contract.
    let close = || unsafe {
        let result = real!(fn dlclose(handle: *mut c_void) -> c_int);
        // An earlier call has reported a lack of room.
        let _ = catch_up();
        result
    };
    let (result, text) = elsewhere(c"dlclose", || {
        let result = close();
        (result, if result == 0 { None } else { take_error() })
    });
    if result != 0 {
        set_error(text);
    }
    result
}

/// `dlerror`.
#[unsafe(no_mangle)]
pub extern "C" fn dlerror() -> *mut c_char {
    let text = libc_error();
    // The call that failed last is libc's, or else ours: ours clears libc's text.
    let ours = TEXTS.try_with(|texts| {
        let mut texts = texts.borrow_mut();
        let Some(texts) = texts.as_mut() else {
            return core::ptr::null();
        };
        texts.shown = texts.pending.take();
        texts
            .shown
            .as_ref()
            .map_or(core::ptr::null(), |shown| shown.as_ptr())
    });
    if text.is_null() {
        ours.unwrap_or(core::ptr::null()).cast_mut()
    } else {
        text
    }
}

#[derive(Default)]
struct Texts {
    /// The text that `dlerror` has not returned yet.
    pending: Option<CString>,
    /// The text that `dlerror` has returned, which its caller may read until the next call.
    shown: Option<CString>,
}

thread_local! {
    /// Boxed: these bytes are in the page of each virtual thread.
    static TEXTS: RefCell<Option<Box<Texts>>> = const { RefCell::new(None) };
}

static DLERROR: Real = Real::new(c"dlerror");

/// Looks up libc's `dlerror`: a later look-up would overwrite the text that it should return.
pub(in crate::interpose) fn prepare() {
    DLERROR.get();
}

fn libc_error() -> *mut c_char {
    // SAFETY: the function's signature. It is there: a program that has `dlopen` has `dlerror`.
    unsafe {
        core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_char>(DLERROR.get())()
    }
}

/// Takes libc's text for the running thread.
fn take_error() -> Option<CString> {
    let text = libc_error();
    // SAFETY: null or a C string, until the next call.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
}

/// Sets the text that `dlerror` returns next.
fn set_error(text: Option<CString>) {
    libc_error();
    // A thread that is about to end does not ask again.
    let _ = TEXTS.try_with(|texts| {
        let mut texts = texts.borrow_mut();
        if text.is_some() || texts.is_some() {
            texts.get_or_insert_default().pending = text;
        }
    });
}

/// `dl_iterate_phdr`: the linker's lock is held while the callback runs.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dl_iterate_phdr(
    callback: *const c_void,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    preempt::without(|| unsafe {
        real!(unwinding fn dl_iterate_phdr(callback: *const c_void, data: *mut c_void) -> c_int)
    })
}

/// Opens a library and tells virtual threads. `nothing_new`: `load` only gives a handle of a
/// library that is loaded already.
fn open(nothing_new: bool, load: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if nothing_new {
        return load();
    }
    match elsewhere(c"dlopen", || load_and_tell(load)) {
        Ok(handle) => handle as *mut c_void,
        Err(text) => {
            set_error(text);
            core::ptr::null_mut()
        }
    }
}

/// Returns the handle, or the reason why libc refused, or why virtual threads cannot use the
/// library.
fn load_and_tell(load: impl FnOnce() -> *mut c_void) -> Result<usize, Option<CString>> {
    let handle = load();
    if handle.is_null() {
        return Err(take_error());
    }
    catch_up().map(|()| handle as usize).map_err(|text| {
        // SAFETY: the handle has not been passed on.
        unsafe { real!(fn dlclose(handle: *mut c_void) -> c_int) };
        CString::new(text).ok()
    })
}

/// Runs a call on a platform thread; if the caller is one, in place.
fn elsewhere<R>(name: &'static CStr, call: impl FnOnce() -> R) -> R {
    let mut result = None;
    let run = || {
        result = Some(call());
        Ok(0)
    };
    let _ = offload::dedicated(Awaited::call(name), run);
    match result {
        Some(result) => result,
        None => crate::sys::fatal(&["an offloaded call was not run"]),
    }
}

/// Tells virtual threads of libraries that were loaded or unloaded.
///
/// # Errors
/// There is no room for their thread-local data.
pub(crate) fn catch_up() -> Result<(), String> {
    preempt::libraries_changed();
    late::catch_up(|visit| region::for_each_open(|slot| visit(slot.tp())))
}
