//! Thread-local data of C: libraries opened late, `errno`, libc's own state, C++ destructors.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Barrier, Mutex};

use super::c_checks::cc;
use crate::common::sys::{self, check};
use crate::common::{
    TempDir, child, crowd, crowd_size, many, migrate, on_virtual, virtual_crowd, watched,
};
use pirn::thread;

/// Builds `tests/c/tls.c` with the given TLS model. `None`, and a printed reason, without `cc`.
fn build(folder: &TempDir, model: &str) -> Option<PathBuf> {
    build_with(folder, model, &[])
}

/// As [`build`], with more arguments for the compiler.
fn build_with(folder: &TempDir, model: &str, arguments: &[&str]) -> Option<PathBuf> {
    let library = folder.join(&format!("libtls-{model}{}.so", arguments.concat()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/tls.c");
    let model = format!("-ftls-model={model}");
    let flags = ["-shared", "-fPIC", "-Wl,-z,lazy", &model];
    let flags = flags.iter().chain(arguments).map(Path::new);
    cc(flags.chain([Path::new("-o"), &library, &source]))?;
    Some(library)
}

/// The functions of the library.
#[derive(Clone, Copy)]
struct Library {
    next_initialised: extern "C" fn() -> c_int,
    next_zero: extern "C" fn() -> c_int,
    lazily_bound: extern "C" fn(*const c_char) -> c_long,
}

impl Library {
    /// Opens a library with `dlopen`, for ever.
    fn open(path: &Path) -> Library {
        Library::try_open(path).unwrap_or_else(|error| panic!("dlopen: {error}"))
    }

    /// Opens a library, for ever. Returns the text of `dlerror` if that fails.
    fn try_open(path: &Path) -> Result<Library, String> {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a C string; the library has no initialisers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
        if handle.is_null() {
            return Err(last_error().unwrap().into_string().unwrap());
        }
        let symbol = |name: &CStr| {
            // SAFETY: the handle is open, the name a C string.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!symbol.is_null(), "dlsym: {:?}", last_error());
            symbol
        };
        // SAFETY: these are the functions of `tls.c`, with the types they have there.
        unsafe {
            Ok(Library {
                next_initialised: std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(
                    symbol(c"next_initialised"),
                ),
                next_zero: std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol(
                    c"next_zero",
                )),
                lazily_bound: std::mem::transmute::<
                    *mut c_void,
                    extern "C" fn(*const c_char) -> c_long,
                >(symbol(c"lazily_bound")),
            })
        }
    }

    /// Counts up from the initial values, as on a thread that uses the library for the first time.
    fn use_afresh(&self) {
        for round in 1..=3 {
            assert_eq!((self.next_initialised)(), 41 + round);
            assert_eq!((self.next_zero)(), round);
            migrate();
        }
    }
}

fn last_error() -> Option<CString> {
    // SAFETY: `dlerror` gives null or a C string that is valid until the next `dl` call.
    unsafe {
        let text = libc::dlerror();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_owned())
    }
}

/// Threads made before `open` and threads made after it see the library initialised.
fn open_amid_a_crowd(model: &str, open: fn(PathBuf) -> Library) {
    let folder = TempDir::new(model);
    let Some(path) = build(&folder, model) else {
        return;
    };
    let (all_here, opened) = (
        Barrier::new(crowd_size() + 1),
        Barrier::new(crowd_size() + 1),
    );
    let library = Mutex::new(None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crowd(|_| {
                all_here.wait();
                opened.wait();
                let library: Library = library.lock().unwrap().unwrap();
                library.use_afresh();
            });
        });
        all_here.wait();
        *library.lock().unwrap() = Some(open(path));
        opened.wait();
    });
    let library = library.into_inner().unwrap().unwrap();
    crowd(|_| library.use_afresh());
    virtual_crowd(|_| assert_eq!((library.lazily_bound)(c"271".as_ptr()), 271));
}

#[watched]
fn initial_exec_data_opened_on_a_platform_thread() {
    open_amid_a_crowd("initial-exec", |path| Library::open(&path));
}

#[watched]
fn initial_exec_data_opened_on_a_virtual_thread() {
    open_amid_a_crowd("initial-exec", |path| {
        on_virtual(move || Library::open(&path))
    });
}

#[watched]
fn global_dynamic_data_opened_on_a_platform_thread() {
    open_amid_a_crowd("global-dynamic", |path| Library::open(&path));
}

#[watched]
fn global_dynamic_data_opened_on_a_virtual_thread() {
    open_amid_a_crowd("global-dynamic", |path| {
        on_virtual(move || Library::open(&path))
    });
}

