//! Opening FIFOs: a wait for the other side, without a platform thread.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::common::kernel::reads_the_end_first;
use crate::common::{TempDir, child, most_carriers, on_virtual, sys, watched};
use pirn::thread;

fn fifo(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.join(name);
    let text = CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a valid path.
    sys::check(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }).unwrap();
    path
}

fn open_to_write(path: &Path) -> File {
    OpenOptions::new().write(true).open(path).unwrap()
}

/// Returns the number of platform threads of this process.
fn platform_threads() -> usize {
    // A virtual thread would need such a thread to read the folder.
    let count = std::thread::spawn(|| fs::read_dir("/proc/self/task").unwrap().count());
    count.join().unwrap()
}

#[watched]
fn many_opens_take_few_threads() {
    const MANY: usize = 300;
    child::isolated(&[], || {
        let folder = TempDir::new("fifos");
        let paths: Vec<_> = (0..MANY).map(|i| fifo(&folder, &i.to_string())).collect();
        let (begun, opened) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
        thread::scope(|scope| {
            for (i, path) in paths.iter().enumerate() {
                scope.spawn(move || {
                    begun.fetch_add(1, SeqCst);
                    let mut byte = [0];
                    if i % 2 == 0 {
                        File::open(path).unwrap().read_exact(&mut byte).unwrap();
                        assert_eq!(byte, *b"x");
                    } else {
                        open_to_write(path).write_all(b"x").unwrap();
                    }
                    opened.fetch_add(1, SeqCst);
                });
            }
            let paths = &paths;
            scope.spawn(move || {
                while begun.load(SeqCst) < MANY {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(50));
                assert_eq!(opened.load(SeqCst), 0);
                // The pool is for calls that end by themselves, and has its own limit.
                let few = 2 * most_carriers() + 64;
                assert!(platform_threads() < few, "{}", platform_threads());
                for (i, path) in paths.iter().enumerate() {
                    if i % 2 == 0 {
                        open_to_write(path).write_all(b"x").unwrap();
                    } else {
                        let mut byte = [0];
                        File::open(path).unwrap().read_exact(&mut byte).unwrap();
                        assert_eq!(byte, *b"x");
                    }
                }
            });
        });
        assert_eq!(opened.load(SeqCst), MANY);
    });
}

#[watched]
fn a_reader_waits_for_a_writer_that_says_nothing() {
    let folder = TempDir::new("fifo");
    let path = fifo(&folder, "fifo");
    let reader = thread::spawn({
        let path = path.clone();
        move || {
            let mut file = File::open(path).unwrap();
            assert_eq!(sys::status_flags(&file) & libc::O_NONBLOCK, 0);
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            text
        }
    });
    // A platform thread, which waits in the kernel.
    let mut writer = open_to_write(&path);
    thread::sleep(Duration::from_millis(5));
    writer.write_all(b"at last").unwrap();
    drop(writer);
    assert_eq!(reader.join().unwrap(), "at last");
}

#[watched]
fn a_writer_waits_for_a_reader() {
    let folder = TempDir::new("fifo");
    let path = fifo(&folder, "fifo");
    let writer = thread::spawn({
        let path = path.clone();
        move || {
            let mut file = open_to_write(&path);
            assert_eq!(sys::status_flags(&file) & libc::O_NONBLOCK, 0);
            file.write_all(b"at last").unwrap();
        }
    });
    thread::sleep(Duration::from_millis(5));
    let mut text = String::new();
    File::open(path).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "at last");
    writer.join().unwrap();
}

#[watched]
fn a_writer_that_has_come_and_gone_was_there() {
    let folder = TempDir::new("fifo");
    let path = fifo(&folder, "fifo");
    on_virtual(move || {
        thread::scope(|scope| {
            let reader = scope.spawn(|| fs::read(&path).unwrap());
            scope.spawn(|| drop(open_to_write(&path)));
            assert_eq!(reader.join().unwrap(), b"");
        });
    });
}

// Alone: a process that another test starts has the descriptor of the first open for a moment, and
// would be the reader that the second one waits for.
#[watched(alone)]
fn an_open_gives_up_when_it_is_interrupted() {
    if !reads_the_end_first() {
        return;
    }
    let folder = TempDir::new("fifo");
    let path = fifo(&folder, "fifo");
    for write in [false, true] {
        let path = path.clone();
        let opening = thread::spawn(move || {
            let mut options = OpenOptions::new();
            let error = options.read(!write).write(write).open(path).unwrap_err();
            assert!(thread::is_interrupt(&error), "{error}");
        });
        thread::sleep(Duration::from_millis(5));
        opening.thread().interrupt();
        opening.join().unwrap();
    }
}
