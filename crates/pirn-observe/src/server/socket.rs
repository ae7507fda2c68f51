//! Where the socket is: in a folder that only its owner may enter.
//!
//! ```text
//! $XDG_RUNTIME_DIR/pirn/PID-START.sock     if that folder belongs to the process's user
//! /tmp/pirn-UID/PID-START.sock             otherwise
//! ```
//!
//! START is the time at which the process began, in the kernel's ticks: it tells the process from
//! an earlier one with the same number. PID and UID are those that the process itself sees: a tool
//! outside of its container looks into `/proc/PID/root`.
//!
//! The folder is opened first, then examined, and then used by its descriptor
//! (`/proc/thread-self/fd/N`), so that no other process can exchange it meanwhile. A symbolic link,
//! or a folder that other users own or may enter, is refused.
//!
//! A process that listens removes the sockets of processes that are gone from the same folder: if
//! there is no such process here, and no socket is bound to the file. Containers that do not see
//! each other's processes may share the folder.

use crate::dump::{own_start, start_time};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use pirn_rt::lock::Lock;
use pirn_rt::sys::call;
use std::ffi::{CString, OsStr};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process;

/// The socket, and where it is.
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    folder: File,
    name: String,
    /// The file's number in the file system.
    inode: u64,
    user: u32,
}

/// The extension of the file of a socket that does not listen yet.
const UNREADY: &str = "new";

/// The path of the socket that the exit of the process removes, and the process that made it.
static AT_EXIT: Lock<Option<(u32, CString)>> = Lock::new(None);

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
/// Why no folder can have it, in words.
pub(super) fn open() -> Result<Option<Socket>, String> {
    let start = own_start().ok_or("the kernel does not say when it began")?;
    let (name, user) = (format!("{}-{start}.sock", process::id()), user());
    let mut reasons = Vec::new();
    for candidate in candidates(user) {
        match open_in(&candidate, &name, user) {
            Ok(socket) => return Ok(socket),
            Err(reason) => reasons.push(format!("{}: {reason}", candidate.path().display())),
        }
    }
    Err(reasons.join("; "))
}

/// Returns the user of the process.
fn user() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() }
}

fn open_in(candidate: &Candidate, name: &str, user: u32) -> Result<Option<Socket>, String> {
    let folder = open_folder(candidate, user)?;
    remove_stale(&folder, name);
    let path = inside(&folder, name);
    if is_bound(&path) {
        return Ok(None);
    }
    let (listener, inode) = listen(&path).map_err(|error| error.to_string())?;
    remove_at_exit(&candidate.path().join(name));
    Ok(Some(Socket {
        listener,
        folder,
        name: name.to_owned(),
        inode,
        user,
    }))
}

/// Makes a socket that listens at this path, and returns the number of its file. The file gets its
/// name last, in the place of the file of the program before an `exec`: a client that finds it is
/// neither refused, as between `bind` and `listen`, nor let in by other permissions.
fn listen(path: &Path) -> io::Result<(UnixListener, u64)> {
    let unready = path.with_extension(UNREADY);
    let _ = fs::remove_file(&unready);
    let listener = UnixListener::bind(&unready)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(&unready, Permissions::from_mode(0o600))?;
    let inode = fs::symlink_metadata(&unready)?.ino();
    fs::rename(&unready, path)?;
    Ok((listener, inode))
}

impl Socket {
    /// Returns whether the file is still there, and the process still belongs to the same user.
    pub(super) fn is_current(&self) -> bool {
        let file = fs::symlink_metadata(inside(&self.folder, &self.name));
        file.is_ok_and(|file| file.ino() == self.inode) && user() == self.user
    }

    /// Removes the file.
    pub(super) fn close(self) {
        if self.is_current() {
            let _ = fs::remove_file(inside(&self.folder, &self.name));
        }
    }
}

/// A folder in which the socket may be.
struct Candidate {
    base: PathBuf,
    name: String,
    /// Whether the base itself must belong to the user.
    private: bool,
}

impl Candidate {
    fn path(&self) -> PathBuf {
        self.base.join(&self.name)
    }
}

/// Returns the folders to try, in this order. `XDG_RUNTIME_DIR` is as the process found it when it
/// began, where tools read it, too.
fn candidates(user: u32) -> Vec<Candidate> {
    let environment = fs::read("/proc/self/environ").unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    let runtime = variables.find_map(|variable| variable.strip_prefix(b"XDG_RUNTIME_DIR="));
    let runtime = runtime.map(|folder| Path::new(OsStr::from_bytes(folder)));
    let runtime = runtime.filter(|folder| folder.is_absolute());
    let candidate = |base: &Path, name, private| Candidate {
        base: base.into(),
        name,
        private,
    };
    let runtime = runtime.map(|base| candidate(base, "pirn".into(), true));
    let temporary = candidate(Path::new("/tmp"), format!("pirn-{user}"), false);
    runtime.into_iter().chain([temporary]).collect()
}

/// Opens the folder, and makes it if it is missing.
///
/// # Errors
/// Why it is refused.
fn open_folder(candidate: &Candidate, user: u32) -> Result<File, String> {
    let said = |error: io::Error| error.to_string();
    let open = |path: &Path, flags| {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECTORY | flags);
        options.open(path)
    };
    let base = open(&candidate.base, 0).map_err(said)?;
    let owner = base.metadata().map_err(said)?.uid();
    if candidate.private && owner != user {
        return Err(format!("the folder around it belongs to user {owner}"));
    }
    let path = inside(&base, &candidate.name);
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(said(error)),
        _ => {}
    }
    let folder = open(&path, libc::O_NOFOLLOW).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) => "not a folder".into(),
        _ => said(error),
    })?;
    let found = folder.metadata().map_err(said)?;
    match found.mode() & 0o777 {
        _ if found.uid() != user => Err(format!("belongs to user {}", found.uid())),
        mode if mode & 0o077 != 0 => Err(format!("others may enter it (mode {mode:o}, not 700)")),
        _ => Ok(folder),
    }
}

