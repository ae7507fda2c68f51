//! Folders and files that are not as they should be.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::target::{Target, ask_at, be_target, connect, socket_in, until, usual_folder};
use crate::common::{TempDir, child, watched};

/// Starts a child whose `XDG_RUNTIME_DIR` is this folder.
fn start_in(folder: &Path) -> Target {
    Target::start(&[("XDG_RUNTIME_DIR", folder.to_str().unwrap())], "")
}

fn answers_in(target: &Target, folder: &Path) {
    let answer = ask_at(connect(target.pid(), folder), "version");
    assert!(answer.starts_with("ok text\n"), "{answer}");
}

#[watched]
fn the_runtime_folder_is_preferred() {
    if child::is_here() {
        return be_target();
    }
    // Longer than the address of a socket may be.
    let base = TempDir::new(&"long".repeat(40));
    let target = start_in(&base.join(""));
    answers_in(&target, &base.join("pirn"));
    let mode = fs::metadata(base.join("pirn"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    target.finish();
    assert_eq!(fs::read_dir(base.join("pirn")).unwrap().count(), 0);
}

#[watched]
fn folders_that_others_can_use_are_not_used() {
    if child::is_here() {
        return be_target();
    }
    let open = TempDir::new("open");
    fs::create_dir(open.join("pirn")).unwrap();
    fs::set_permissions(open.join("pirn"), fs::Permissions::from_mode(0o777)).unwrap();
    let linked = TempDir::new("linked");
    fs::create_dir(linked.join("elsewhere")).unwrap();
    fs::set_permissions(linked.join("elsewhere"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("elsewhere", linked.join("pirn")).unwrap();
    let file = TempDir::new("file");
    fs::write(file.join("pirn"), "").unwrap();
    for folder in [&open, &linked, &file] {
        let target = start_in(&folder.join(""));
        answers_in(&target, &usual_folder());
        assert_eq!(socket_in(&folder.join("pirn"), target.pid()), None);
        target.finish();
    }
}

#[watched]
fn the_sockets_of_dead_processes_are_removed() {
    if child::is_here() {
        return be_target();
    }
    let base = TempDir::new("stale");
    let mut first = start_in(&base.join(""));
    let folder = base.join("pirn");
    answers_in(&first, &folder);
    let left = socket_in(&folder, first.pid()).unwrap();
    first.child().kill().unwrap();
    first.child().wait().unwrap();
    assert!(left.exists(), "a killed process cannot clean up");
    // No process here is number 1 and began at 1, but one answers: in another container, say.
    let answered = folder.join("1-1.sock");
    let _listener = UnixListener::bind(&answered).unwrap();
    // Not a socket of ours.
    fs::write(folder.join("notes"), "").unwrap();

    let second = start_in(&base.join(""));
    answers_in(&second, &folder);
    assert!(!left.exists());
    assert!(answered.exists() && folder.join("notes").exists());
    second.finish();
}

#[watched]
fn a_socket_that_was_removed_comes_back() {
    if child::is_here() {
        return be_target();
    }
    let base = TempDir::new("removed");
    let target = start_in(&base.join(""));
    let folder = base.join("pirn");
    answers_in(&target, &folder);
    fs::remove_file(socket_in(&folder, target.pid()).unwrap()).unwrap();
    answers_in(&target, &folder);
    fs::remove_dir_all(&folder).unwrap();
    answers_in(&target, &folder);
    // What is there now is another file, of which the process knows nothing.
    let socket = socket_in(&folder, target.pid()).unwrap();
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "").unwrap();
    answers_in(&target, &folder);
    target.finish();
    until(|| (!socket.exists()).then_some(()));
}
