//! Other users.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use super::target::{
    Target, ask, ask_at, be_target, be_told, connect, signal, socket_in, socket_of, until,
    usual_folder,
};
use crate::common::sys::check;
use crate::common::{TempDir, child, skip, watched};

/// A user that owns nothing.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        skip("only root can be another user");
    }
    root
}

/// Becomes the user that owns nothing, in this thread only.
fn become_nobody() {
    for call in [libc::SYS_setresgid, libc::SYS_setresuid] {
        // SAFETY: no pointers.
        check(unsafe { libc::syscall(call, NOBODY, NOBODY, NOBODY) }).unwrap();
    }
}

/// Returns what a user that owns nothing is answered at this socket.
fn nobody_asks(socket: &Path) -> std::io::Result<String> {
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            become_nobody();
            let mut stream = UnixStream::connect(socket)?;
            let _ = stream.write_all(b"pirn 1 version\n");
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            Ok(answer)
        });
        asking.join().unwrap()
    })
}

#[watched]
fn other_users_do_not_get_in() {
    if child::is_here() {
        return be_target();
    }
    if !is_root() {
        return;
    }
    let base = TempDir::new("strangers");
    let variable = base.join("");
    let target = Target::start(&[("XDG_RUNTIME_DIR", variable.to_str().unwrap())], "");
    let folder = base.join("pirn");
    signal(target.pid());
    let socket = until(|| socket_in(&folder, target.pid()));
    // In a folder that anybody can reach; the temporary one may not be that.
    let reachable = Path::new("/tmp").join(format!("pirn-test-{}", target.pid()));
    fs::create_dir(&reachable).unwrap();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&reachable, 0o755);
    let moved = reachable.join("socket");
    fs::hard_link(&socket, &moved).unwrap_or_else(|_| {
        fs::rename(&socket, &moved).unwrap(); // Another file system has to do.
    });
    let refused = nobody_asks(&moved).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    open(&moved, 0o777);
    let answer = nobody_asks(&moved).unwrap();
    let expected =
        "error this process answers its own user (0) and root only, and you are user 65534\n";
    assert_eq!(answer, expected);
    fs::remove_dir_all(&reachable).unwrap();
    target.finish();
}

#[watched]
fn a_process_that_has_changed_its_user_answers_root() {
    if child::is_here() {
        return be_told(|_| {
            // SAFETY: no pointers.
            check(unsafe { libc::setuid(NOBODY) }).unwrap();
            String::new()
        });
    }
    if !is_root() {
        return;
    }
    let mut target = Target::start(&[], "");
    assert!(ask(&target, "version").starts_with("ok text\n"));
    let earlier = socket_of(target.pid()).unwrap();
    target.tell("setuid");
    // Where its user's sockets are: it could no longer remove the earlier one.
    fs::remove_file(earlier).unwrap();
    let folder = Path::new("/tmp").join(format!("pirn-{NOBODY}"));
    let stream = connect(target.pid(), &folder);
    let answer = ask_at(stream, "version");
    assert!(answer.starts_with("ok text\n"), "{answer}");
    let socket = socket_in(&folder, target.pid()).unwrap();
    let refused = nobody_asks(&socket).unwrap();
    assert!(refused.contains("it answers root only"), "{refused}");
    target.finish();
}

#[watched]
fn a_setuid_program_does_not_listen() {
    if child::is_here() {
        return be_target();
    }
    if !is_root() {
        return;
    }
    // A copy of this program that runs as its owner, whichever user starts it.
    let copy = Path::new("/tmp").join(format!("pirn-test-setuid-{}", std::process::id()));
    // By another process: a child that this one forks meanwhile would hold the file open for
    // writing, and it could not be run.
    let own = std::env::current_exe().unwrap();
    let copied = Command::new("cp").arg(own).arg(&copy).status().unwrap();
    assert!(copied.success());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    let own = child::command();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy);
    command.args(own.get_args()).env("PIRN_OBSERVE", "1");
    for (name, value) in own.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let possible = Command::new("setpriv")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !possible.is_ok_and(|status| status.success()) {
        fs::remove_file(copy).unwrap();
        return skip("there is no `setpriv`");
    }
    let target = Target::start_by(command);
    let pid = target.pid();
    fs::remove_file(copy).unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let users = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap();
    assert!(
        users.starts_with("Uid:\t65534\t0\t"),
        "{users}: mounted nosuid?"
    );
    target.ask_in_vain();
    for folder in [usual_folder(), Path::new("/tmp").join("pirn-65534")] {
        assert_eq!(socket_in(&folder, pid), None);
    }
    target.finish();
}
