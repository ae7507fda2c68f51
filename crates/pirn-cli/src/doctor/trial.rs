//! A trial: a virtual thread that is spawned, parks in a read, is woken, and ends.

use std::io::{self, Read, Write};
use std::time::Duration;

/// The time limit of the trial, long enough for a very busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the trial. The error says what went wrong.
pub fn run() -> Result<(), String> {
    attempt(PATIENCE).map_err(|error| error.to_string())
}

fn attempt(patience: Duration) -> io::Result<()> {
    let (mut reader, mut writer) = io::pipe()?;
    let thread = pirn::thread::Builder::new().spawn(move || {
        let mut byte = [0];
        reader.read_exact(&mut byte).map(|()| byte[0])
    })?;
    // Time to park in the read, which it need not do.
    std::thread::sleep(Duration::from_millis(2));
    writer.write_all(&[7])?;
    let late = |_| io::Error::other("a virtual thread that waits for bytes is not woken by them");
    match thread.join_timeout(patience).map_err(late)? {
        Ok(Ok(7)) => Ok(()),
        Ok(Ok(_)) => Err(io::Error::other(
            "a virtual thread read other bytes than were written",
        )),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("a virtual thread panicked")),
    }
}

#[cfg(test)]
mod tests;
