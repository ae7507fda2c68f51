use super::*;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// The time of a whole answer, and more than that.
const SECONDS: u64 = 1;
const LONGER: Duration = Duration::from_millis(1200);

#[test]
fn the_time_to_read_begins_when_there_is_something_to_read() {
    let (ours, _client) = UnixStream::pair().unwrap();
    let client = Fd(ours.into_raw_fd());
    let command = Command {
        name: "test",
        kind: "text",
        keys: &[],
        seconds: Some(SECONDS),
        run: |_, _| Ok(()),
    };
    let mut answer = Answer::new(&client, &command);
    thread::sleep(LONGER); // It is being made.
    answer.send(b"some").unwrap();
    thread::sleep(LONGER); // It is being read.
    let error = answer.send(b"more").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}