/// Returns the path of a name in an open folder, by this thread's table of descriptors. It fits
/// into the address of a socket, which has 108 bytes.
fn inside(folder: &File, name: &str) -> PathBuf {
    format!("/proc/thread-self/fd/{}/{name}", folder.as_raw_fd()).into()
}

/// Returns whether a socket is bound to a file, without connecting to it: the kernel refuses a
/// datagram to a stream socket by another error than to a file that no socket is bound to.
fn is_bound(path: &Path) -> bool {
    let connected = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    !connected.is_err_and(|error| {
        matches!(
            error.raw_os_error(),
            Some(libc::ECONNREFUSED | libc::ENOENT)
        )
    })
}

/// Removes the sockets of processes that are gone. `own` is the name of this process's.
fn remove_stale(folder: &File, own: &str) {
    let is_alive = |(pid, start)| start_time(&format!("/proc/{pid}/stat")) == Some(start);
    for entry in fs::read_dir(inside(folder, ""))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let process = name
            .to_str()
            .filter(|name| *name != own)
            .and_then(process_of);
        if process.is_some_and(|process| !is_alive(process)) && !is_bound(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the process that a socket's name tells of, and when it began.
fn process_of(name: &str) -> Option<(u32, u64)> {
    let (process, extension) = name.split_once('.')?;
    let (pid, start) = process.split_once('-')?;
    if !["sock", UNREADY].contains(&extension) {
        return None;
    }
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Makes the exit of the process remove the socket.
fn remove_at_exit(path: &Path) {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    let path = CString::new(path.to_owned().into_os_string().into_vec());
    let Ok(path) = path else { return };
    let before = AT_EXIT.lock().replace((process::id(), path));
    drop(before); // Not under the lock.
    if !REGISTERED.swap(true, Relaxed) {
        // Relaxed: publishes no other data.
        // SAFETY: the function stays valid. Without memory for it the file stays behind.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Removes the socket, but not a socket of the process that this one was forked from.
extern "C" fn at_exit() {
    let socket = AT_EXIT.lock().take();
    if let Some((maker, path)) = socket
        && maker == process::id()
    {
        // SAFETY: a valid path. Not `std`'s function: the exit may run on a virtual thread.
        let _ = unsafe { call!(libc::SYS_unlinkat, libc::AT_FDCWD, path.as_ptr(), 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_named_after_its_process() {
        assert_eq!(process_of("12-3456.sock"), Some((12, 3456)));
        assert_eq!(process_of("12-3456.new"), Some((12, 3456)));
        for other in ["12.sock", "x-1.sock", "12-3456", "1-2.s", "-1-2.sock", ".."] {
            assert_eq!(process_of(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_socket_that_is_found_listens_and_is_private() {
        let path = std::env::temp_dir().join(format!("pirn-found-{}.sock", process::id()));
        let finished = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let found = scope.spawn(|| {
                // One connection to each: no thread accepts, and a connection beyond those that the
                // kernel keeps for a listener would wait for good.
                let mut last = 0;
                while !finished.load(Relaxed) {
                    if let Ok(file) = fs::metadata(&path)
                        && file.ino() != last
                    {
                        last = file.ino();
                        assert_eq!(file.mode() & 0o777, 0o600);
                        UnixStream::connect(&path).unwrap();
                    }
                }
            });
            // All stay open: a client that has found the file may not have connected yet.
            let all: Vec<_> = (0..500).map(|_| listen(&path).unwrap()).collect();
            finished.store(true, Relaxed);
            found.join().unwrap();
            drop(all);
        });
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_folder_for_others_is_refused() {
        let base = std::env::temp_dir().join(format!("pirn-place-{}", process::id()));
        fs::create_dir_all(&base).unwrap();
        let candidate = |private| Candidate {
            base: base.clone(),
            name: "pirn".into(),
            private,
        };
        let user = user();
        assert!(open_folder(&candidate(true), user).is_ok());
        let folder = base.join("pirn");
        let mode = |mode| fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let refused = |private, user| open_folder(&candidate(private), user).unwrap_err();
        mode(0o777);
        assert_eq!(
            refused(true, user),
            "others may enter it (mode 777, not 700)"
        );
        mode(0o700);
        let outer = format!("the folder around it belongs to user {user}");
        assert_eq!(refused(true, user + 1), outer);
        assert_eq!(refused(false, user + 1), format!("belongs to user {user}"));
        fs::rename(&folder, base.join("other")).unwrap();
        std::os::unix::fs::symlink("other", &folder).unwrap();
        assert_eq!(refused(true, user), "not a folder");
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_file_is_bound_as_long_as_its_socket_is_open() {
        let path = std::env::temp_dir().join(format!("pirn-bound-{}", process::id()));
        assert!(!is_bound(&path), "there is no file");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(is_bound(&path));
        listener.set_nonblocking(true).unwrap();
        let none = listener.accept().unwrap_err();
        assert_eq!(none.kind(), ErrorKind::WouldBlock, "the listener noticed");
        drop(listener);
        assert!(!is_bound(&path), "the file is left, its socket is closed");
        fs::remove_file(path).unwrap();
    }
}
