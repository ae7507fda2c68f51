//! Recording for some seconds, for somebody who asks.

use super::settings::DEFAULT_BYTES;
use super::stream::{From, Stream};
use pirn_rt::recorder::{Rings, User, carrier_ring, rings};
use pirn_rt::runtime::{self, Runtime};
use pirn_rt::time::Deadline;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

/// How often the clock's batches are ended.
const TICK: Duration = Duration::from_millis(1);
/// The rings are read once per this many ticks: before the fastest writer has filled one.
const TICKS_PER_DRAIN: u32 = 4;

/// Records for this long, and writes the events to `out` meanwhile.
///
/// # Errors
/// The process has no virtual threads, or no memory for the rings; or those of `out`.
pub fn record(length: Duration, out: &mut dyn Write) -> io::Result<()> {
    let runtime = runtime::get()
        .ok_or_else(|| io::Error::other("the process has not spawned any virtual thread yet"))?;
    let user = switch_on(runtime, DEFAULT_BYTES)?;
    let rings = rings().ok_or_else(no_memory)?;
    let until = Deadline::after(length);
    let mut stream = Stream::begin(rings, out, From::Now, "asked for")?;
    let mut ticks = 0u32;
    while !until.has_passed() {
        std::thread::sleep(TICK); // Parks, on a virtual thread.
        carrier_ring::tick();
        ticks = ticks.wrapping_add(1);
        if ticks.is_multiple_of(TICKS_PER_DRAIN) {
            stream.drain()?;
        }
    }
    drop(user);
    stream.drain()?;
    stream.end()
}

/// Writes what the rings have.
pub fn kept(out: &mut dyn Write, reason: &str) -> io::Result<()> {
    let rings = match rings() {
        Some(rings) => rings,
        None => no_rings()?,
    };
    let mut stream = Stream::begin(rings, out, From::Oldest, reason)?;
    stream.drain()?;
    stream.end()
}

/// Returns rings without events, while there are no others. They are not those of the recorder,
/// which is to have one per carrier when it is switched on.
fn no_rings() -> io::Result<&'static Rings> {
    static NONE: OnceLock<Rings> = OnceLock::new();
    let new = match NONE.get() {
        Some(rings) => return Ok(rings),
        None => Rings::new(0, 0).map_err(|_| no_memory())?,
    };
    Ok(NONE.get_or_init(|| new))
}

/// Switches the recorder on for as long as the result lives.
pub(super) fn switch_on(runtime: &Runtime, bytes: usize) -> io::Result<User> {
    User::new(runtime.processors.count(), bytes).map_err(|_| no_memory())
}

fn no_memory() -> io::Error {
    io::Error::new(
        io::ErrorKind::OutOfMemory,
        "no memory for the rings of events",
    )
}
