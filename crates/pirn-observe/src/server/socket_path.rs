//! Where the socket is: in a folder that only its owner may enter.
//!
//! ```text
//! $XDG_RUNTIME_DIR/pirn/PID-START.sock     if that folder belongs to the process's user
//! /tmp/pirn-UID/PID-START.sock             otherwise
//! ```
//!
//! START is the time at which the process began, in the kernel's ticks, so that a number that is
//! used again is told from its predecessor. PID and UID are those that the process itself sees: a
//! tool outside of its container looks into `/proc/PID/root`.
//!
//! The folder is opened first, then examined, and then used by its descriptor, so that nobody can
//! put another in its place meanwhile. A symbolic link, or a folder that others own or may enter,
//! is refused.
//!
//! Sockets of processes that are gone are removed by the next one that listens in the same folder:
//! if there is no such process, and if nobody answers. The folder may be shared by containers that
//! do not see each other's processes.

use super::files::{self, Fd, HERE};
use super::sockets;
use crate::dump::process::{own_start, start_time};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use pirn_rt::lock::Lock;
use pirn_rt::sys::Errno;
use std::ffi::CString;

/// A folder as [`open_folder`] opens it.
const FOLDER: c_int = libc::O_RDONLY | libc::O_DIRECTORY;

/// The socket, and where it is.
pub(super) struct SocketFile {
    pub(super) socket: Fd,
    folder: Fd,
    name: CString,
    /// The file's number in the file system.
    inode: u64,
    user: libc::uid_t,
}

/// The path of the socket, and the process whose it is, for its end.
static AT_EXIT: Lock<Option<(libc::pid_t, CString)>> = Lock::new(None);

/// Forgets the socket, which is the parent's.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub(super) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe { AT_EXIT.renew(None) };
}

/// Makes the socket. Returns `None` if this process listens already.
///
/// # Errors
/// Why there is no place for it, in words.
pub(super) fn take() -> Result<Option<SocketFile>, String> {
    let (pid, user) = identity();
    let start = own_start().ok_or("the kernel does not say when it began")?;
    let name = CString::new(format!("{pid}-{start}.sock")).unwrap_or_default();
    let mut reasons = Vec::new();
    for candidate in candidates(user) {
        match take_in(&candidate, &name, user) {
            Ok(place) => return Ok(place),
            Err(reason) => reasons.push(format!("{}: {reason}", candidate.shown())),
        }
    }
    Err(reasons.join("; "))
}

/// Returns the process's number and its user.
fn identity() -> (libc::pid_t, libc::uid_t) {
    // SAFETY: no arguments.
    unsafe { (libc::getpid(), libc::geteuid()) }
}

fn take_in(
    candidate: &Candidate,
    name: &CStr,
    user: libc::uid_t,
) -> Result<Option<SocketFile>, String> {
    let folder = open_folder(candidate, user)?;
    remove_stale(&folder, name);
    let said = |e: Errno| e.to_string();
    for _ in 0..3 {
        match sockets::listen(&folder, name) {
            Ok(socket) => {
                let inode = files::attributes_of(&folder, name).map_err(said)?.st_ino;
                remove_at_exit(candidate, name);
                return Ok(Some(SocketFile {
                    socket,
                    folder,
                    name: name.to_owned(),
                    inode,
                    user,
                }));
            }
            Err(Errno(libc::EEXIST)) => {
                if sockets::is_served(&folder, name).map_err(said)? {
                    return Ok(None);
                }
                files::remove(folder.0, name); // Of the program before an `exec`.
            }
            Err(error) => return Err(said(error)),
        }
    }
    Err("somebody takes the name again and again".into())
}

impl SocketFile {
    /// Returns whether the file is still there, and the process still belongs to the same user.
    pub(super) fn is_current(&self) -> bool {
        let there = files::attributes_of(&self.folder, &self.name);
        there.is_ok_and(|file| file.st_ino == self.inode) && identity().1 == self.user
    }

    /// Removes the file.
    pub(super) fn leave(self) {
        if self.is_current() {
            files::remove(self.folder.0, &self.name);
        }
    }
}

/// A folder in which the socket may be.
struct Candidate {
    base: CString,
    name: CString,
    /// Whether the base itself must belong to the user.
    private: bool,
}

