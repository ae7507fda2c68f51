//! The attribute macros of pirn. Use them as `#[pirn::main]` and `#[pirn::test]`; this crate is a
//! part of `pirn` and is of no use without it.
//!
//! Both leave the function as it is and put a function of the same name around it, which runs the
//! inner one on a virtual thread and waits for it. `expand` has the expansion.

mod expand;
mod simulate;

use expand::Kind;
use proc_macro::TokenStream;

/// Runs `main` on a virtual thread.
///
/// ```text
/// use pirn::thread;
///
/// #[pirn::main]
/// fn main() -> std::io::Result<()> {
///     assert!(thread::current().is_virtual());
///     let file = std::fs::read_to_string("Cargo.toml")?; // parks, does not block
///     thread::spawn(move || println!("{file}")).join().unwrap();
///     Ok(())
/// }
/// ```
///
/// Without this macro `main` runs on a platform thread, from which virtual threads can be spawned
/// as well. With it the program's first thread is a virtual one, so that spawning, joining and
/// handing over between it and the others never has to wake an operating-system thread.
///
/// The function may have all return types of `main`: any
/// [`Termination`](std::process::Termination), for example `Result<(), Box<dyn Error>>` or
/// `ExitCode`. The type need not be `Send`: the result is reported (an `Err` is printed to standard
/// error) on the virtual thread, and only the `ExitCode` leaves it. So a *caller* of the function
/// gets an `ExitCode`, unless the function's type is `()` or `!`. A panic continues to unwind in
/// the caller. When the function returns the process ends, whatever other virtual threads are
/// doing, as with `std`.
///
/// Its thread has the stack size that the system gives to `main` (`ulimit -s`, usually 8 MiB) and
/// the name `main`. If virtual threads cannot run, because a setting is wrong or the machine lacks
/// something, the process ends with one line on standard error and the exit code 1.
///
/// # Errors
///
/// These do not compile: items other than functions, arguments (of the function or of the
/// attribute), generics, `async`, `const`, `unsafe`, `extern "…"`.
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(Kind::Main, args.into(), item.into()).into()
}

/// Makes a function a test that runs on a virtual thread: `#[test]` and [`macro@main`] in one.
///
/// ```text
/// #[pirn::test]
/// fn a_channel_hands_over() {
///     let (tx, rx) = std::sync::mpsc::channel();
///     pirn::thread::spawn(move || tx.send(7).unwrap());
///     assert_eq!(rx.recv(), Ok(7));
/// }
///
/// #[pirn::test]
/// #[should_panic(expected = "empty")]
/// fn an_empty_one_panics() {
///     Vec::<u8>::new().pop().expect("empty");
/// }
/// ```
///
/// `#[should_panic]`, `#[ignore]` and all other attributes keep their meaning, and the test may
/// return a `Result` as under `#[test]`. The virtual thread has the name that the harness gives to
/// its own, and its output is captured as any test's is. The output of *other* virtual threads
/// is not captured, unless the test's own thread prints it: `std` passes the capture on to threads
/// that `std::thread::spawn` starts, and to no others.
///
/// # Errors
///
/// The same as for [`macro@main`]. A further `#[test]` is refused too: the test would run twice.
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(Kind::Test, args.into(), item.into()).into()
}

/// Makes a function a test that is simulated with many seeds: `#[pirn_sim::test]`.
///
/// ```text
/// #[pirn_sim::test(seeds(0..1000), pauses(200, Duration::from_secs(30)))]
/// fn a_lease_has_one_holder() { /* ordinary code: std::thread, std::sync, std::net, … */ }
/// ```
///
/// The arguments are methods of `pirn_sim::Sim`. `#[ignore]`, `#[should_panic]` and all other
/// attributes keep their meaning.
///
/// # Errors
///
/// These do not compile: items other than functions, arguments of the function, a result,
/// generics, `async`.
#[proc_macro_attribute]
pub fn simulate(args: TokenStream, item: TokenStream) -> TokenStream {
    simulate::expand(args.into(), item.into()).into()
}
