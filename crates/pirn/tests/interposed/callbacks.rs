//! Functions of libc that call the program back, many of them with a lock held. The callbacks park,
//! in more threads at once than there can be carriers.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::{mem, ptr};

use libc::{FILE, dirent64, off_t, size_t, ssize_t};

use super::open_files::scandir;
use crate::common::{TempDir, child, most_carriers, watched};
use pirn::thread;

/// The functions by which libc reads, writes, positions and closes a stream of the program's.
#[repr(C)]
struct CookieFunctions {
    read: Option<extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t>,
    write: Option<extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t>,
    seek: Option<extern "C" fn(*mut c_void, *mut off_t, c_int) -> c_int>,
    close: Option<extern "C" fn(*mut c_void) -> c_int>,
}

type Printf = extern "C" fn(*mut FILE, *const c_void, *const *const c_void) -> c_int;
type PrintfSize = extern "C" fn(*const c_void, size_t, *mut c_int, *mut c_int) -> c_int;
type Order = extern "C" fn(*const c_void, *const c_void) -> c_int;
type Visit = extern "C" fn(*const c_void, c_int, c_int);
type Walk = extern "C" fn(*const c_char, *const libc::stat, c_int, *mut c_void) -> c_int;

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, io: CookieFunctions) -> *mut FILE;
    fn register_printf_specifier(letter: c_int, print: Printf, size: PrintfSize) -> c_int;
    fn tsearch(key: *const c_void, root: *mut *mut c_void, order: Order) -> *mut c_void;
    fn twalk(root: *const c_void, visit: Visit);
    fn nftw(path: *const c_char, visit: Walk, descriptors: c_int, flags: c_int) -> c_int;
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    fn at_quick_exit(function: extern "C" fn()) -> c_int;
    fn quick_exit(status: c_int);
    fn fseeko64(stream: *mut FILE, offset: off_t, whence: c_int) -> c_int;
    fn ftello64(stream: *mut FILE) -> off_t;
    fn _IO_ftell(stream: *mut FILE) -> c_long;
    fn _IO_ungetc(letter: c_int, stream: *mut FILE) -> c_int;
    fn call_once(once: *mut libc::pthread_once_t, function: extern "C" fn());
}

/// The times that a callback has parked.
static PARKED: AtomicUsize = AtomicUsize::new(0);

/// Parks until a new thread has run, for which there must be a carrier.
fn park() {
    PARKED.fetch_add(1, SeqCst);
    thread::spawn(thread::yield_now).join().unwrap();
}

extern "C" fn read(_: *mut c_void, buffer: *mut c_char, size: size_t) -> ssize_t {
    park();
    // SAFETY: the room that libc offers.
    unsafe { buffer.write_bytes(b'\n', size.min(16)) };
    size.min(16).cast_signed()
}

extern "C" fn write(_: *mut c_void, _: *const c_char, size: size_t) -> ssize_t {
    park();
    size.cast_signed()
}

extern "C" fn seek(_: *mut c_void, place: *mut off_t, _: c_int) -> c_int {
    park();
    // SAFETY: libc's variable.
    unsafe { *place = 0 };
    0
}

extern "C" fn close(_: *mut c_void) -> c_int {
    park();
    0
}

/// Opens a stream whose functions park.
fn open() -> *mut FILE {
    let io = CookieFunctions {
        read: Some(read),
        write: Some(write),
        seek: Some(seek),
        close: Some(close),
    };
    // SAFETY: the functions do not use the cookie.
    let stream = unsafe { fopencookie(ptr::null_mut(), c"r+".as_ptr(), io) };
    assert!(!stream.is_null());
    stream
}

/// The stream that all threads of a row share.
static SHARED: AtomicPtr<FILE> = AtomicPtr::new(ptr::null_mut());

fn shared() -> *mut FILE {
    SHARED.load(SeqCst)
}

extern "C" fn order(_: *const c_void, _: *const c_void) -> c_int {
    park();
    -1
}