/// Opens libraries while virtual threads wait, which then use all of them.
fn open_amid_virtual_threads(open: impl FnOnce() -> Vec<Library>) {
    let (all_here, opened) = (Barrier::new(many() + 1), Barrier::new(many() + 1));
    let libraries = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            virtual_crowd(|_| {
                all_here.wait();
                opened.wait();
                let libraries = libraries.lock().unwrap().clone();
                libraries.iter().for_each(Library::use_afresh);
            });
        });
        all_here.wait();
        *libraries.lock().unwrap() = open();
        opened.wait();
    });
}

/// Opens a library with a kilobyte of static data while there are virtual threads, and then one
/// with little. Prints how the first went.
fn open_large_and_small() {
    let folder = TempDir::new("reserve");
    let build = |arguments| build_with(&folder, "initial-exec", arguments);
    let (Some(large), Some(small)) = (build(&["-DEXTRA_BYTES=1000"]), build(&[])) else {
        return;
    };
    open_amid_virtual_threads(|| {
        let large = on_virtual(move || Library::try_open(&large));
        match large {
            Ok(_) => println!("\nthe library was opened"),
            Err(ref error) => println!("\nerror: {error}"),
        }
        large.into_iter().chain([Library::open(&small)]).collect()
    });
}

#[watched]
fn a_library_that_the_reserve_is_too_small_for_is_an_error_that_says_what_to_set() {
    if child::is_here() {
        return open_large_and_small();
    }
    let opened = |reserve| {
        let output = child::run(&[("PIRN_TLS_RESERVE", reserve)]);
        assert!(output.status.success(), "{}", child::report(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let stdout = opened("320");
    let Some(error) = stdout.lines().find(|line| line.starts_with("error: ")) else {
        assert!(!stdout.contains("opened"), "{stdout}");
        return; // there is no compiler
    };
    assert!(
        error.contains("libtls-initial-exec-DEXTRA_BYTES=1000.so"),
        "{error}"
    );
    let (_, setting) = error.split_once("PIRN_TLS_RESERVE=").unwrap();
    let needed: String = setting.chars().take_while(char::is_ascii_digit).collect();
    let room = needed.parse::<usize>().unwrap();
    assert!((1000..1400).contains(&room), "{error}");
    let stdout = opened(&needed);
    assert!(stdout.contains("the library was opened"), "{stdout}");
}

#[watched]
fn many_libraries_outgrow_the_first_vector_of_modules() {
    child::isolated(&[("PIRN_TLS_RESERVE", "1K")], open_many_libraries);
}

fn open_many_libraries() {
    let folder = TempDir::new("vector");
    let Some(path) = build(&folder, "global-dynamic") else {
        return;
    };
    open_amid_virtual_threads(|| {
        let copies = (0..40).map(|i| {
            let copy = folder.join(&format!("copy-{i}.so"));
            std::fs::copy(&path, &copy).unwrap();
            Library::open(&copy)
        });
        copies.collect()
    });
}

#[watched]
fn errno_is_per_virtual_thread() {
    crowd(|i| {
        let own = 1 + (i % 100) as c_int;
        sys::set_errno(own);
        for _ in 0..10 {
            thread::yield_now();
            assert_eq!(sys::errno(), own);
        }
        // SAFETY: touches no memory; -1 is never open.
        assert_eq!(unsafe { libc::close(-1) }, -1);
        thread::yield_now();
        assert_eq!(sys::errno(), libc::EBADF);
    });
}

#[watched]
fn dlerror_is_per_virtual_thread() {
    crowd(|i| {
        let path = CString::new(format!("/nowhere/lib{i}.so")).unwrap();
        // SAFETY: a C string; nothing will be loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(handle.is_null());
        migrate();
        let message = last_error().unwrap().into_string().unwrap();
        assert!(message.contains(path.to_str().unwrap()), "{message}");
        assert_eq!(last_error(), None);
    });
}

/// Returns the bytes that `malloc` has handed out.
fn allocated() -> usize {
    // SAFETY: no arguments.
    unsafe { libc::mallinfo2() }.uordblks
}

#[watched]
fn a_thread_that_ends_without_asking_for_its_error_leaves_no_memory() {
    const THREADS: usize = 10_000;
    child::isolated(&[], || {
        let run = || {
            for i in 0..THREADS {
                on_virtual(move || {
                    // SAFETY: C strings; there is no such function, and the other is there.
                    unsafe {
                        let none = libc::dlsym(libc::RTLD_DEFAULT, c"no_such_function".as_ptr());
                        assert!(none.is_null());
                        if i % 2 == 0 {
                            libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr());
                        }
                    }
                });
            }
        };
        run();
        let before = allocated();
        run();
        let grown = allocated().saturating_sub(before);
        assert!(grown < 40 * THREADS, "{grown} bytes");
    });
}

/// glibc's `(locale_t) -1`: the locale that `setlocale` sets, for threads without another.
const GLOBAL_LOCALE: libc::locale_t = ptr::without_provenance_mut(usize::MAX);

unsafe extern "C" {
    fn strerror_l(error: c_int, locale: libc::locale_t) -> *mut c_char;
    /// Identifies this program among the loaded libraries.
    static __dso_handle: u8;
    fn __cxa_thread_atexit_impl(
        destructor: unsafe extern "C" fn(*mut c_void),
        object: *mut c_void,
        library: *mut c_void,
    ) -> c_int;
}

#[watched]
fn libc_buffers_are_per_virtual_thread() {
    // SAFETY: a valid name and mask, and no base.
    let locale = unsafe { libc::newlocale(libc::LC_ALL_MASK, c"C".as_ptr(), ptr::null_mut()) };
    let locale = locale as usize;
    crowd(|i| {
        // For unknown numbers the text is made in a buffer of the thread's own.
        let number = 100_000 + i as c_int;
        // SAFETY: the locale is valid, and the text until this thread's next call.
        unsafe {
            let text = strerror_l(number, locale as libc::locale_t);
            migrate();
            let text = CStr::from_ptr(text).to_str().unwrap();
            assert!(text.ends_with(&number.to_string()), "{text}");
        }
    });
}

#[watched]
fn the_locale_is_per_virtual_thread() {
    crowd(|i| {
        // SAFETY: the locales are valid; this thread's own is taken back before it is freed.
        unsafe {
            assert_eq!(libc::uselocale(ptr::null_mut()), GLOBAL_LOCALE);
            let mine = libc::newlocale(libc::LC_ALL_MASK, c"C".as_ptr(), ptr::null_mut());
            if i % 2 == 0 {
                libc::uselocale(mine);
            }
            for _ in 0..5 {
                migrate();
                // The tables of character classes hang off the locale, by thread.
                assert_ne!(libc::isalpha(c_int::from(b'w')), 0);
                assert_eq!(libc::toupper(c_int::from(b'w')), c_int::from(b'W'));
                let expected = if i % 2 == 0 { mine } else { GLOBAL_LOCALE };
                assert_eq!(libc::uselocale(ptr::null_mut()), expected);
            }
            libc::uselocale(GLOBAL_LOCALE);
            libc::freelocale(mine);
        }
    });
}

#[watched]
fn everyday_libc_calls_work() {
    crowd(|_| {
        let mut buffer = [0 as c_char; 4096];
        // SAFETY: every pointer is valid for what the call does with it.
        unsafe {
            let (mut entry, mut found): (libc::passwd, _) = (std::mem::zeroed(), ptr::null_mut());
            let (name, length) = (c"root".as_ptr(), buffer.len());
            let error = libc::getpwnam_r(name, &mut entry, buffer.as_mut_ptr(), length, &mut found);
            assert_eq!(error, 0);
            assert!(!found.is_null());
            assert_eq!(entry.pw_uid, 0);

            let (time, mut parts): (_, libc::tm) = (86_400, std::mem::zeroed());
            assert!(!libc::localtime_r(&time, &mut parts).is_null());
            assert_eq!(parts.tm_year, 70);

            let text = libc::strerror(libc::ENOENT);
            assert_eq!(CStr::from_ptr(text), c"No such file or directory");

            let format = c"%d %s %.2f".as_ptr();
            libc::snprintf(
                buffer.as_mut_ptr(),
                length,
                format,
                7,
                c"weft".as_ptr(),
                0.5,
            );
            assert_eq!(CStr::from_ptr(buffer.as_ptr()), c"7 weft 0.50");

            let mut random = [0_u8; 16];
            check(libc::getentropy(random.as_mut_ptr().cast(), random.len())).unwrap();
        }
    });
}

thread_local! {
    static ORDER: Cell<usize> = const { Cell::new(0) };
}

static DESTROYED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C" fn note_destruction(object: *mut c_void) {
    thread::yield_now();
    // The last one registered comes first.
    let order = ORDER.get();
    ORDER.set(order + 1);
    assert_eq!(object.addr() % 10, 3 - order);
    DESTROYED.lock().unwrap().push(object.addr());
}

#[watched]
fn cxx_thread_destructors_run_at_the_end_in_reverse() {
    ORDER.get(); // has no destructor itself, so it is there to the last
    let register = |i: usize| {
        for n in 1..=3 {
            let object = ptr::without_provenance_mut(10 * i + n);
            // SAFETY: the destructor only looks at the address of the object.
            let error = unsafe {
                let library = (&raw const __dso_handle).cast_mut().cast();
                __cxa_thread_atexit_impl(note_destruction, object, library)
            };
            assert_eq!(error, 0);
        }
        thread::yield_now();
    };
    let handles: Vec<_> = (0..many())
        .map(|i| thread::spawn(move || register(i)))
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    assert_eq!(DESTROYED.lock().unwrap().len(), 3 * many());
}
