//! The time in which a failure ends everything else: from the moment one subtask fails until its
//! scope has been left, with thousands of waiting siblings, for each kind of wait.
//!
//! `cargo run --release --example cancellation -- 10000`, optionally with a part of the name of one
//! kind of wait.
use crossbeam_channel::{Receiver, unbounded};
use pirn::scope::JoinError;
use pirn::thread::{self, Interrupted};
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const FOREVER: Duration = Duration::from_secs(3600);

#[pirn::main]
fn main() -> io::Result<()> {
    let argument = std::env::args().nth(1);
    let siblings = argument.map_or(10_000, |text| text.parse().expect("a number of siblings"));
    let sockets = Sockets::open(siblings);
    let read = format!("read, of {} sockets", sockets.0.len());
    let ways: [(&str, &dyn Fn(usize) -> Duration); 8] = [
        ("thread::sleep_interruptible", &sleep),
        ("accept, of one listener", &accept),
        (&read, &|siblings| sockets.read(siblings)),
        ("Condvar, on_interrupt notifies", &condvar_told),
        ("Condvar, is_interrupted in a loop", &condvar_loop),
        ("crossbeam's select, own channels", &select_own),
        ("crossbeam's select, one channel", &select_one),
        ("mpsc, senders dropped by the failure", &hang_up),
    ];
    // All, or those whose name contains the second argument.
    let only = std::env::args().nth(2).unwrap_or_default();
    println!("{:36} in all      each", format!("{siblings} siblings"));
    for (name, way) in ways.iter().filter(|(name, _)| name.contains(&only)) {
        show(name, siblings, way);
    }
    Ok(())
}

/// Measures some rounds, and prints the median.
fn show(name: &str, siblings: usize, round: impl Fn(usize) -> Duration) {
    let mut times: Vec<_> = (0..ROUNDS).map(|_| round(siblings)).collect();
    times.sort();
    let median = times[ROUNDS / 2];
    let each = median.as_nanos() / siblings.max(1) as u128;
    println!(
        "{name:36} {:7.2} ms {each:5} ns",
        median.as_secs_f64() * 1e3
    );
}

/// Lets siblings wait by `wait(i)`, then makes one more call `fail` and fail, and returns how long
/// it took to end all.
fn cancel(siblings: usize, wait: impl Fn(usize) + Sync, fail: impl FnOnce() + Send) -> Duration {
    let (here, failed) = (AtomicUsize::new(0), OnceLock::new());
    let result: Result<(), JoinError<&str>> = pirn::scope::open(|s| {
        for i in 0..siblings {
            let (wait, here) = (&wait, &here);
            s.fork(move || {
                here.fetch_add(1, Relaxed);
                wait(i);
                Err::<(), _>("a sibling")
            });
        }
        while here.load(Relaxed) < siblings {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(50)); // the last of them begins to wait
        s.fork(|| {
            let _ = failed.set(Instant::now());
            fail();
            Err::<(), _>("failed")
        });
        s.join()?;
        Ok(())
    });
    let took = failed.get().expect("the last subtask ran").elapsed();
    assert!(result.is_err());
    took
}

fn sleep(siblings: usize) -> Duration {
    let wait = |_| assert!(thread::sleep_interruptible(FOREVER) == Err(Interrupted));
    cancel(siblings, wait, || ())
}

fn accept(siblings: usize) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let wait = |_| assert!(pirn::thread::is_interrupt(&listener.accept().unwrap_err()));
    cancel(siblings, wait, || ())
}

/// Pairs of sockets: one per sibling, or as many as this process may open.
struct Sockets(Vec<(UnixStream, UnixStream)>);

impl Sockets {
    fn open(siblings: usize) -> Sockets {
        let mut pairs: Vec<_> = (0..siblings)
            .map_while(|_| UnixStream::pair().ok())
            .collect();
        if pairs.len() < siblings {
            pairs.truncate(pairs.len() - 10); // others need some as well
        }
        Sockets(pairs)
    }

    fn read(&self, siblings: usize) -> Duration {
        let wait = |i: usize| {
            let mut socket = &self.0[i % self.0.len()].0;
            assert!(pirn::thread::is_interrupt(
                &socket.read(&mut [0]).unwrap_err()
            ));
        };
        cancel(siblings, wait, || ())
    }
}

/// A condition variable goes on waiting until its condition holds; when a listener notifies it, it
/// checks again.
fn condvar_told(siblings: usize) -> Duration {
    let wait = |_| {
        let shared = Arc::new((Mutex::new(()), Condvar::new()));
        let waker = Arc::clone(&shared);
        let _guard = thread::on_interrupt(move || {
            drop(waker.0.lock().unwrap()); // not between the look at the flag and the wait
            waker.1.notify_all();
        });
        let over = |_: &mut ()| !thread::is_interrupted();
        let _unit = shared.1.wait_while(shared.0.lock().unwrap(), over);
    };
    cancel(siblings, wait, || ())
}

/// Relies on the one spurious wake-up that comes with an interrupt.
fn condvar_loop(siblings: usize) -> Duration {
    let wait = |_| {
        let (mutex, condvar) = (Mutex::new(()), Condvar::new());
        let over = |_: &mut ()| !thread::is_interrupted();
        let _unit = condvar.wait_while(mutex.lock().unwrap(), over);
    };
    cancel(siblings, wait, || ())
}

/// Waits for a message, and for the interruption.
fn select(messages: &Receiver<()>) {
    let (sender, interruption) = crossbeam_channel::bounded::<()>(0);
    let _listens = thread::on_interrupt(move || drop(sender));
    crossbeam_channel::select! {
        recv(messages) -> _ => unreachable!("no thread sends"),
        recv(interruption) -> _ => (),
    }
}

fn select_own(siblings: usize) -> Duration {
    let wait = |_| {
        let (_sender, receiver) = unbounded();
        select(&receiver);
    };
    cancel(siblings, wait, || ())
}

/// A channel keeps its waiters in a list, which each waiter that gives up has to search.
fn select_one(siblings: usize) -> Duration {
    let (_sender, receiver) = unbounded();
    cancel(siblings, |_| select(&receiver), || ())
}

/// No interrupt ends `recv`, but the end of all senders does.
fn hang_up(siblings: usize) -> Duration {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..siblings)
        .map(|_| mpsc::channel::<()>())
        .map(|(sender, receiver)| (sender, Mutex::new(receiver)))
        .unzip();
    let wait = |i: usize| assert!(receivers[i].lock().unwrap().recv().is_err());
    cancel(siblings, wait, || drop(senders))
}
