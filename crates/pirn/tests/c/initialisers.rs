//! Libraries whose initialisers do what a thread may do: use thread-local data, start threads and
//! wait for them, park.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::{mem, ptr};

use super::c_checks::cc;
use crate::common::{TempDir, child, many, migrate, most_carriers, watched};
use pirn::thread;

type Next = extern "C" fn() -> c_int;
/// What a test does when a library calls it: the caller's name, and a function of the library that
/// counts from 41 in each thread.
type Called = extern "C" fn(*const c_char, Next);

/// A library of `initialisers.c` that is not open yet.
struct Library {
    path: CString,
    _folder: TempDir,
}

impl Library {
    /// Builds a library that calls `called`. `None`, and a printed reason, without `cc`.
    fn build(called: Called, flags: &[&str]) -> Option<Library> {
        let folder = TempDir::new("initialisers");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/initialisers.c");
        let usual = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"].map(Path::new);
        let (hook, library) = (folder.join("libhook.so"), folder.join("libcalls.so"));
        cc(usual
            .into_iter()
            .chain([&*hook, &source, Path::new("-DHOOK")]))?;
        let flags = flags.iter().map(Path::new);
        cc(usual
            .into_iter()
            .chain([&*library, &source, &hook])
            .chain(flags))?;
        let [hook, path] = [hook, library].map(|p| CString::new(p.to_str().unwrap()).unwrap());
        // SAFETY: a library without initialisers, which has a variable of this type and name.
        unsafe {
            let hook = libc::dlopen(hook.as_ptr(), libc::RTLD_NOW);
            assert!(!hook.is_null());
            let place = libc::dlsym(hook, c"called".as_ptr()).cast::<Called>();
            assert!(!place.is_null());
            place.write(called);
        }
        Some(Library {
            path,
            _folder: folder,
        })
    }

    /// Opens the library. Returns the error's text if that fails.
    fn open(&self) -> Result<*mut c_void, String> {
        // SAFETY: the initialisers are this file's; dlerror's text is valid until the next call.
        unsafe {
            let handle = libc::dlopen(self.path.as_ptr(), libc::RTLD_NOW);
            match handle.is_null() {
                false => Ok(handle),
                true => Err(CStr::from_ptr(libc::dlerror()).to_str().unwrap().into()),
            }
        }
    }

    fn open_and_close(&self) {
        let handle = self.open().unwrap();
        // SAFETY: no thread uses the library any more.
        assert_eq!(unsafe { libc::dlclose(handle) }, 0);
    }
}

/// Runs a test in child processes with 1, 2 and 8 carriers, and two spare ones.
fn with_carriers(test: impl Fn()) {
    let settings = ["1", "2", "8"]
        .map(|carriers| [("PIRN_PARALLELISM", carriers), ("PIRN_SPARE_CARRIERS", "2")]);
    child::isolated_each(settings, test);
}

/// Runs a test on a virtual thread, and on this one.
fn on_both(test: impl Fn() + Sync) {
    thread::scope(|scope| {
        scope.spawn(&test);
    });
    test();
}

#[watched]
fn initialisers_and_finalisers_run_on_the_thread_that_opens_and_closes() {
    thread_local! {
        static CALLS: Cell<usize> = const { Cell::new(0) };
    }
    extern "C" fn called(_: *const c_char, next: Next) {
        CALLS.set(CALLS.get() + 1);
        migrate();
        assert_eq!(next(), 41 + CALLS.get() as c_int);
    }
    let Some(library) = Library::build(called, &["-DFINALISER"]) else {
        return;
    };
    on_both(|| {
        library.open_and_close();
        assert_eq!(CALLS.take(), 2);
    });
}

/// What the threads of a round wait for, one after another.
#[derive(Clone, Copy)]
enum Stage {
    Waiting,
    Initialising(Next),
    Open(Next),
}

/// A library that is opened while threads wait to use it.
struct Round {
    stage: Mutex<Stage>,
    /// The threads that have used it in this stage.
    done: AtomicUsize,
    changed: Condvar,
}

impl Round {
    fn advance(&self, stage: Stage) {
        self.done.store(0, SeqCst);
        *self.stage.lock().unwrap() = stage;
        self.changed.notify_all();
    }

    /// Waits for a stage after `Waiting`, parked or by yielding, and uses the library in it.
    fn use_in(&self, parked: bool, reached: fn(Stage) -> Option<Next>, expected: c_int) {
        let mut stage = self.stage.lock().unwrap();
        let next = loop {
            match reached(*stage) {
                Some(next) => break next,
                None if parked => stage = self.changed.wait(stage).unwrap(),
                None => {
                    drop(stage);
                    thread::yield_now();
                    stage = self.stage.lock().unwrap();
                }
            }
        };
        drop(stage);
        assert_eq!(next(), expected);
        self.done.fetch_add(1, SeqCst);
        let _guard = self.stage.lock().unwrap();
        self.changed.notify_all();
    }

    fn use_while_initialising(&self, parked: bool) {
        let reached = |stage| match stage {
            Stage::Initialising(next) => Some(next),
            _ => None,
        };
        self.use_in(parked, reached, 42);
    }

    fn use_afterwards(&self, parked: bool) {
        let reached = |stage| match stage {
            Stage::Open(next) => Some(next),
            _ => None,
        };
        self.use_in(parked, reached, 43);
    }

