//! Disks: each node has a folder of real files, of which a crash loses what was not synced.
//!
//! ```text
//!   program   write, rename, ...      fsync               crash
//!   kernel    the real file           (not called)
//!   journal   what the disk has  -->  forgotten      -->  undoes some, by the seed
//! ```
//!
//! The journal has two parts: `contents` of files, and `names` in folders. A program gets its
//! folder from [`folder`], and reaches it by any path. Paths are not mapped: a program that is
//! tested has its folder from its configuration, and a map would have to cover each call that takes
//! a path or gives one back, in libc as well.

mod calls;
mod contents;
mod names;

use crate::random::{self, Purpose};
use crate::world;
use contents::Dirty;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use names::Names;
use pirn_rt::blocking::fds;
use pirn_rt::lock::Lock;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(crate) use calls::{call, opened, refuses_to_map};

/// Returns the folder of the calling thread's node: empty at the beginning of the run, there after
/// a crash, and removed at the end of the run. It is a file system of its own: `rename` and `link`
/// fail with `EXDEV` across its edge.
///
/// # Panics
/// Outside of a simulation, and if there can be no folder.
pub fn folder() -> PathBuf {
    let node = own_node();
    let made = with(|disks| disks.folder_of(node));
    made.unwrap_or_else(|error| panic!("pirn: no folder for a disk: {error}"))
}

/// Sets the share of calls that fail: what writes, grows or makes files with `ENOSPC` or `EIO`, and
/// `fsync` with `EIO`. As on Linux, what `fsync` has failed to write can be read, is not written by
/// the next `fsync`, which succeeds, and is lost in a crash. Otherwise 0.
///
/// # Panics
/// Outside of a simulation.
pub fn errors(share: f64) {
    own_node();
    with(|disks| disks.errors = share);
}

fn own_node() -> u32 {
    assert!(
        world::is_inside_run(),
        "pirn: a disk of a simulation is used where there is none"
    );
    world::own_node()
}

/// The disks of all nodes.
#[derive(Default)]
struct Disks {
    /// The folder of this process's disks, and the lock that says so.
    root: Option<(PathBuf, File)>,
    nodes: BTreeMap<u32, Disk>,
    errors: f64,
    /// How many numbers have been drawn.
    drawn: u64,
    /// How many removed files have been kept.
    kept: u64,
}

/// The changes that are not on a disk yet.
#[derive(Default)]
struct Disk {
    files: BTreeMap<u64, Dirty>,
    names: Names,
}

static DISKS: Lock<Option<Disks>> = Lock::new(None);
/// Whether there is a folder.
static USED: AtomicBool = AtomicBool::new(false);

fn with<R>(f: impl FnOnce(&mut Disks) -> R) -> R {
    f(DISKS.lock().get_or_insert_default())
}

/// Ends a run: closes what is open on its disks, and removes them.
pub(crate) fn end() {
    USED.store(false, Relaxed); // Relaxed, here and below: the threads of a run are on one carrier.
    let Some(disks) = DISKS.lock().take() else {
        return;
    };
    if let Some((root, _lock)) = disks.root {
        let _ = fs::remove_dir_all(&root);
        close_all(&root); // Not the lock: its folder has no name any more.
    }
}

/// Loses what is not on the disk of a node, whose process has ended.
pub(crate) fn crash(node: u32) {
    if !USED.load(Relaxed) {
        return;
    }
    let lost = with(|disks| {
        let path = disks.path_of(node);
        close_all(&path);
        let mut disk = disks.nodes.remove(&node).unwrap_or_default();
        let (names, files) = (disk.names.count(), disk.files.len());
        world::note_fault(|| format!("{names} names and {files} files on its disk are not synced"));
        let mut below = |bound| disks.below(bound);
        disk.names.crash(&path, &mut below)?;
        lose_contents(&path, &mut disk.files, &mut below)
    });
    if let Err(error) = lost {
        panic!(
            "pirn: the disk of node {node} cannot crash: {error}. Has it been changed by system \
             calls that are not seen (by inline assembly, as rustix makes them)?"
        );
    }
}

