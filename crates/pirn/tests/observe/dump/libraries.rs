//! Libraries that are opened and closed while dumps are made.

use super::{Read, depth_in, descend};
use crate::common::{TempDir, skip, watched};
use pirn::thread;
use pirn_dump::{State, Thread};
use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// A function that calls another, and is on the stack meanwhile.
const SOURCE: &str = "
void inside_NAME(void (*f)(void *), void *data) {
    volatile char room[64];
    room[0] = 1;
    f(data);
    room[1] = room[0];
}
";

type Inside = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void);

/// Options of the compiler. Without a frame pointer, a stack breaks off in code that is not known.
/// With one it can be followed, and only looks as if it were known.
const FRAMES: [&str; 2] = ["-fomit-frame-pointer", "-fno-omit-frame-pointer"];

/// Builds a library with the function `inside_NAME`. `None`, and a printed reason, without `cc`.
fn build(folder: &TempDir, name: &str, frames: &str) -> Option<PathBuf> {
    let source = folder.join(&format!("{name}.c"));
    let library = folder.join(&format!("lib{name}.so"));
    std::fs::write(&source, SOURCE.replace("NAME", name)).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O2", frames, "-o"]);
    match cc.args([&library, &source]).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            skip(&format!("no C compiler `cc` ({error})"));
            return None;
        }
    }
    Some(library)
}

/// A library that is open.
struct Library {
    handle: *mut c_void,
    inside: Inside,
}

impl Library {
    fn open(path: &std::path::Path, name: &str) -> Library {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        let symbol = CString::new(format!("inside_{name}")).unwrap();
        // SAFETY: C strings; the library has no initialisers; the function has this type.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
            assert!(!handle.is_null());
            let inside = libc::dlsym(handle, symbol.as_ptr());
            assert!(!inside.is_null());
            Library {
                handle,
                inside: std::mem::transmute::<*mut c_void, Inside>(inside),
            }
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: no thread is inside any more.
        assert_eq!(unsafe { libc::dlclose(self.handle) }, 0);
    }
}

extern "C" fn park(_: *mut c_void) {
    thread::park();
}

/// Starts a thread that parks in the library, `depth` frames deep.
fn parks_inside(library: &Library, depth: usize) -> thread::JoinHandle<()> {
    let inside = library.inside;
    let builder = thread::Builder::new().name(format!("inside {depth}"));
    let call = move || {
        // SAFETY: the library is closed after the thread has ended.
        descend(depth, &mut || unsafe { inside(park, std::ptr::null_mut()) });
    };
    builder.spawn(call).unwrap()
}

/// Returns the threads of [`parks_inside`] that wait.
fn waiting(read: &Read) -> impl Iterator<Item = &Thread> {
    let threads = read.dump.threads.iter();
    threads.filter(|thread| {
        let name = thread.name.as_deref().unwrap_or_default();
        thread.state == State::Waiting && name.starts_with(b"inside ")
    })
}

/// Asserts that the stack of a thread of [`parks_inside`] is whole, with the library's function.
fn check(read: &Read, thread: &Thread, function: &str) {
    let functions = read.functions(thread);
    let functions = functions.unwrap_or_else(|| panic!("{thread:?} has no whole stack"));
    let name = String::from_utf8(thread.name.clone().unwrap()).unwrap();
    let place = functions.iter().position(|name| name == function);
    let place = place.unwrap_or_else(|| panic!("no {function} in {functions:?}"));
    assert!(place < functions.len() - 1);
    let depth = name.strip_prefix("inside ").unwrap();
    assert_eq!(depth_in(&functions), depth.parse::<usize>().unwrap());
}

#[watched(alone)]
fn a_library_that_was_opened_after_a_dump_is_known_to_the_next() {
    let folder = TempDir::new("libraries");
    Read::now();
    for round in 0..5 {
        let name = format!("late{round}");
        let Some(path) = build(&folder, &name, FRAMES[round % 2]) else {
            return;
        };
        let library = Library::open(&path, &name);
        let threads = [1, 9].map(|depth| parks_inside(&library, depth));
        let read = Read::when_waiting(threads.len());
        let mut seen = 0;
        for thread in waiting(&read) {
            check(&read, thread, &format!("inside_{name}"));
            seen += 1;
        }
        assert_eq!(seen, threads.len());
        for thread in threads {
            thread.thread().unpark();
            thread.join().unwrap();
        }
        drop(library);
        // What it was told of that library is of no use for the next one, at the same addresses.
        assert_eq!(Read::now().dump.totals.listed, 0);
    }
}

/// Dumps are made all the time while libraries come and go, with threads in them. Many others are
/// looked at first, so most libraries are opened after a dump has begun.
#[watched(alone)]
fn libraries_come_and_go_while_dumps_are_made() {
    const ROUNDS: u32 = 30;
    const OTHERS: usize = 3000;
    static OVER: AtomicBool = AtomicBool::new(false);
    static SEEN: AtomicU32 = AtomicU32::new(0);
    let folder = TempDir::new("libraries");
    let names = ["one", "two"];
    let built = names.iter().zip(FRAMES);
    let Some(paths) = built
        .map(|(name, frames)| build(&folder, name, frames))
        .collect()
    else {
        return;
    };
    let paths: Vec<PathBuf> = paths;
    let others = Vec::from_iter((0..OTHERS).map(|_| thread::spawn(thread::park)));
    std::thread::scope(|scope| {
        let dumps = scope.spawn(|| {
            while !OVER.load(SeqCst) {
                let read = Read::now();
                for thread in waiting(&read) {
                    // Also if the library was opened after this dump had begun.
                    let functions = read.functions(thread);
                    let functions = functions.unwrap_or_else(|| panic!("{thread:?} is cut off"));
                    let has = |part| functions.iter().any(|name| name.contains(part));
                    assert!(has("descend"), "{functions:?}");
                    // If it has been closed since, its function has no name.
                    SEEN.fetch_add(has("inside_").into(), SeqCst);
                }
            }
        });
        for round in 0..ROUNDS {
            let which = round as usize % 2;
            let library = Library::open(&paths[which], names[which]);
            let threads = [2, 5, 8].map(|depth| parks_inside(&library, depth));
            let before = SEEN.load(SeqCst);
            while SEEN.load(SeqCst) < before + 3 {
                assert!(!dumps.is_finished(), "it has failed");
                std::thread::yield_now();
            }
            for thread in threads {
                thread.thread().unpark();
                thread.join().unwrap();
            }
        }
        OVER.store(true, SeqCst);
    });
    for other in others {
        other.thread().unpark();
        other.join().unwrap();
    }
}
