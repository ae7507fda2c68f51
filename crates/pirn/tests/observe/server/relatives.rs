//! Children, other programs in the same process, other namespaces.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::target::{
    Target, ask, ask_at, be_target, be_told, connect, role, signal, signal_thread, socket_in,
    socket_of, until, usual_folder,
};
use crate::common::sys::{check, waitpid};
use crate::common::{child, skip, watched};

#[watched]
fn the_child_of_a_fork_is_none_of_it() {
    if child::is_here() {
        return be_told(fork_as_told());
    }
    let mut target = Target::start(&[], "");
    ask(&target, "version");
    let socket = socket_of(target.pid()).unwrap();
    let forked: u32 = target.tell("fork").parse().unwrap();
    // Nothing that the tools use is open there, and asking does no harm.
    let open = fs::read_dir(format!("/proc/{forked}/fd"))
        .unwrap()
        .flatten();
    let links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let sockets = links.filter(|link| link.to_string_lossy().starts_with("socket:"));
    assert_eq!(sockets.count(), 0);
    signal_thread(forked, forked);
    assert_eq!(target.tell("end the fork"), "0");
    assert_eq!(socket_of(forked), None);
    assert!(socket.exists(), "the child has removed its parent's socket");
    assert!(ask(&target, "version").starts_with("ok text\n"));
    target.finish();
    assert!(!socket.exists());
}

/// Forks a child that ends as programs end, when it is told.
fn fork_as_told() -> impl FnMut(&str) -> String {
    let mut forked = None;
    move |what| match what {
        "fork" => {
            let (mut from, to) = io::pipe().unwrap();
            // SAFETY: the child only reads and exits.
            let pid = check(unsafe { libc::fork() }).unwrap();
            if pid == 0 {
                drop(to);
                let _ = io::Read::read(&mut from, &mut [0]);
                // SAFETY: runs what is to be run at exit.
                unsafe { libc::exit(0) };
            }
            forked = Some((pid, to));
            pid.to_string()
        }
        _ => {
            let (pid, to) = forked.take().unwrap();
            drop(to);
            waitpid(pid).unwrap().to_string()
        }
    }
}

#[watched]
fn after_an_exec_the_next_program_answers() {
    if child::is_here() {
        return match role().as_str() {
            "first" => be_told(|_| {
                let mut next = child::command();
                let error = next
                    .env("PIRN_TEST_ROLE", "second")
                    .stdin(Stdio::inherit())
                    .exec();
                panic!("{error}");
            }),
            _ => be_target(),
        };
    }
    let mut target = Target::start(&[], "first");
    ask(&target, "version");
    let socket = socket_of(target.pid()).unwrap();
    target.tell("exec");
    assert!(socket.exists(), "after exec, no code could remove it");
    let answer = ask(&target, "version");
    assert!(
        answer.contains(&format!("pid {}", target.pid())),
        "{answer}"
    );
    assert_eq!(socket_of(target.pid()), Some(socket));
    target.finish();
}

#[watched]
fn a_program_without_virtual_threads_is_not_harmed() {
    let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
    signal_thread(sleep.id(), sleep.id());
    signal_thread(sleep.id(), sleep.id());
    assert!(
        sleep.try_wait().unwrap().is_none(),
        "the signal has ended it"
    );
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

#[watched]
fn a_process_in_a_container_answers_from_outside() {
    if child::is_here() {
        return be_target();
    }
    const NAMESPACES: [&str; 5] = ["--pid", "--mount", "--mount-proc", "--fork", "--kill-child"];
    let possible = Command::new("unshare")
        .args(NAMESPACES)
        .arg("true")
        .output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return skip("this user may not make namespaces");
    }
    let folder = usual_folder();
    let folder = folder.to_str().unwrap();
    let script = "mkdir -p -m 700 $0 && mount -t tmpfs -o mode=700 none $0 && exec \"$@\"";
    let inner = child::command();
    let mut outer = Command::new("unshare");
    outer.args(NAMESPACES).args(["sh", "-c", script, folder]);
    outer.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        outer.env(name, value.unwrap_or_default());
    }
    let target = Target::start_by(outer);
    let children = format!("/proc/{0}/task/{0}/children", target.pid());
    let pid: u32 = until(|| fs::read_to_string(&children).ok()?.trim().parse().ok());
    assert_eq!(socket_of(1), None, "outside there is nothing");
    let folder = format!("/proc/{pid}/root{folder}");
    signal(pid);
    // It is number 1 in there.
    let open = || UnixStream::connect(socket_in(Path::new(&folder), 1)?).ok();
    let answer = ask_at(until(open), "version");
    assert!(answer.contains("\npid 1\n"), "{answer}");
    target.finish();
}

#[watched]
fn several_tools_can_ask_at_the_same_time() {
    if child::is_here() {
        return be_target();
    }
    let target = Target::start(&[], "");
    let (pid, folder) = (target.pid(), usual_folder());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let answer = ask_at(connect(pid, &folder), "version");
                    assert!(answer.starts_with("ok text\n"), "{answer}");
                }
            });
        }
    });
    target.finish();
}
