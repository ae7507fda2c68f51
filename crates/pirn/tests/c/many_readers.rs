//! Threads of C that all read one descriptor: what an event costs does not grow with their number.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::common::{child, watched};

unsafe extern "C" {
    fn pirn_make_pthreads_virtual(on: c_int);
}

/// Where the threads read, and where they write what they have read.
static PIPES: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

fn read(from: c_int) -> u8 {
    let mut byte = 0_u8;
    // SAFETY: room for one byte.
    let count = unsafe { libc::read(from, (&raw mut byte).cast(), 1) };
    assert_eq!(count, 1);
    byte
}

fn write(to: c_int, byte: u8) {
    // SAFETY: one byte.
    let count = unsafe { libc::write(to, (&raw const byte).cast(), 1) };
    assert_eq!(count, 1);
}

fn pipe() -> [c_int; 2] {
    let mut ends = [0; 2];
    // SAFETY: room for two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

extern "C" fn pass_one_on(_: *mut c_void) -> *mut c_void {
    let [from, to] = PIPES.each_ref().map(|end| end.load(SeqCst));
    write(to, read(from));
    ptr::null_mut()
}

fn create() -> libc::pthread_t {
    let (mut thread, none) = (0, ptr::null_mut());
    // SAFETY: as documented.
    let created = unsafe { libc::pthread_create(&mut thread, ptr::null(), pass_one_on, none) };
    assert_eq!(created, 0);
    thread
}

/// Returns the number of wakes that it takes to read so many bytes, one by one, by this many
/// threads.
fn wakes(crowd: usize, bytes: usize) -> u64 {
    let ([from, to], [read_passed, passed]) = (pipe(), pipe());
    PIPES[0].store(from, SeqCst);
    PIPES[1].store(passed, SeqCst);
    let threads: Vec<_> = (0..crowd).map(|_| create()).collect();
    while pirn::metrics::snapshot()["threads.waiting"] < crowd as u64 {
        thread::sleep(Duration::from_millis(5)); // Metrics cost some milliseconds of CPU.
    }
    let pass = || {
        write(to, b'x');
        assert_eq!(read(read_passed), b'x');
    };
    let before = pirn::metrics::snapshot()["wakes"];
    (0..bytes).for_each(|_| pass());
    let wakes = pirn::metrics::snapshot()["wakes"] - before;
    (bytes..crowd).for_each(|_| pass());
    for thread in threads {
        // SAFETY: created above, joined once.
        assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
    }
    for end in [from, to, read_passed, passed] {
        // SAFETY: ours.
        assert_eq!(unsafe { libc::close(end) }, 0);
    }
    wakes
}

#[watched]
fn an_event_wakes_one_of_many_readers() {
    const BYTES: usize = 100;
    child::isolated(&[], || {
        // SAFETY: this process has a single test.
        unsafe { pirn_make_pthreads_virtual(1) };
        for crowd in [200, 2000] {
            let wakes = wakes(crowd, BYTES);
            // One that gets the byte; a look by the next one may come late and find nothing.
            assert!(
                wakes <= 2 * BYTES as u64,
                "{crowd} readers: {wakes} wakes for {BYTES} bytes"
            );
        }
    });
}