/// A function that is called by each thread. Its name is for the report of a hang.
type Row = (&'static str, unsafe fn());

/// The functions, in the order in which they are tried.
const ROWS: &[Row] = &[
    // SAFETY: valid arguments, and functions that stay.
    ("dl_iterate_phdr", || unsafe {
        unsafe extern "C" fn each(_: *mut libc::dl_phdr_info, _: size_t, _: *mut c_void) -> c_int {
            park();
            1
        }
        libc::dl_iterate_phdr(Some(each), ptr::null_mut());
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("pthread_once, call_once", || unsafe {
        extern "C" fn once() {
            park();
        }
        let (mut one, mut two) = (libc::PTHREAD_ONCE_INIT, libc::PTHREAD_ONCE_INIT);
        libc::pthread_once(&mut one, once);
        call_once(&mut two, once);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("qsort, bsearch", || unsafe {
        unsafe extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
            order(a, b)
        }
        let mut numbers = [2_u32, 1];
        let key = (&raw const numbers[0]).cast();
        libc::qsort((&raw mut numbers).cast(), 2, 4, Some(compare));
        libc::bsearch(key, (&raw const numbers).cast(), 2, 4, Some(compare));
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("tsearch, twalk", || unsafe {
        extern "C" fn visit(_: *const c_void, _: c_int, _: c_int) {
            park();
        }
        let mut root = ptr::null_mut();
        for key in [c"a", c"b"] {
            tsearch(key.as_ptr().cast(), &mut root, order);
        }
        twalk(root, visit);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("scandir", || unsafe {
        unsafe extern "C" fn choose(_: *const dirent64) -> c_int {
            park();
            0
        }
        unsafe extern "C" fn compare(_: *mut *const dirent64, _: *mut *const dirent64) -> c_int {
            0
        }
        let mut list = ptr::null_mut();
        assert_eq!(scandir(folder().as_ptr(), &mut list, choose, compare), 0);
        libc::free(list.cast());
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("glob", || unsafe {
        extern "C" fn error(_: *const c_char, error: c_int) -> c_int {
            assert_eq!(error, libc::ELOOP);
            park();
            0
        }
        let pattern = [folder().to_bytes(), b"/loop/*\0"].concat();
        let mut found: libc::glob_t = mem::zeroed();
        libc::glob(pattern.as_ptr().cast(), 0, Some(error), &mut found);
        libc::globfree(&mut found);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("nftw", || unsafe {
        extern "C" fn visit(
            _: *const c_char,
            _: *const libc::stat,
            _: c_int,
            _: *mut c_void,
        ) -> c_int {
            park();
            0
        }
        const PHYSICAL: c_int = 1; // FTW_PHYS
        assert_eq!(nftw(folder().as_ptr(), visit, 4, PHYSICAL), 0);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("a stream's own function to write", || unsafe {
        libc::fputs(c"text".as_ptr(), shared());
        assert_eq!(libc::fflush(shared()), 0);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("a stream's own function to read", || unsafe {
        let mut line = [0; 64];
        assert!(!libc::fgets(line.as_mut_ptr(), 64, shared()).is_null());
        libc::ungetc(libc::fgetc(shared()), shared());
        _IO_ungetc(libc::fgetc(shared()), shared());
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("a stream's own function to seek", || unsafe {
        assert_eq!(libc::fseek(shared(), 0, libc::SEEK_END), 0);
        assert_eq!(libc::fseeko(shared(), 0, libc::SEEK_END), 0);
        assert_eq!(fseeko64(shared(), 0, libc::SEEK_END), 0);
        libc::rewind(shared());
        let places: [c_long; 4] = [
            _IO_ftell(shared()),
            libc::ftell(shared()),
            libc::ftello(shared()),
            ftello64(shared()),
        ];
        assert_eq!(places, [0; 4]);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("a stream's own function to close", || unsafe {
        assert_eq!(libc::fclose(open()), 0);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("fflush of all streams", || unsafe {
        libc::fputs(c"text".as_ptr(), shared());
        assert_eq!(libc::fflush(ptr::null_mut()), 0);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("a format's own letter", || unsafe {
        libc::fprintf(shared(), c"%W".as_ptr(), 0);
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("the destructor of a key", || unsafe {
        unsafe extern "C" fn destroy(_: *mut c_void) {
            park();
        }
        let mut key = 0;
        assert_eq!(libc::pthread_key_create(&mut key, Some(destroy)), 0);
        libc::pthread_setspecific(key, (&raw const PARKED).cast());
    }),
    // SAFETY: valid arguments, and functions that stay.
    ("pthread_atfork", || unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            child => assert_eq!(libc::waitpid(child, ptr::null_mut(), 0), child),
        }
    }),
];

/// A folder with one file, and a link to itself.
fn folder() -> &'static CStr {
    static FOLDER: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
    if FOLDER.load(SeqCst).is_null() {
        let folder = Box::leak(Box::new(TempDir::new("callbacks")));
        std::fs::write(folder.join("file"), "").unwrap();
        std::os::unix::fs::symlink("loop", folder.join("loop")).unwrap();
        let path = CString::new(folder.path().to_str().unwrap()).unwrap();
        FOLDER.store(path.into_raw(), SeqCst);
    }
    // SAFETY: stored above, and never freed.
    unsafe { CStr::from_ptr(FOLDER.load(SeqCst)) }
}

/// Prepares what is registered once.
fn register() {
    extern "C" fn print(_: *mut FILE, _: *const c_void, _: *const *const c_void) -> c_int {
        park();
        0
    }
    extern "C" fn sizes(
        _: *const c_void,
        count: size_t,
        kinds: *mut c_int,
        _: *mut c_int,
    ) -> c_int {
        if count > 0 {
            // SAFETY: room for as many kinds. 0: an int.
            unsafe { *kinds = 0 };
        }
        1
    }
    unsafe extern "C" fn at_fork() {
        park();
    }
    // SAFETY: functions that stay valid.
    unsafe {
        assert_eq!(
            register_printf_specifier(c_int::from(b'W'), print, sizes),
            0
        );
        assert_eq!(libc::pthread_atfork(Some(at_fork), Some(at_fork), None), 0);
    }
    folder();
}

/// Runs `row` in more threads than there can be carriers, with 1, 2 and 8 of them.
fn with_few_carriers(body: impl Fn()) {
    let settings = ["1", "2", "8"]
        .map(|carriers| [("PIRN_PARALLELISM", carriers), ("PIRN_SPARE_CARRIERS", "2")]);
    child::isolated_each(settings, body);
}

#[watched]
fn callbacks_under_locks_of_libc_may_park() {
    with_few_carriers(|| {
        register();
        for (name, call) in ROWS {
            println!("{name}");
            SHARED.store(open(), SeqCst);
            let before = PARKED.load(SeqCst);
            thread::scope(|scope| {
                for _ in 0..most_carriers() + 4 {
                    // SAFETY: each row has valid arguments.
                    scope.spawn(|| unsafe { call() });
                }
            });
            assert!(PARKED.load(SeqCst) > before, "{name} calls nothing back");
        }
    });
}

/// A function that ends the process, after one that registers what it calls.
type End = (&'static str, unsafe fn(), unsafe fn());

const ENDS: [End; 2] = [
    (
        "exit",
        // SAFETY: valid arguments, and functions that stay.
        || unsafe {
            extern "C" fn at_exit() {
                park();
            }
            extern "C" fn on_end(_: c_int, _: *mut c_void) {
                park();
            }
            libc::atexit(at_exit);
            on_exit(on_end, ptr::null_mut());
        },
        // SAFETY: valid arguments, and functions that stay.
        || unsafe { libc::exit(0) },
    ),
    (
        "quick_exit",
        // SAFETY: valid arguments, and functions that stay.
        || unsafe {
            extern "C" fn at_exit() {
                park();
            }
            at_quick_exit(at_exit);
        },
        // SAFETY: valid arguments, and functions that stay.
        || unsafe { quick_exit(0) },
    ),
];

fn end_with((name, register, end): End) {
    with_few_carriers(|| {
        println!("{name}");
        // SAFETY: functions that stay valid.
        unsafe { register() };
        thread::scope(|scope| {
            for _ in 0..most_carriers() + 4 {
                // SAFETY: the process's end.
                scope.spawn(|| unsafe { end() });
            }
        });
        unreachable!("{name} returned");
    });
}

#[watched]
fn functions_called_by_exit_may_park() {
    end_with(ENDS[0]);
}

#[watched]
fn functions_called_by_quick_exit_may_park() {
    end_with(ENDS[1]);
}
