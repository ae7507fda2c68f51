//! The sieve of Eratosthenes as a chain of threads: each prime number gets a thread, which filters
//! its multiples out of the numbers that pass through. 500 virtual threads, connected by `std`'s
//! channels.
use pirn::thread;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

const PRIMES: usize = 500;

fn main() {
    let passed = AtomicU64::new(0);
    let mut primes = Vec::new();

    // Threads of a scope may borrow from this function: `passed` is on its stack.
    thread::scope(|scope| {
        let passed = &passed;
        let (source, mut numbers) = sync_channel(16);
        scope.spawn(move || (2u64..).try_for_each(|number| source.send(number)));

        while primes.len() < PRIMES {
            let prime = numbers.recv().expect("there is always another prime");
            primes.push(prime);
            let (sender, filtered) = sync_channel(16);
            let unfiltered = std::mem::replace(&mut numbers, filtered);
            scope.spawn(move || {
                for number in unfiltered {
                    passed.fetch_add(1, Ordering::Relaxed);
                    if number % prime != 0 && sender.send(number).is_err() {
                        break; // the next filter has ended
                    }
                }
            });
        }
        // `numbers` is dropped: so the last filter ends, then the one before it, and so on to the
        // source.
    });

    println!("the last of {PRIMES} primes: {}", primes[PRIMES - 1]);
    println!("numbers that passed from thread to thread: {passed:?}");
}
