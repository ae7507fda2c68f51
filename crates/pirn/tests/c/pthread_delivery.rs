//! How signals are delivered to virtual threads. The checks are in C; each runs in a process of its
//! own, on the main thread and then on a virtual one.

use std::ffi::CString;
use std::path::Path;
use std::process::Command;

use crate::common::{TempDir, child, skip, watched};

unsafe extern "C" {
    fn pirn_make_pthreads_virtual(on: libc::c_int);
}

type Check = extern "C" fn();

/// Builds the C file and returns one of its functions. `None`, and a printed reason, without `cc`.
fn check(name: &str) -> Option<Check> {
    let folder = TempDir::new("pthread-delivery");
    let library = folder.join("libdelivery.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/pthread_delivery.c");
    let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"];
    let built = Command::new("cc")
        .args(flags)
        .args([Path::new("-o"), &library, &source])
        .status();
    match built {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            skip(&format!("no C compiler `cc` ({error})"));
            return None;
        }
    }
    let [library, name] = [library.to_str().unwrap(), name].map(|text| CString::new(text).unwrap());
    // SAFETY: C strings; the library has no initialisers, stays, and has functions of this type.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let function = libc::dlsym(handle, name.as_ptr());
        assert!(!function.is_null());
        Some(std::mem::transmute::<*mut libc::c_void, Check>(function))
    }
}

/// Runs a check in a child process, on this thread and then on a virtual one.
fn run(name: &str) {
    let carriers = ["1", "2", "8"];
    child::with_carriers(&carriers, || {
        let Some(check) = check(name) else { return };
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
        check();
        std::thread::spawn(move || check()).join().unwrap();
    });
}

#[watched]
fn each_signal_is_delivered_once() {
    run("check_each_once");
}

#[watched]
fn threads_stop_while_they_wake_others() {
    run("check_stopped_wakers");
}