/// Loses contents of the files in a folder and below.
fn lose_contents(
    folder: &Path,
    files: &mut BTreeMap<u64, Dirty>,
    below: &mut dyn FnMut(u64) -> u64,
) -> io::Result<()> {
    let entries: io::Result<Vec<_>> = fs::read_dir(folder)?.map(|it| Ok(it?.path())).collect();
    let mut entries = entries?;
    entries.sort(); // What is drawn must not depend on the file system.
    for path in entries {
        let found = fs::symlink_metadata(&path)?;
        if found.is_dir() {
            lose_contents(&path, files, below)?;
        } else if let Some(dirty) = files.remove(&found.ino()) {
            dirty.crash(&File::options().write(true).open(path)?, below)?;
        }
    }
    Ok(())
}

/// Closes the descriptors of the files below a folder: the locks that a process had are gone with
/// it.
fn close_all(folder: &Path) {
    let links = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let is_there =
        |link: &fs::DirEntry| fs::read_link(link.path()).is_ok_and(|it| it.starts_with(folder));
    let there = links
        .filter(is_there)
        .filter_map(|it| it.file_name().to_str()?.parse().ok());
    for fd in there.collect::<Vec<_>>() {
        let _ = fds::close(fd);
    }
}

impl Disks {
    fn path_of(&self, node: u32) -> PathBuf {
        let root = self.root.as_ref().map(|it| it.0.as_path());
        root.unwrap_or(Path::new("")).join(node.to_string())
    }

    /// Returns the folder of a node, which exists.
    fn folder_of(&mut self, node: u32) -> io::Result<PathBuf> {
        if self.root.is_none() {
            let root = make_root()?;
            fs::create_dir(root.0.join("removed"))?;
            self.root = Some(root);
            USED.store(true, Relaxed);
        }
        let path = self.path_of(node);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(path),
        }
    }

    /// Returns the node on whose disk this path is, as the kernel has it.
    fn node_of(&self, path: &Path) -> Option<u32> {
        let below = path.strip_prefix(&self.root.as_ref()?.0).ok()?;
        below.iter().next()?.to_str()?.parse().ok()
    }

    fn disk(&mut self, node: u32) -> &mut Disk {
        self.nodes.entry(node).or_default()
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        random::at(world::seed(), Purpose::Disk, 0, self.drawn)
    }

    fn below(&mut self, bound: u64) -> u64 {
        random::scaled(self.draw(), bound)
    }

    /// Returns whether the next call fails.
    fn fails(&mut self) -> bool {
        self.errors > 0.0 && random::share(self.draw()) < self.errors
    }
}

/// Makes an empty folder for the disks of this process. It has the first name that no other process
/// has locked: so a run has the same paths in each process, and what a process has left that was
/// killed is removed by the next.
fn make_root() -> io::Result<(PathBuf, File)> {
    // SAFETY: no arguments.
    let user = unsafe { libc::getuid() };
    // In memory, if nothing else is said: runs make and remove many files.
    let memory = Path::new("/dev/shm");
    let place = match std::env::var_os("TMPDIR").is_none() && memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    };
    for number in 0.. {
        let path = place.join(format!("pirn-sim-{user}-{number}"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // It may be removed, or another user's.
        let Ok(folder) = File::open(&path) else {
            continue;
        };
        // SAFETY: no pointers.
        let locked = unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
        let is_same = |it: fs::Metadata| folder.metadata().is_ok_and(|own| own.ino() == it.ino());
        if locked && fs::symlink_metadata(&path).is_ok_and(is_same) {
            for entry in fs::read_dir(&path)? {
                let path = entry?.path();
                fs::remove_dir_all(&path).or_else(|_| fs::remove_file(path))?;
            }
            return Ok((fs::canonicalize(path)?, folder));
        }
    }
    unreachable!("there are more numbers than processes")
}
