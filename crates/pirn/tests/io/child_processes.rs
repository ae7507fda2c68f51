//! Child processes through `std::process`. (`fork` without `exec` is in `c/fork.rs`.)

use std::cell::Cell;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use crate::common::kernel::{has_vfork, shows_calls};
use crate::common::{
    block_then, carriers, child, most_carriers, on_virtual, pattern, skip, sys, watched,
};
use pirn::thread;

/// The number of children that run at once.
const CHILDREN: usize = 40;

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command
}

/// Returns a child that lives until its standard input ends.
fn cat() -> Child {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Returns children, more than there can be carriers, that live until their inputs end.
fn cats() -> (Vec<Child>, Vec<Option<ChildStdin>>) {
    let mut children: Vec<_> = (0..4 * most_carriers()).map(|_| cat()).collect();
    let inputs = children.iter_mut().map(|child| child.stdin.take());
    let inputs = inputs.collect();
    (children, inputs)
}

#[watched]
fn output_collects_both_streams() {
    thread::scope(|scope| {
        for i in 0..CHILDREN {
            scope.spawn(move || {
                let script = format!("echo out {i}; echo err {i} >&2; exit {i}");
                let output = shell(&script).output().unwrap();
                assert_eq!(output.stdout, format!("out {i}\n").as_bytes());
                assert_eq!(output.stderr, format!("err {i}\n").as_bytes());
                assert_eq!(output.status.code(), Some(i as i32));
            });
        }
    });
}

#[watched]
fn output_drains_large_streams() {
    on_virtual(|| {
        let script = "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2";
        let output = shell(script).output().unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (1_000_000, 1_000_000)
        );
    });
}

#[watched]
fn waiting_for_children_leaves_the_carriers_free() {
    let (children, inputs) = cats();
    let children: Vec<_> = children.into_iter().map(Mutex::new).collect();
    block_then(
        children.len(),
        |i| assert!(children[i].lock().unwrap().wait().unwrap().success()),
        || drop(inputs),
    );
}

#[watched]
fn waitpid_parks() {
    let (children, inputs) = cats();
    block_then(
        children.len(),
        |i| assert_eq!(sys::waitpid(children[i].id() as i32).unwrap(), 0),
        || drop(inputs),
    );
}

#[watched]
fn waitpid_for_any_child_parks() {
    // In a process of its own: it would take other tests' children.
    child::isolated(&[], || {
        let (children, inputs) = cats();
        block_then(
            children.len(),
            |_| assert_eq!(sys::waitpid(-1).unwrap(), 0),
            || drop(inputs),
        );
        let error = on_virtual(|| sys::waitpid(-1).unwrap_err());
        assert_eq!(error.raw_os_error(), Some(libc::ECHILD));
    });
}

#[watched]
fn try_wait_sees_the_end() {
    on_virtual(|| {
        let mut child = cat();
        assert!(child.try_wait().unwrap().is_none());
        drop(child.stdin.take());
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            thread::sleep(Duration::from_millis(1));
        };
        assert!(status.success());
        // Once reaped, the status is remembered.
        assert_eq!(child.wait().unwrap(), status);
    });
}

#[watched]
fn piped_streams_carry_large_data() {
    let data = pattern(4 << 20);
    thread::scope(|scope| {
        for _ in 0..2 * carriers() {
            scope.spawn(|| {
                let mut child = cat();
                let mut stdin = child.stdin.take().unwrap();
                let mut stdout = child.stdout.take().unwrap();
                thread::scope(|scope| {
                    let data = &data;
                    scope.spawn(move || stdin.write_all(data).unwrap());
                    let mut received = Vec::new();
                    stdout.read_to_end(&mut received).unwrap();
                    assert!(&received == data, "damaged");
                });
                assert!(child.wait().unwrap().success());
            });
        }
    });
}

#[watched]
fn a_killed_child_says_so() {
    on_virtual(|| {
        let mut child = cat();
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    });
}

#[watched]
fn a_missing_program_is_an_error() {
    if !has_vfork() {
        return;
    }
    on_virtual(|| {
        let error = Command::new("/nowhere/at/all").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[watched]
fn environment_and_folder_reach_the_child() {
    on_virtual(|| {
        let mut command = shell("echo $WEFT; pwd");
        let output = command.env("WEFT", "7").current_dir("/").output().unwrap();
        assert_eq!(output.stdout, b"7\n/\n");
    });
}

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

#[watched]
fn pre_exec_runs_in_the_child() {
    thread::scope(|scope| {
        for i in 0..CHILDREN {
            scope.spawn(move || {
                NUMBER.set(i);
                let mut command = shell("exit 0");
                // SAFETY: the closure allocates nothing and takes no lock.
                unsafe {
                    command.pre_exec(move || {
                        // The forked thread's own thread-locals.
                        if NUMBER.get() != i {
                            return Err(io::Error::from_raw_os_error(libc::EDOM));
                        }
                        sys::check(libc::setsid()).map(drop)
                    });
                }
                assert!(command.status().unwrap().success());
                assert_eq!(NUMBER.get(), i);
            });
        }
    });
}

#[watched]
fn an_error_in_pre_exec_comes_back() {
    on_virtual(|| {
        let mut command = shell("exit 0");
        // SAFETY: the closure allocates nothing and takes no lock.
        unsafe { command.pre_exec(|| Err(io::Error::from_raw_os_error(libc::EDOM))) };
        let error = command.spawn().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EDOM));
    });
}

/// Returns whether an OS thread of this process waits for the children that it has started itself.
fn a_starter_waits() -> bool {
    let call = format!("{} ", libc::SYS_waitid);
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("syscall"));
    tasks
        .flatten()
        .any(|task| of(task).is_ok_and(|it| it.starts_with(&call)))
}

/// For the kernel, the OS thread that has started a child is its parent. The pool's OS threads end
/// when they have had nothing to do for ten seconds.
#[watched(alone)]
fn a_child_outlives_the_idle_pool() {
    if Command::new("setpriv").arg("--version").output().is_err() {
        return skip("there is no `setpriv`");
    }
    if !shows_calls() {
        return;
    }
    let mut sleeper = on_virtual(|| {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "sleep", "1000"]);
        command.spawn().unwrap()
    });
    while !a_starter_waits() {
        assert!(
            sleeper.try_wait().unwrap().is_none(),
            "its parent has ended"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(sleeper.try_wait().unwrap().is_none());
    sleeper.kill().unwrap();
    assert_eq!(sleeper.wait().unwrap().signal(), Some(libc::SIGKILL));
    while a_starter_waits() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[watched]
fn children_of_both_kinds_of_thread() {
    let run = || assert!(shell("sleep 0.01").status().unwrap().success());
    std::thread::scope(|platform| {
        for _ in 0..crate::common::PLATFORM {
            platform.spawn(run);
        }
        thread::scope(|scope| {
            for _ in 0..CHILDREN {
                scope.spawn(run);
            }
        });
    });
}
