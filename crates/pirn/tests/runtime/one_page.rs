//! A parked thread takes one page of memory: stack, thread-local data and all.
//!
//! Some 100 bytes are left over at the deepest of these waits, of which thread-locals of a program
//! take their part: the tests of threads have 180 bytes of them, so this is not among those.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use std::time::Duration;

use crate::common::{self, child, until, watched};
use pirn::thread;
use pirn_rt::stack::region;
use pirn_rt::sys::page_size;

/// The number of threads that wait for each thing.
const THREADS: usize = 20;

/// Says that the running thread is about to wait for good.
type Announce<'a> = &'a dyn Fn();

/// Returns the numbers, counted from the last, of the pages of the slot of the thread with this
/// `pthread_self` that have memory.
fn pages(pthread: usize) -> Vec<usize> {
    let slot = region::slot_at(pthread).unwrap();
    let [first, end] = [slot.base(), slot.end()].map(|address| address / page_size());
    let mut entries = vec![0; (end - first) * 8];
    let map = File::open("/proc/self/pagemap").unwrap();
    map.read_exact_at(&mut entries, first as u64 * 8).unwrap();
    let present = |entry: &[u8]| u64::from_le_bytes(entry.try_into().unwrap()) >> 63 == 1;
    let entries = entries.chunks(8).rev().enumerate();
    entries
        .filter(|(_, entry)| present(entry))
        .map(|(i, _)| i)
        .collect()
}

/// Starts threads that wait in `wait`, and returns the pages that each has when all of them do.
fn pages_while_waiting(wait: impl Fn(Announce<'_>) + Send + Sync + 'static) -> Vec<Vec<usize>> {
    let wait = Arc::new(wait);
    let addresses: Arc<Vec<AtomicUsize>> =
        Arc::new(Vec::from_iter((0..THREADS).map(|_| AtomicUsize::new(0))));
    let threads = Vec::from_iter((0..THREADS).map(|i| {
        let (wait, addresses) = (Arc::clone(&wait), Arc::clone(&addresses));
        thread::spawn(move || {
            // SAFETY: no preconditions.
            wait(&|| addresses[i].store(unsafe { libc::pthread_self() } as usize, SeqCst));
        })
    }));
    let waits = |i: usize| addresses[i].load(SeqCst) != 0 && common::waits(threads[i].thread());
    until(|| (0..THREADS).all(waits));
    let pages = addresses.iter().map(|address| pages(address.load(SeqCst)));
    pages.collect()
}

/// The number of pages that a waiting thread may have. The frames of unoptimised code, such as
/// generic functions of `std`, are several times as large: three pages usually, and four of a
/// thread that had to wait for the lock of standard output before.
const MOST: usize = if cfg!(debug_assertions) { 4 } else { 1 };

/// The number of threads of each kind that may have more: the first to call a function of libc
/// looks it up in the dynamic linker, and now and then one makes room in a shared table.
const EXCEPTIONS: usize = 2;

/// Asserts that threads that wait in `wait` have one page each.
fn assert_one_page(kind: &str, wait: impl Fn(Announce<'_>) + Send + Sync + 'static) {
    let pages = pages_while_waiting(wait);
    let larger = pages.iter().filter(|pages| pages.len() > MOST);
    assert!(larger.count() <= EXCEPTIONS, "{kind}: {pages:?}");
}

fn for_ever() -> Duration {
    Duration::from_secs(3600)
}

fn in_time_and_channels() {
    assert_one_page("park", |announce| {
        announce();
        thread::park();
    });
    assert_one_page("park_timeout", |announce| {
        announce();
        thread::park_timeout(for_ever());
    });
    assert_one_page("sleep", |announce| {
        announce();
        thread::sleep(for_ever());
    });
    assert_one_page("channel", |announce| {
        let (sender, receiver) = mpsc::channel::<u64>();
        announce();
        receiver.recv().unwrap();
        drop(sender);
    });
    let channels = (0..THREADS).map(|_| mpsc::channel::<u64>());
    let channels = Mutex::new(Vec::from_iter(channels));
    assert_one_page("channel, with a time limit", move |announce| {
        let (_sender, receiver) = channels.lock().unwrap().pop().unwrap();
        announce();
        receiver.recv_timeout(for_ever()).unwrap();
    });
    assert_one_page("bounded channel, receiving", |announce| {
        let (sender, receiver) = mpsc::sync_channel::<u64>(1);
        announce();
        receiver.recv().unwrap();
        drop(sender);
    });
    assert_one_page("bounded channel, sending", |announce| {
        let (sender, _receiver) = mpsc::sync_channel(1);
        sender.send(1).unwrap();
        announce();
        sender.send(2).unwrap();
    });
    assert_one_page("rendezvous, sending", |announce| {
        let (sender, _receiver) = mpsc::sync_channel(0);
        announce();
        sender.send(2).unwrap();
    });
}

fn at_locks() {
    let (lock, changed) = (Mutex::new(()), Condvar::new());
    assert_one_page("condition variable", move |announce| {
        let guard = lock.lock().unwrap();
        announce();
        drop(changed.wait(guard).unwrap());
    });
    let (lock, changed) = (Mutex::new(()), Condvar::new());
    assert_one_page("condition variable, with a time limit", move |announce| {
        let guard = lock.lock().unwrap();
        announce();
        drop(changed.wait_timeout(guard, for_ever()).unwrap());
    });
    let lock: &'static Mutex<()> = Box::leak(Box::new(Mutex::new(())));
    let guard = lock.lock().unwrap();
    assert_one_page("lock", |announce| {
        announce();
        drop(lock.lock().unwrap());
    });
    std::mem::forget(guard);
    let lock: &'static RwLock<()> = Box::leak(Box::new(RwLock::new(())));
    let guard = lock.write().unwrap();
    assert_one_page("read-write lock", |announce| {
        announce();
        drop(lock.read().unwrap());
    });
    std::mem::forget(guard);
    let barrier = Barrier::new(THREADS + 1);
    assert_one_page("barrier", move |announce| {
        announce();
        barrier.wait();
    });
    assert_one_page("join", |announce| {
        let other = thread::spawn(thread::park);
        announce();
        other.join().unwrap();
    });
}

/// Threads that did something before they wait.
fn after_work() {
    assert_one_page("after a reply, in a channel", |announce| {
        let (call, calls) = mpsc::channel::<(u64, mpsc::Sender<u64>)>();
        thread::spawn(move || {
            while let Ok((number, reply)) = calls.recv() {
                reply.send(number + 1).unwrap();
            }
        });
        let (reply, replies) = mpsc::channel();
        for i in 0..3 {
            call.send((i, reply.clone())).unwrap();
            assert_eq!(replies.recv(), Ok(i + 1));
        }
        announce();
        replies.recv().unwrap();
    });
    let shared: &'static (Mutex<u64>, Condvar) =
        Box::leak(Box::new((Mutex::new(0), Condvar::new())));
    assert_one_page("after waking others, at a condition variable", |announce| {
        let (count, changed) = shared;
        let mut guard = count.lock().unwrap();
        *guard += 1;
        changed.notify_all();
        while *guard < THREADS as u64 {
            guard = changed.wait(guard).unwrap();
        }
        announce();
        drop(changed.wait_while(guard, |_| true).unwrap());
    });
    assert_one_page("after an answer, in a socket", |announce| {
        let (mut socket, peer) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            for line in BufReader::new(&peer).lines() {
                (&peer).write_all(line.unwrap().as_bytes()).unwrap();
            }
        });
        let mut buffer = [0; 64];
        for _ in 0..3 {
            socket.write_all(b"a question\n").unwrap();
            assert_eq!(socket.read(&mut buffer).unwrap(), 10);
        }
        announce();
        socket.read_exact(&mut buffer).unwrap();
    });
    assert_one_page("after allocating, in a park", |announce| {
        let numbers = Vec::from_iter(0..1000);
        let text = format!(
            "{} {:?}",
            numbers.len(),
            std::time::Duration::from_millis(3)
        );
        announce();
        thread::park();
        drop(text);
    });
}

