//! Finding the socket of a process, and making sure that it is the process's own.
//!
//! Folders are looked at as the process sees them, through `/proc/PID/root`, so it may be in a
//! container. The kernel says which process listens (`SO_PEERCRED`): a name proves nothing.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::failure::Failure;
use super::process::Process;

/// Connects to the process, if it listens.
pub fn connect(process: &Process) -> Result<Option<UnixStream>, Failure> {
    for folder in folders(process) {
        // Folders that this user may not look into are other users': they are passed over.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !is_of(process, entry.file_name().as_bytes()) {
                continue;
            }
            match connect_to(&entry.path()) {
                Ok(stream) if listener(&stream) == Some(process.pid) => return Ok(Some(stream)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(Failure::forbidden(process));
                }
                _ => {} // Another process's, or a leftover that no process listens at.
            }
        }
    }
    Ok(None)
}

/// Returns whether a socket of this name may be the process's.
fn is_of(process: &Process, name: &[u8]) -> bool {
    name.strip_prefix(format!("{}-", process.inner).as_bytes())
        .is_some_and(|rest| rest.ends_with(b".sock"))
}

/// Returns the folders in which the socket may be.
fn folders(process: &Process) -> Vec<PathBuf> {
    let variables = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    let runtime = variables
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"XDG_RUNTIME_DIR="))
        .map(|folder| Path::new(std::ffi::OsStr::from_bytes(folder)).join("pirn"));
    let runtime = runtime.map(|folder| process.path(&folder));
    // The user's number within the container may be another one than here.
    let temporary = process.path(Path::new("/tmp"));
    let temporary = fs::read_dir(temporary).into_iter().flatten().flatten();
    let temporary = temporary
        .filter(|entry| entry.file_name().as_bytes().starts_with(b"pirn-"))
        .map(|entry| entry.path());
    runtime.into_iter().chain(temporary).collect()
}

/// Connects to a socket by its file, whose path may be longer than an address.
fn connect_to(path: &Path) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    UnixStream::connect(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Returns the number of the process that listens, as seen here.
fn listener(stream: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}
