//! Threads of C that all read one descriptor: what an event costs does not grow with their number.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::thread;

use crate::common::{child, watched};

unsafe extern "C" {
    fn pirn_make_pthreads_virtual(on: c_int);
}

static READER: AtomicI32 = AtomicI32::new(-1);
static HAVE_READ: AtomicUsize = AtomicUsize::new(0);

extern "C" fn read_one(_: *mut c_void) -> *mut c_void {
    let mut byte = 0_u8;
    // SAFETY: room for one byte.
    let count = unsafe { libc::read(READER.load(SeqCst), (&raw mut byte).cast(), 1) };
    assert_eq!(count, 1);
    HAVE_READ.fetch_add(1, SeqCst);
    ptr::null_mut()
}

fn create() -> libc::pthread_t {
    let mut thread = 0;
    // SAFETY: as documented.
    let created =
        unsafe { libc::pthread_create(&mut thread, ptr::null(), read_one, ptr::null_mut()) };
    assert_eq!(created, 0);
    thread
}

/// Returns the number of wakes that it takes to read so many bytes, one by one, by this many
/// threads.
fn wakes(crowd: usize, bytes: usize) -> u64 {
    let mut ends = [0; 2];
    // SAFETY: room for two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    READER.store(ends[0], SeqCst);
    HAVE_READ.store(0, SeqCst);
    let write = || {
        // SAFETY: one byte.
        assert_eq!(unsafe { libc::write(ends[1], c"x".as_ptr().cast(), 1) }, 1);
    };
    let threads: Vec<_> = (0..crowd).map(|_| create()).collect();
    while pirn::metrics().threads.waiting < crowd as u64 {
        thread::yield_now();
    }
    let before = pirn::metrics().wakes;
    for read in 1..=bytes {
        write();
        while HAVE_READ.load(SeqCst) < read {
            thread::yield_now();
        }
    }
    let wakes = pirn::metrics().wakes - before;
    (bytes..crowd).for_each(|_| write());
    for thread in threads {
        // SAFETY: created above, joined once.
        assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
    }
    // SAFETY: ours.
    unsafe { assert_eq!(libc::close(ends[0]) | libc::close(ends[1]), 0) };
    wakes
}

#[watched]
fn an_event_wakes_one_of_many_readers() {
    const BYTES: usize = 100;
    child::isolated(&[], || {
        // SAFETY: this process has a single test.
        unsafe { pirn_make_pthreads_virtual(1) };
        for crowd in [200, 4000] {
            let wakes = wakes(crowd, BYTES);
            // One that gets the byte; a look by the next one may come late and find nothing.
            assert!(
                wakes <= 2 * BYTES as u64,
                "{crowd} readers: {wakes} wakes for {BYTES} bytes"
            );
        }
    });
}
