//! Bodies on their way, in whatever protocol: their time limits, and what is wrong with them.

use crate::limits::watch::{Limit, Seat};
use crate::refusal::Refusal;
use http::StatusCode;
use std::io;

/// Reads bytes of a request's body within the time limit for that.
pub(crate) fn read_in_time(
    seat: &Seat,
    read: impl FnOnce() -> io::Result<usize>,
) -> io::Result<usize> {
    // Also if the client's bytes are always there, so that no read waits.
    if seat.is_upload_late() {
        return Err(too_late(seat));
    }
    seat.limit(Limit::Body);
    let result = read();
    seat.progress(*result.as_ref().unwrap_or(&0));
    match result {
        result if !seat.has_expired() => result,
        Ok(_) if seat.is_upload_late() => Err(too_late(seat)),
        Ok(count) => {
            seat.forgive();
            Ok(count)
        }
        Err(_) => Err(too_late(seat)),
    }
}

/// Writes so many bytes of an answer's body, or what has been collected, within the time limit for
/// that.
pub(crate) fn write_in_time(
    seat: &Seat,
    bytes: usize,
    write: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let was_late = seat.has_expired();
    seat.limit(Limit::Write);
    let result = write();
    seat.progress(bytes);
    if result.is_ok() && seat.has_expired() && !was_late {
        seat.forgive();
    }
    result
}

/// The body of a request takes too long.
#[cold]
fn too_late(seat: &Seat) -> io::Error {
    let why = match seat.is_upload_late() {
        true => "the body took longer than the server allows (Timeouts::upload)",
        false => "the body came too slowly",
    };
    Refusal::new(StatusCode::REQUEST_TIMEOUT, why).into()
}

/// Takes bytes of an answer's body off those that its head has announced.
///
/// # Errors
/// If they are more.
pub(crate) fn take_off(left: &mut u64, bytes: usize) -> io::Result<()> {
    let rest = left.checked_sub(bytes as u64);
    *left =
        rest.ok_or_else(|| misused("the body is longer than the Content-Length of its head"))?;
    Ok(())
}

/// Fewer bytes of an answer's body were written than its head has announced.
pub(crate) fn too_short() -> io::Error {
    misused("the body is shorter than the Content-Length of its head")
}

/// A second answer.
pub(crate) fn has_responded() -> io::Error {
    misused("the request has been responded to already")
}

fn misused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// The body of a request ends before its framing says so.
pub(crate) fn ended_early() -> io::Error {
    let why = Refusal::bad("the body ended too early");
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

/// The body of a request is larger than allowed.
pub(crate) fn too_large() -> io::Error {
    let why = "the body is larger than the server's limit";
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timeouts;
    use crate::limits::watch::Watch;
    use pirn::thread;
    use std::sync::Arc;
    use std::time::Duration;

    /// Moves a piece that is through only when its time is up. Returns what that says, and what the
    /// thread's seat then does: whether it has expired, and the upload is late.
    fn just_then<T: Send + 'static>(
        timeouts: Timeouts,
        piece: fn(&Seat, &dyn Fn()) -> io::Result<T>,
    ) -> (io::Result<T>, (bool, bool)) {
        let watch = Watch::new(timeouts);
        let looking = Arc::clone(&watch);
        let looking = thread::spawn(move || looking.run());
        let moving = Arc::clone(&watch);
        let moved = thread::spawn(move || {
            let seat = moving.seat(1).expect("there is no other one");
            seat.sit_down();
            let result = piece(&seat, &|| {
                while !seat.has_expired() {
                    thread::yield_now();
                }
            });
            let interrupted = thread::take_interrupt();
            assert_eq!(
                interrupted,
                result.is_err(),
                "no wait of the handler's ends"
            );
            (result, (seat.has_expired(), seat.is_upload_late()))
        });
        let moved = moved.join().unwrap();
        watch.end();
        looking.join().unwrap();
        moved
    }

    fn read_five(seat: &Seat, time_is_up: &dyn Fn()) -> io::Result<usize> {
        read_in_time(seat, || {
            time_is_up();
            Ok(5)
        })
    }

    #[test]
    fn a_piece_that_comes_just_when_its_time_is_up_is_a_piece() {
        let timeouts = Timeouts::default().body(Duration::ZERO, 1);
        let (result, state) = just_then(timeouts, read_five);
        assert_eq!((result.unwrap(), state), (5, (false, false)));
    }

    #[test]
    fn a_piece_that_is_taken_just_when_its_time_is_up_is_sent() {
        let timeouts = Timeouts::default().body(Duration::ZERO, 1);
        let (result, state) = just_then(timeouts, |seat, time_is_up| {
            write_in_time(seat, 5, || {
                time_is_up();
                Ok(())
            })
        });
        assert_eq!((result.unwrap(), state), ((), (false, false)));
    }

    #[test]
    fn a_piece_that_comes_just_when_the_time_of_the_whole_body_is_up_is_too_late() {
        let timeouts = Timeouts::default().upload(Duration::ZERO);
        let (result, state) = just_then(timeouts, read_five);
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(state, (true, true));
    }
}
