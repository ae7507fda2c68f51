//! A program that is simulated: `pirn run --seed`.
//!
//! | variable | |
//! |---|---|
//! | `PIRN_SEED=17` | simulates the program by this seed; `17@4711`: if its process has this id |
//! | `PIRN_PAUSES=200:30s` | at one point in 200, a thread pauses for at most 30 s |
//!
//! `pirn run` adds the process id: so a program that another one becomes by `exec` is simulated,
//! such as Python by a shell script, and children are not. These run natively.

use crate::{dump, variable};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use pirn_sim::program;
use std::io::{self, Write};
use std::sync::OnceLock;

/// The exit status of a simulated program that cannot go on.
const STUCK: c_int = 123;
/// The exit status of a program that cannot be simulated, as with `pirn run --strict`.
const REFUSED: c_int = 125;

/// Whether a simulation is asked for.
pub enum Asked {
    No,
    /// Of this process.
    Here,
    /// Of another one, of which this is a child.
    Elsewhere,
}

/// Whether [`__libc_start_main`] is to simulate `main`. Relaxed: there is one thread.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Looks whether this process is to be simulated, which begins with `main`.
pub fn begin() -> Asked {
    let asked = match text(c"PIRN_SEED").map(|seed| seed.split_once('@')) {
        None => Asked::No,
        Some(Some((_, id))) if id.parse() != Ok(std::process::id()) => Asked::Elsewhere,
        Some(_) => Asked::Here,
    };
    IS_ON.store(matches!(asked, Asked::Here), Relaxed);
    asked
}

fn text(name: &CStr) -> Option<&'static str> {
    variable(name)?.to_str().ok()
}

/// Returns what the variables say: the seed, and the pauses.
fn wanted() -> Result<(u64, (u64, Duration)), String> {
    let seed = text(c"PIRN_SEED").unwrap_or_default();
    let number = seed.split('@').next().and_then(|seed| seed.parse().ok());
    let number = number.ok_or_else(|| format!("PIRN_SEED={seed}: a number is needed"))?;
    let Some(value) = text(c"PIRN_PAUSES") else {
        return Ok((number, (0, Duration::ZERO)));
    };
    let wrong = || format!("PIRN_PAUSES={value}: one in how many points, and how long: 200:30s");
    Ok((number, pauses(value).ok_or_else(wrong)?))
}

/// Parses pauses, such as `200:30s`.
fn pauses(text: &str) -> Option<(u64, Duration)> {
    let (one_in, longest) = text.split_once(':')?;
    let digits = longest.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number = digits.parse().ok()?;
    let longest = match &longest[digits.len()..] {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => return None,
    };
    Some((one_in.parse().ok()?, longest))
}

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

static MAIN: OnceLock<Main> = OnceLock::new();

/// Called by the first instructions of each program: calls initialisers, then `main`, then `exit`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: Main,
    count: c_int,
    arguments: *mut *mut c_char,
    first: *const c_void,
    last: *const c_void,
    linkers: *const c_void,
    stack: *const c_void,
) -> c_int {
    type Start = unsafe extern "C" fn(
        Main,
        c_int,
        *mut *mut c_char,
        *const c_void,
        *const c_void,
        *const c_void,
        *const c_void,
    ) -> c_int;
    let main = match IS_ON.load(Relaxed) {
        false => main,
        true => {
            let _ = MAIN.set(main);
            simulate
        }
    };
    // SAFETY: libc's function of this type, which each libc has; the caller's contract.
    unsafe {
        let libcs = libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr());
        transmute::<*mut c_void, Start>(libcs)(main, count, arguments, first, last, linkers, stack)
    }
}

/// What `main` is called with.
struct Call(c_int, *mut *mut c_char, *mut *mut c_char);

/// Runs `main` on a virtual thread, and waits here.
unsafe extern "C" fn simulate(
    count: c_int,
    arguments: *mut *mut c_char,
    variables: *mut *mut c_char,
) -> c_int {
    let mut call = Call(count, arguments, variables);
    let result = wanted().and_then(|(seed, pauses)| {
        // SAFETY: the first thread, in front of `main`; the call stays, since this waits.
        let end = unsafe { program::run(seed, pauses, start, (&raw mut call).cast()) };
        end.map_err(|error| error.to_string())
    });
    let mut errors = io::stderr();
    let status = match result {
        Ok(why) => {
            let _ = writeln!(errors, "pirn: {why}");
            dump::pirn_dump(2);
            STUCK
        }
        Err(error) => {
            let _ = writeln!(errors, "pirn: no simulation: {error}");
            REFUSED
        }
    };
    // SAFETY: no pointers. Handlers of `exit` might wait for the threads that wait.
    unsafe { libc::_exit(status) }
}

/// The program's first thread.
unsafe extern "C-unwind" fn start(call: *mut c_void) -> *mut c_void {
    // SAFETY: the call above.
    let Call(count, arguments, variables) = unsafe { &*call.cast::<Call>() };
    let Some(main) = MAIN.get() else {
        return ptr::null_mut();
    };
    // SAFETY: what libc calls `main` with, and does then.
    unsafe { libc::exit(main(*count, *arguments, *variables)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_one_in_so_many_and_so_long() {
        for (text, expected) in [
            ("200:30s", Some((200, Duration::from_secs(30)))),
            ("1:5ms", Some((1, Duration::from_millis(5)))),
            ("7:8us", Some((7, Duration::from_micros(8)))),
            ("200", None),
            ("200:30", None),
            (":30s", None),
            ("200:s", None),
            ("200:30m", None),
        ] {
            assert_eq!(pauses(text), expected, "{text}");
        }
    }
}