fn in_io() {
    assert_one_page("pipe", |announce| {
        let (mut reader, _writer) = std::io::pipe().unwrap();
        announce();
        reader.read_exact(&mut [0]).unwrap();
    });
    assert_one_page("socket", |announce| {
        let (mut socket, _peer) = UnixStream::pair().unwrap();
        announce();
        socket.read_exact(&mut [0]).unwrap();
    });
    assert_one_page("println, then a line from a socket", |announce| {
        let (socket, mut peer) = UnixStream::pair().unwrap();
        peer.write_all(b"the first line\nand a part").unwrap();
        let (mut reader, mut line) = (BufReader::new(socket), String::new());
        reader.read_line(&mut line).unwrap();
        println!("read {line:?} of {} bytes", line.len());
        line.clear();
        announce();
        reader.read_line(&mut line).unwrap();
    });
    assert_one_page("connect, println, a line with a time limit", |announce| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        socket.set_read_timeout(Some(for_ever())).unwrap();
        let (_peer, address) = listener.accept().unwrap();
        println!("connected to {address}");
        let (mut reader, mut line) = (BufReader::new(socket), String::new());
        announce();
        reader.read_line(&mut line).unwrap();
    });
    assert_one_page("accept", |announce| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        announce();
        listener.accept().unwrap();
    });
}

#[watched]
fn a_parked_thread_takes_one_page() {
    if cfg!(pirn_checked_alloc) {
        return; // That allocator has large frames.
    }
    // A thread that is preempted has more: the registers and the frames of what is called then.
    let variables = [("PIRN_STACK_SIZE", "256K"), ("PIRN_PREEMPT", "0")];
    child::isolated(&variables, || {
        in_time_and_channels();
        at_locks();
        in_io();
        after_work();
    });
}