    fn wait_for(&self, threads: usize) {
        let mut stage = self.stage.lock().unwrap();
        while self.done.load(SeqCst) < threads {
            stage = self.changed.wait(stage).unwrap();
        }
    }
}

#[watched]
fn all_threads_have_a_librarys_initial_exec_data_before_its_initialisers_run() {
    static ROUND: Mutex<Option<Arc<Round>>> = Mutex::new(None);
    const LATE: usize = 3;
    fn waiting() -> usize {
        many().min(100)
    }
    extern "C" fn called(_: *const c_char, next: Next) {
        let round = ROUND.lock().unwrap().clone().unwrap();
        assert_eq!(next(), 42);
        round.advance(Stage::Initialising(next));
        for _ in 0..LATE {
            let round = round.clone();
            thread::spawn(move || {
                round.use_while_initialising(true);
                round.use_afterwards(true);
            });
        }
        round.wait_for(waiting() + LATE);
    }
    let test = || {
        let Some(library) = Library::build(called, &[]) else {
            return;
        };
        let round = Arc::new(Round {
            stage: Mutex::new(Stage::Waiting),
            done: AtomicUsize::new(0),
            changed: Condvar::new(),
        });
        *ROUND.lock().unwrap() = Some(round.clone());
        let (here, arrived) = mpsc::channel();
        for i in 0..waiting() {
            let (round, here) = (round.clone(), here.clone());
            thread::spawn(move || {
                here.send(()).unwrap();
                round.use_while_initialising(i % 4 > 0);
                round.use_afterwards(i % 4 > 0);
            });
        }
        (0..waiting()).for_each(|_| arrived.recv().unwrap());
        let handle = library.open().unwrap();
        // SAFETY: a function of this type and name.
        let next: Next = unsafe { mem::transmute(libc::dlsym(handle, c"next".as_ptr())) };
        assert_eq!(next(), 43);
        round.advance(Stage::Open(next));
        round.wait_for(waiting() + LATE);
    };
    with_carriers(|| on_both(test));
}

unsafe extern "C" {
    fn dladdr1(
        address: *const c_void,
        found: *mut libc::Dl_info,
        more: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
    fn __cxa_thread_atexit_impl(
        destructor: unsafe extern "C" fn(*mut c_void),
        object: *mut c_void,
        library: *mut c_void,
    ) -> c_int;
    /// Identifies this program among the loaded libraries.
    static __dso_handle: u8;
}

/// Calls by which a thread wants a lock of the linker's.
fn calls_of_the_linker() -> Vec<(&'static str, fn())> {
    extern "C" fn nothing(_: *mut c_void) {}
    const HERE: *const c_void = calls_of_the_linker as *const c_void;
    // SAFETY: valid arguments, which the functions only read or write while they run.
    unsafe {
        vec![
            ("dlopen", || {
                assert!(!libc::dlopen(c"libm.so.6".as_ptr(), libc::RTLD_NOW).is_null());
            }),
            ("dlsym", || {
                assert!(!libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr()).is_null());
            }),
            ("dladdr", || {
                assert_ne!(libc::dladdr(HERE, &mut mem::zeroed()), 0)
            }),
            ("dladdr1", || {
                let mut more = ptr::null_mut();
                assert_ne!(dladdr1(HERE, &mut mem::zeroed(), &mut more, 1), 0);
            }),
            ("dlinfo", || {
                let (mut namespace, handle) = (0_i64, libc::dlopen(ptr::null(), libc::RTLD_NOW));
                let place = (&raw mut namespace).cast();
                assert_eq!(libc::dlinfo(handle, libc::RTLD_DI_LMID, place), 0);
            }),
            ("__cxa_thread_atexit_impl", || {
                let library = (&raw const __dso_handle).cast_mut().cast();
                assert_eq!(
                    __cxa_thread_atexit_impl(nothing, ptr::null_mut(), library),
                    0
                );
            }),
        ]
    }
}

#[watched]
fn an_initialiser_may_park_while_more_threads_than_carriers_want_the_linker() {
    extern "C" fn called(_: *const c_char, _: Next) {
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let threads = 6 * most_carriers();
        BEGUN.store(0, SeqCst);
        for (_name, call) in calls_of_the_linker().into_iter().cycle().take(threads) {
            thread::spawn(move || {
                BEGUN.fetch_add(1, SeqCst);
                call();
            });
        }
        // If the calls kept their carriers, not all of them would begin. (A channel's thread-locals
        // have destructors, and so wait for the linker, natively as well.)
        while BEGUN.load(SeqCst) < threads {
            thread::yield_now();
        }
        thread::spawn(migrate).join().unwrap();
    }
    with_carriers(|| {
        on_both(|| {
            if let Some(library) = Library::build(called, &["-DIFUNC"]) {
                library.open().unwrap();
            }
        });
    });
}

#[watched]
fn a_library_without_room_in_virtual_threads_is_not_initialised() {
    extern "C" fn called(caller: *const c_char, _: Next) {
        // SAFETY: a C string.
        panic!("called by the {:?}", unsafe { CStr::from_ptr(caller) });
    }
    child::isolated(&[("PIRN_TLS_RESERVE", "320")], || {
        let Some(library) = Library::build(called, &["-DEXTRA_BYTES=1000"]) else {
            return;
        };
        on_both(|| {
            let error = library.open().unwrap_err();
            assert!(error.contains("libcalls.so: no room"), "{error}");
            // The linker's locks are free again.
            calls_of_the_linker().iter().for_each(|(_, call)| call());
        });
    });
}
