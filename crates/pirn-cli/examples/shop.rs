//! A program to look at with `pirn top` and `pirn console`: a shop with orders in scopes, customers
//! that wait for a lock or for each other, and threads whose names try to break a page.
//!
//! `cargo run -p pirn-cli --example shop`, then `pirn console shop`. It takes commands from its
//! standard input, a line each: `customers 1000`, `hostile`, `circle`, `late`. It ends with its
//! input.

use pirn::scope::{self, JoinError};
use pirn::thread;
use std::io::{self, Read, Write};
use std::mem::take;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const FOREVER: Duration = Duration::from_secs(3600);

fn main() -> io::Result<()> {
    named("shop", run).join().expect("it does not panic")
}

fn run() -> io::Result<()> {
    named("orders", || shop().expect("nothing ends it"));
    for number in 1..=3 {
        let ((to_cook, at_cook), (to_waiter, at_waiter)) = (channel(), channel());
        named(&format!("waiter {number}"), move || {
            talk(&to_cook, &at_waiter)
        });
        named(&format!("cook {number}"), move || {
            talk(&to_waiter, &at_cook)
        });
    }
    named("accountant", add_up);
    println!("ready");
    io::stdout().flush()?;
    let till = Arc::new(Mutex::new(()));
    let owner = Arc::clone(&till);
    named("cashier", move || count_money(&owner));
    let worst = Arc::new(Mutex::new(Duration::ZERO));
    let ticking = Arc::clone(&worst);
    named("clock", move || tick(&ticking));
    for line in io::stdin().lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("customers", count) => customers(count.parse().unwrap_or(1), &till),
            ("hostile", _) => hostile(),
            ("circle", _) => circle(),
            ("late", _) => println!("{:?}", take(&mut *worst.lock().expect("never poisoned"))),
            _ => println!("there is no command {line:?}"),
        }
        println!("done");
        io::stdout().flush()?;
    }
    Ok(())
}

fn named<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let builder = thread::Builder::new().name(name.into());
    builder.spawn(body).expect("there is memory for a thread")
}

/// Handles orders, each in a scope of its own.
fn shop() -> Result<(), JoinError<io::Error>> {
    scope::Builder::new().name("shop").open(|s| {
        for number in 1..=3 {
            s.fork(move || order(number).map_err(JoinError::flatten));
        }
        s.join()?;
        Ok(())
    })
}

fn order(number: u32) -> Result<(), JoinError<io::Error>> {
    let names = thread::Builder::new().name_counter("part-", 1);
    let order = scope::Builder::new().name(format!("order {number}"));
    order.threads(names).open(|s| {
        s.fork(look_into_stock);
        s.fork(ask_the_bank);
        s.join()?;
        Ok(())
    })
}

fn look_into_stock() -> io::Result<()> {
    thread::sleep(FOREVER);
    Ok(())
}

/// Waits for an answer that never comes.
fn ask_the_bank() -> io::Result<()> {
    let (mut here, _bank) = UnixStream::pair()?;
    let mut answer = [0];
    here.read_exact(&mut answer)
}

/// Sends a word back and forth, some hundred times per second.
fn talk(to: &Sender<u32>, from: &Receiver<u32>) {
    while to.send(1).is_ok() && from.recv().is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Computes a third of the time.
fn add_up() {
    loop {
        let start = Instant::now();
        let mut sum = 0_u64;
        while start.elapsed() < Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Holds the till, and does not give it back.
fn count_money(till: &Mutex<()>) {
    let _till = till.lock();
    thread::sleep(FOREVER);
}

/// Naps for a millisecond in a loop. The 99th percentile of a second's naps, in the worst second,
/// goes into `worst`.
fn tick(worst: &Mutex<Duration>) {
    loop {
        let begin = Instant::now();
        let mut naps = Vec::with_capacity(1000);
        while begin.elapsed() < Duration::from_secs(1) {
            let start = Instant::now();
            thread::sleep(Duration::from_millis(1));
            naps.push(start.elapsed());
        }
        naps.sort_unstable();
        let of_this_second = naps[(naps.len() - 1) * 99 / 100];
        let mut worst = worst.lock().expect("never poisoned");
        *worst = of_this_second.max(*worst);
    }
}

/// Customers: half of them look around, the others want to pay.
fn customers(count: usize, till: &Arc<Mutex<()>>) {
    for number in 0..count {
        let till = Arc::clone(till);
        if number % 2 == 0 {
            thread::spawn(|| thread::sleep(FOREVER));
        } else {
            thread::spawn(move || drop(till.lock()));
        }
    }
}

/// Threads and a scope whose names are markup, quotes, commands for a terminal, and very long.
fn hostile() {
    let long = "long".repeat(2500);
    for name in [
        "<script>window.broken = true</script>",
        "<img src=x onerror=\"window.broken = true\">",
        "\"><svg onload='window.broken = true'>",
        "'; window.broken = true; //",
        "\x1b[31mred\x1b[0m \x07",
        "\u{202e}txt.exe \u{2066}\u{200b}",
        "two\nlines\r\ndata: broken\n\n",
        "javascript:window.broken=true",
        &long,
    ] {
        named(name, || thread::sleep(FOREVER));
    }
    named("opens a scope", || {
        let scope = scope::Builder::new().name("<script>window.broken = true</script>");
        scope.open(|s| {
            s.fork(look_into_stock);
            s.join()?;
            Ok(())
        })
    });
}

/// Two threads that wait for each other's end.
fn circle() {
    let (to_first, at_first) = channel::<thread::JoinHandle<()>>();
    let first = named("first of a circle", move || {
        let _ = at_first.recv().expect("it comes").join();
    });
    let second = named("second of a circle", move || {
        let _ = first.join();
    });
    to_first.send(second).expect("it waits");
}
