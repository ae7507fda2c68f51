//! The common code of the tests of executors.

#![allow(dead_code)] // each test binary uses only a part of it

use std::sync::mpsc;
use std::time::Duration;

use pirn::executor::{Task, TaskError, ThreadPerTask};
use pirn::thread;

use crate::common::on_virtual;

/// Longer than any test.
pub const LONG: Duration = Duration::from_secs(24 * 3600);

/// Runs `body` with an executor on threads of both kinds.
pub fn each_kind(body: fn(ThreadPerTask)) {
    body(ThreadPerTask::new());
    assert!(!thread::take_interrupt());
    on_virtual(move || body(ThreadPerTask::new()));
}

/// Sleeps until the running thread is interrupted. Tells `here` when it begins and when it ends.
pub fn sleep_until_interrupted(here: &mpsc::Sender<&'static str>) {
    here.send("asleep").unwrap();
    thread::sleep_interruptible(LONG).unwrap_err();
    let _ = here.send("interrupted");
}

/// Returns a task that has begun and ends when it is interrupted, and the receiver of its messages.
pub fn sleeper(
    executor: &ThreadPerTask,
) -> Result<(Task<()>, mpsc::Receiver<&'static str>), TaskError> {
    let (here, heard) = mpsc::channel();
    let task = executor.submit(move || sleep_until_interrupted(&here))?;
    assert_eq!(heard.recv(), Ok("asleep"));
    Ok((task, heard))
}

/// Returns a task that has begun and ends only when the sender is used or dropped.
pub fn stubborn(executor: &ThreadPerTask) -> (Task<u32>, mpsc::Sender<u32>) {
    let (end, ended) = mpsc::channel();
    let (here, begun) = mpsc::channel();
    let task = executor.submit(move || {
        here.send(()).unwrap();
        ended.recv().unwrap_or(0)
    });
    begun.recv().unwrap();
    (task.unwrap(), end)
}