impl Candidate {
    fn shown(&self) -> String {
        let (base, name) = (self.base.to_string_lossy(), self.name.to_string_lossy());
        format!("{base}/{name}")
    }
}

/// Returns the folders to try, in this order.
fn candidates(user: libc::uid_t) -> Vec<Candidate> {
    let candidate = |base: CString, name: &str, private| Candidate {
        base,
        name: CString::new(name).unwrap_or_default(),
        private,
    };
    let runtime = runtime_folder().map(|base| candidate(base, "pirn", true));
    let temporary = candidate(c"/tmp".to_owned(), &format!("pirn-{user}"), false);
    runtime.into_iter().chain([temporary]).collect()
}

/// Returns `XDG_RUNTIME_DIR` as the process found it when it began: as tools read it, too.
fn runtime_folder() -> Option<CString> {
    const MOST: usize = 4 << 20;
    let environment = files::read_all(c"/proc/self/environ", MOST).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let folder = variables.find_map(|variable| variable.strip_prefix(b"XDG_RUNTIME_DIR="))?;
    let absolute = folder.starts_with(b"/").then(|| folder.to_vec())?;
    CString::new(absolute).ok()
}

/// Opens the folder, which is made if there is none.
///
/// # Errors
/// Why it is refused.
fn open_folder(candidate: &Candidate, user: libc::uid_t) -> Result<Fd, String> {
    let said = |e: Errno| e.to_string();
    let base = files::open(HERE, &candidate.base, FOLDER).map_err(said)?;
    let owner = files::attributes(&base).map_err(said)?.st_uid;
    if candidate.private && owner != user {
        return Err(format!("the folder around it belongs to user {owner}"));
    }
    match files::make_folder(base.0, &candidate.name) {
        Ok(_) | Err(Errno(libc::EEXIST)) => {}
        Err(error) => return Err(said(error)),
    }
    let folder = match files::open(base.0, &candidate.name, FOLDER | libc::O_NOFOLLOW) {
        Err(Errno(libc::ELOOP | libc::ENOTDIR)) => return Err("not a folder".into()),
        opened => opened.map_err(said)?,
    };
    let found = files::attributes(&folder).map_err(said)?;
    if found.st_uid != user {
        return Err(format!("belongs to user {}", found.st_uid));
    }
    if found.st_mode & 0o077 != 0 {
        let mode = found.st_mode & 0o777;
        return Err(format!("others may enter it (mode {mode:o}, not 700)"));
    }
    Ok(folder)
}

/// Removes the sockets of processes that are gone. `own` is the name of this process's.
fn remove_stale(folder: &Fd, own: &CStr) {
    files::for_each_name(folder, |name| {
        if name != own
            && process_of(name).is_some_and(|(pid, start)| !is_alive(pid, start))
            && sockets::is_served(folder, name) == Ok(false)
        {
            files::remove(folder.0, name);
        }
    });
}

/// Returns the process that a socket's name tells of, also that of one that does not listen yet,
/// and when it began.
fn process_of(name: &CStr) -> Option<(u32, u64)> {
    let (process, thread) = name.to_str().ok()?.split_once(".sock")?;
    let is_thread = |text: &str| text.parse::<u32>().is_ok();
    let (pid, start) = process.split_once('-')?;
    let whole = thread.is_empty() || thread.strip_prefix('.').is_some_and(is_thread);
    whole.then_some(())?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Returns whether a process that began then is there.
fn is_alive(pid: u32, start: u64) -> bool {
    start_time(&format!("/proc/{pid}/stat")) == Some(start)
}

/// Has the socket removed when the process exits.
fn remove_at_exit(candidate: &Candidate, name: &CStr) {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    let path = format!("{}/{}", candidate.shown(), name.to_string_lossy());
    let Ok(path) = CString::new(path) else {
        return;
    };
    let before = AT_EXIT.lock().replace((identity().0, path));
    drop(before); // Not under the lock.
    if !REGISTERED.swap(true, Relaxed) {
        // Relaxed: complete in itself.
        // SAFETY: the function stays valid for ever. Without memory for it the file stays behind.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Removes the socket, but not that of the process that this one was forked from.
extern "C" fn at_exit() {
    let socket = AT_EXIT.lock().take();
    if let Some((process, path)) = socket
        && process == identity().0
    {
        files::remove(HERE, &path);
    }
}

#[cfg(test)]
mod tests;
