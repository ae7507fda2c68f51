//! `SIGQUIT`: a dump on standard error, once, and only where it would have ended the process.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::target::{Target, be_target, be_told, role, until};
use crate::common::sys::{check, waitpid};
use crate::common::{child, watched};
use libc::{SIG_DFL, SIG_IGN, SIGQUIT, sighandler_t};

/// The beginning of what is written.
const SAYS: &str = "pirn: ";

/// Starts a child with its standard error in our hands.
fn start(variables: &[(&str, &str)], role: &str) -> (Target, BufReader<std::io::PipeReader>) {
    let (from, to) = std::io::pipe().unwrap();
    let mut command = command();
    command
        .envs(variables.iter().copied())
        .env("PIRN_TEST_ROLE", role);
    command.stderr(to.as_fd().try_clone_to_owned().unwrap());
    (Target::start_by(command), BufReader::new(from))
}

/// Returns a command for a child in which the default action is in force: shells start what is to
/// run in the background with this signal ignored.
fn command() -> Command {
    let mut command = child::command();
    // SAFETY: the call is allowed between a fork and an exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(SIGQUIT, SIG_DFL);
            Ok(())
        });
    }
    command
}

fn quit(target: &Target) {
    // SAFETY: no pointers.
    check(unsafe { libc::kill(target.pid() as i32, SIGQUIT) }).unwrap();
}

/// Sends the signal again and again until the target ends. Returns the signal that has ended it.
fn ended_by(mut target: Target) -> Option<i32> {
    let status = until(|| {
        quit(&target);
        target.child().try_wait().unwrap()
    });
    target.kill();
    status.signal()
}

#[watched]
fn the_first_writes_a_dump_and_the_second_ends_the_process() {
    if child::is_here() {
        return be_target();
    }
    let (target, mut errors) = start(&[], "");
    quit(&target);
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with(SAYS), "{line}");
    until(|| (target.threads("pirn-carrier-0") == 1).then_some(())); // It goes on.
    assert_eq!(ended_by(target), Some(SIGQUIT));
}

#[watched]
fn it_can_be_switched_off() {
    if child::is_here() {
        return be_target();
    }
    let (mut target, _errors) = start(&[("PIRN_SIGQUIT", "off")], "");
    quit(&target); // The first.
    let status = target.child().wait().unwrap();
    target.kill();
    assert_eq!(status.signal(), Some(SIGQUIT));
}

#[watched]
fn a_process_that_ignores_it_goes_on_ignoring_it() {
    if child::is_here() {
        // SAFETY: no handler; before the first virtual thread.
        unsafe { libc::signal(SIGQUIT, SIG_IGN) };
        return be_told(|_| format!("{}", current() == SIG_IGN));
    }
    let (mut target, _errors) = start(&[], "");
    quit(&target);
    quit(&target);
    assert_eq!(target.tell("what is in force?"), "true");
    target.finish();
}

/// Returns the action that is in force, as a program sees it.
fn current() -> sighandler_t {
    // SAFETY: all zeros is a valid action, which is filled in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(SIGQUIT, std::ptr::null(), &mut action);
        action.sa_sigaction
    }
}

/// How often the program's own handler has run.
static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handler(_: i32) {
    HANDLED.fetch_add(1, SeqCst);
}

#[watched]
fn a_handler_of_the_program_takes_its_place_and_may_leave_it() {
    if child::is_here() {
        let ours = handler as extern "C" fn(i32) as sighandler_t;
        return match role().as_str() {
            "before" => {
                // SAFETY: a handler that does nothing.
                unsafe { libc::signal(SIGQUIT, ours) };
                be_told(|_| format!("{}", current() == ours))
            }
            _ => be_told(|what| {
                if what == "handled" {
                    return HANDLED.load(SeqCst).to_string();
                }
                let before = current();
                let new = if what == "install" { ours } else { SIG_DFL };
                // SAFETY: a handler that does nothing.
                let old = unsafe { libc::signal(SIGQUIT, new) };
                assert_eq!(old, before);
                format!("{}", old == SIG_DFL)
            }),
        };
    }
    let (mut early, _errors) = start(&[], "before");
    quit(&early);
    quit(&early);
    assert_eq!(early.tell("what is in force?"), "true");
    early.finish();

    let (mut late, mut errors) = start(&[], "later");
    assert_eq!(
        late.tell("install"),
        "true",
        "the default action is what a program sees"
    );
    for count in ["1", "2"] {
        quit(&late);
        // It is delivered when one of its threads runs next.
        until(|| (late.tell("handled") == count).then_some(()));
    }
    assert_eq!(late.tell("put back"), "false");
    quit(&late);
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with(SAYS), "{line}");
    assert_eq!(ended_by(late), Some(SIGQUIT));
}

#[watched]
fn the_child_of_a_fork_takes_the_default_action() {
    if child::is_here() {
        return be_told(|_| {
            // SAFETY: the child only waits.
            let pid = check(unsafe { libc::fork() }).unwrap();
            if pid == 0 {
                crate::common::sys::no_core_file();
                loop {
                    std::thread::park();
                }
            }
            // SAFETY: no pointers.
            check(unsafe { libc::kill(pid, SIGQUIT) }).unwrap();
            format!("{}", libc::WTERMSIG(waitpid(pid).unwrap()))
        });
    }
    let (mut target, _errors) = start(&[], "");
    assert_eq!(target.tell("fork"), SIGQUIT.to_string());
    target.finish();
}

/// Standard error takes nothing that is written: the process goes on all the same.
#[watched]
fn nobody_waits_for_standard_error() {
    if child::is_here() {
        return be_target();
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = command();
    command.stderr(full);
    let mut target = Target::start_by(command);
    quit(&target);
    target.tell("go on");
    target.finish();
}
