//! The system calls that change files, as far as they are on a simulated disk.
//!
//! Each is the kernel's, with a look before and after: at what the disk has of the part that is
//! about to change, and at what has changed. All of it is done under the lock of the disks, where
//! the functions of `std::fs` act as on a platform thread.

use super::contents::{Change, Dirty, read_at};
use super::names::{Deed, Name, Old};
use super::{DISKS, Disks, USED};
use crate::kernel::buffers;
use crate::world;
use core::ffi::{CStr, c_char, c_int, c_long};
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use libc::off_t;
use pirn_rt::arch;
use pirn_rt::sys::{self, Errno, SysResult, call};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A call that no disk is concerned with.
const KERNELS: Option<SysResult> = None;

/// Makes a system call on a file of a disk. `None`: it is not on one, or the call changes nothing.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn call(number: c_long, args: [usize; 6]) -> Option<SysResult> {
    if !USED.load(Relaxed) {
        return KERNELS;
    }
    let mut disks = DISKS.lock();
    let disks = disks.as_mut()?;
    // SAFETY: the caller's contract.
    unsafe {
        match number {
            libc::SYS_openat => disks.open(args),
            libc::SYS_fsync | libc::SYS_fdatasync => disks.sync_file(args[0] as c_int),
            libc::SYS_sync | libc::SYS_syncfs => disks.sync_all(args[0] as c_int, number),
            libc::SYS_truncate => disks.truncate(args),
            libc::SYS_mkdirat | libc::SYS_mknodat | libc::SYS_symlinkat | libc::SYS_linkat => {
                disks.make(number, args)
            }
            libc::SYS_unlinkat => disks.remove(args),
            libc::SYS_renameat | libc::SYS_renameat2 => disks.rename(number, args),
            _ => {
                // SAFETY: the caller's contract.
                let extent = extent(number, args)?;
                disks.change(&extent, || raw(number, args))
            }
        }
    }
}

/// Notes a file that libc has made by itself.
pub(crate) fn opened(fd: c_int, by_stdio: bool) {
    if !USED.load(Relaxed) {
        return;
    }
    let mut disks = DISKS.lock();
    let Some(disks) = disks.as_mut() else { return };
    let Some(opened) = disks.opened(fd) else {
        return;
    };
    let writes = sys::status_flags(fd).is_ok_and(|it| it & libc::O_ACCMODE != libc::O_RDONLY);
    if by_stdio && writes {
        world::refused(
            "fopen for writing on a disk in a simulation: what stdio writes is not seen, so a \
             crash does not lose it; use open and write",
        );
    } else if !by_stdio {
        disks.made(&opened);
    }
}

/// Returns whether a mapping would write to a file of a disk unseen.
pub(crate) fn refuses_to_map(fd: c_int, protection: c_int, flags: c_int) -> bool {
    let shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
    if fd < 0 || !shared || protection & libc::PROT_WRITE == 0 || !USED.load(Relaxed) {
        return false;
    }
    let refused = DISKS
        .lock()
        .as_ref()
        .is_some_and(|it| it.opened(fd).is_some());
    if refused {
        world::refused(
            "mmap with MAP_SHARED and PROT_WRITE of a file of a disk in a simulation: what it \
             writes is not seen; use pwrite",
        );
    }
    refused
}

/// Makes the kernel's call.
///
/// # Safety
/// As for the system call.
unsafe fn raw(number: c_long, args: [usize; 6]) -> SysResult {
    // SAFETY: the caller's contract.
    sys::check(unsafe { arch::syscall(number, args) })
}

/// What a call may change.
struct Extent {
    fd: c_int,
    /// `None`: at the descriptor's position.
    at: Option<u64>,
    length: u64,
    kind: Kind,
    /// Whether the change is on the disk when the call returns.
    synced: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    /// The size becomes the beginning of the extent.
    Resize,
    /// Space is allocated.
    Grow,
    /// The extent is zeroed.
    Zero,
    /// All from the beginning of the extent on is moved.
    Shift,
}

/// Returns what a call may change, if it changes a file at all.
///
/// # Safety
/// As for the system call.
unsafe fn extent(number: c_long, a: [usize; 6]) -> Option<Extent> {
    let extent = |fd: usize, at: Option<usize>, length: usize, kind| Extent {
        fd: fd as c_int,
        at: at.map(|at| at as u64),
        length: length as u64,
        kind,
        synced: false,
    };
    let write = |fd, at, length| Some(extent(fd, at, length, Kind::Write));
    // SAFETY: the caller's contract: null or an offset.
    let offset = |place: usize| unsafe { (place as *const off_t).as_ref() }.map(|it| *it as usize);
    // SAFETY: the caller's contract.
    let length = || unsafe { buffers(a) }.iter().map(|it| it.iov_len).sum();
    match number {
        libc::SYS_write => write(a[0], None, a[2]),
        libc::SYS_pwrite64 => write(a[0], Some(a[3]), a[2]),
        _ if a[2] > libc::UIO_MAXIOV as usize && is_vectored(number) => None, // The kernel refuses.
        libc::SYS_writev => write(a[0], None, length()),
        libc::SYS_pwritev => write(a[0], Some(a[3]), length()),
        libc::SYS_pwritev2 => Some(Extent {
            synced: a[5] as c_int & (libc::RWF_SYNC | libc::RWF_DSYNC) != 0,
            ..write(a[0], (a[3] as isize >= 0).then_some(a[3]), length())?
        }),
        libc::SYS_copy_file_range => write(a[2], offset(a[3]), a[4]),
        libc::SYS_splice => write(a[2], offset(a[3]), a[4]),
        libc::SYS_sendfile => write(a[0], None, a[3]),
        libc::SYS_ftruncate => Some(extent(a[0], Some(a[1]), 0, Kind::Resize)),
        libc::SYS_fallocate => {
            const ZERO: c_int = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
            const SHIFT: c_int = libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE;
            let kind = match a[1] as c_int {
                mode if mode & ZERO != 0 => Kind::Zero,
                mode if mode & SHIFT != 0 => Kind::Shift,
                _ => Kind::Grow,
            };
            Some(extent(a[0], Some(a[2]), a[3], kind))
        }
        _ => None,
    }
}

fn is_vectored(number: c_long) -> bool {
    matches!(
        number,
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2
    )
}

/// A file or a folder of a disk.
struct Opened {
    node: u32,
    /// Where it was when it was opened, as the kernel knows.
    path: PathBuf,
    found: fs::Metadata,
}

/// A name on a disk, which there may be or not.
struct Place {
    node: u32,
    path: PathBuf,
    name: Name,
}

/// Returns the path of a descriptor, for `std`.
fn of_descriptor(fd: c_int) -> PathBuf {
    format!("/proc/self/fd/{fd}").into()
}

/// Returns a path as an absolute one.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn absolute(dir: c_int, path: usize) -> Option<PathBuf> {
    if path == 0 {
        return None; // The kernel refuses it, as it does an empty one.
    }
    // SAFETY: the caller's contract.
    let path = unsafe { CStr::from_ptr(path as *const c_char) }.to_bytes();
    if path.is_empty() {
        return None;
    }
    let base = match dir {
        _ if path[0] == b'/' => PathBuf::new(),
        libc::AT_FDCWD => std::env::current_dir().ok()?,
        dir => fs::read_link(of_descriptor(dir)).ok()?,
    };
    Some(base.join(OsStr::from_bytes(path)))
}

fn errno(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

impl Disks {
    /// Returns what a descriptor is open for, if that is on a disk.
    fn opened(&self, fd: c_int) -> Option<Opened> {
        let path = fs::read_link(of_descriptor(fd)).ok()?;
        let node = self.node_of(&path)?;
        let found = fs::metadata(of_descriptor(fd)).ok()?;
        Some(Opened { node, path, found })
    }

    /// Returns the name that a path is, if its folder is on a disk.
    ///
    /// # Safety
    /// `path` is null or a C string.
    unsafe fn place(&self, dir: usize, path: usize) -> Option<Place> {
        // SAFETY: the caller's contract.
        let path = unsafe { absolute(dir as c_int, path) }?;
        let name = path.file_name()?.to_owned();
        let parent = fs::canonicalize(path.parent()?).ok()?;
        let folder = fs::metadata(&parent).ok()?.ino();
        Some(Place {
            node: self.node_of(&parent)?,
            path: parent.join(&name),
            name: Name { folder, name },
        })
    }

    /// Fails by chance, as what needs space does.
    fn may_fail(&mut self) -> Result<(), Errno> {
        if !self.fails() {
            return Ok(());
        }
        let (error, name) = [(libc::ENOSPC, "ENOSPC"), (libc::EIO, "EIO")][self.below(2) as usize];
        world::note_fault(|| format!("a write to a disk fails: {name}"));
        Err(Errno(error))
    }

    /// Notes a new file, which has one name.
    fn made(&mut self, new: &Opened) {
        let parts = (new.path.parent().map(fs::metadata), new.path.file_name());
        let disk = self.disk(new.node);
        disk.files.remove(&new.found.ino()); // Of a file that is gone.
        if let (Some(Ok(folder)), Some(name)) = parts {
            let (folder, name) = (folder.ino(), name.to_owned());
            disk.names.note(Deed::Made(Name { folder, name }, None));
        }
    }

    /// # Safety
    /// As for `openat`.
    unsafe fn open(&mut self, mut a: [usize; 6]) -> Option<SysResult> {
        let flags = a[2] as c_int;
        if flags & (libc::O_PATH | libc::O_DIRECTORY) == libc::O_PATH {
            return KERNELS;
        }
        // SAFETY: the caller's contract, here and below.
        let path = unsafe { absolute(a[0] as c_int, a[1]) }?;
        // A file, or the folder of a new one.
        let (existed, found) = match fs::canonicalize(&path) {
            Ok(found) => (true, found),
            Err(_) => (false, fs::canonicalize(path.parent()?).ok()?),
        };
        let node = self.node_of(&found)?;
        let unnamed = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        if existed && !unnamed && !fs::metadata(&found).ok()?.is_file() {
            return KERNELS;
        }
        if flags & libc::O_DIRECT != 0 {
            world::refused(
                "open with O_DIRECT of a file of a disk in a simulation: it fails as on a file \
                 system without direct I/O; open the file without it",
            );
            return Some(Err(Errno(libc::EINVAL)));
        }
        let makes = unnamed || !existed && flags & libc::O_CREAT != 0;
        if makes && let Err(error) = self.may_fail() {
            return Some(Err(error));
        }
        // The old contents are looked at before they are cut off.
        a[2] = (flags & !libc::O_TRUNC) as usize;
        // SAFETY: the caller's contract.
        let result = unsafe { raw(libc::SYS_openat, a) };
        let fd = *result.as_ref().ok()? as c_int;
        if let Some(new) = self.opened(fd).filter(|_| makes) {
            match unnamed {
                true => drop(self.disk(node).files.remove(&new.found.ino())),
                false => self.made(&new),
            }
        } else if flags & libc::O_TRUNC != 0 && flags & libc::O_ACCMODE != libc::O_RDONLY {
            let cut = [fd as usize, 0, 0, 0, 0, 0];
            // SAFETY: no pointers.
            if let Some(Err(error)) = unsafe { self.resize(cut) } {
                // SAFETY: no pointers; the program has not got it.
                let _ = unsafe { call!(libc::SYS_close, fd) };
                return Some(Err(error));
            }
        }
        Some(result)
    }

    /// # Safety
    /// As for `ftruncate`.
    unsafe fn resize(&mut self, a: [usize; 6]) -> Option<SysResult> {
        let number = libc::SYS_ftruncate;
        // SAFETY: the caller's contract.
        unsafe { self.change(&extent(number, a)?, || raw(number, a)) }
    }

    /// # Safety
    /// As for `truncate`.
    unsafe fn truncate(&mut self, a: [usize; 6]) -> Option<SysResult> {
        // SAFETY: the caller's contract.
        let path = unsafe { absolute(libc::AT_FDCWD, a[0]) }?;
        self.node_of(&fs::canonicalize(&path).ok()?)?;
        let file = match File::options().write(true).open(path) {
            Ok(file) => file,
            Err(error) => return Some(Err(errno(&error))),
        };
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
        // SAFETY: no pointers.
        unsafe { self.resize([fd, a[1], 0, 0, 0, 0]) }
    }

    /// Makes a call that changes a file, and notes what it changes.
    fn change(&mut self, extent: &Extent, call: impl FnOnce() -> SysResult) -> Option<SysResult> {
        let file = self.opened(extent.fd).filter(|it| it.found.is_file())?;
        Some(self.change_file(extent, &file, call))
    }

    fn change_file(
        &mut self,
        extent: &Extent,
        opened: &Opened,
        call: impl FnOnce() -> SysResult,
    ) -> SysResult {
        let Extent {
            fd, length, kind, ..
        } = *extent;
        let (inode, size) = (opened.found.ino(), opened.found.len());
        let flags = sys::status_flags(fd)?;
        if flags & libc::O_DIRECT != 0 {
            return Err(Errno(libc::EINVAL)); // By `fcntl`. `open` has refused it.
        }
        let at = match extent.at {
            _ if kind == Kind::Write && flags & libc::O_APPEND != 0 => size,
            Some(at) => at,
            // SAFETY: no pointers.
            None => unsafe { call!(libc::SYS_lseek, fd, 0, libc::SEEK_CUR)? as u64 },
        };
        // What may change, of what is there.
        let range: Range<u64> = match kind {
            Kind::Grow => size..size,
            Kind::Resize | Kind::Shift => at..size,
            Kind::Write | Kind::Zero => at..at.saturating_add(length).min(size),
        };
        self.may_fail()?;
        let of_error = |error: io::Error| errno(&error);
        let file = File::open(of_descriptor(fd)).map_err(of_error)?;
        let files = &mut self.disk(opened.node).files;
        let dirty = files.entry(inode).or_insert_with(|| Dirty::new(size));
        dirty.keep(&file, range, size).map_err(of_error)?;
        let result = call();
        if let Ok(done) = result {
            let size = file.metadata().map_err(of_error)?.len();
            let end = match kind {
                Kind::Write => at.saturating_add(done as u64),
                Kind::Zero => at.saturating_add(length),
                Kind::Shift => size,
                Kind::Resize | Kind::Grow => at,
            };
            let mut bytes = vec![0; end.min(size).saturating_sub(at) as usize];
            read_at(&file, at, &mut bytes).map_err(of_error)?;
            dirty.change(Change {
                at,
                bytes,
                size,
                cuts: size < opened.found.len(),
            });
        }
        if result.is_ok() && (extent.synced || flags & libc::O_DSYNC != 0) {
            self.sync_file(fd).transpose()?;
        }
        result
    }

    /// `fsync`, of a file or a folder.
    fn sync_file(&mut self, fd: c_int) -> Option<SysResult> {
        let Opened { node, found, .. } = self.opened(fd)?;
        let fails = self.fails();
        if fails {
            world::note_fault(|| "fsync fails: EIO".to_owned());
        }
        let disk = self.disk(node);
        if found.is_dir() {
            if !fails {
                disk.names.sync(Some(found.ino()));
            }
        } else if let Some(mut dirty) = disk.files.remove(&found.ino()) {
            let is_clean = match fails {
                true => {
                    dirty.fail();
                    false
                }
                false => dirty.sync(found.len()),
            };
            if !is_clean {
                disk.files.insert(found.ino(), dirty);
            }
        }
        Some(if fails { Err(Errno(libc::EIO)) } else { Ok(0) })
    }

    /// `sync`, which is for the machine of the calling thread, and `syncfs`.
    fn sync_all(&mut self, fd: c_int, number: c_long) -> Option<SysResult> {
        let node = match number {
            libc::SYS_syncfs => self.opened(fd)?.node,
            _ => world::own_node(),
        };
        let root = self.path_of(node);
        let disk = self.disk(node);
        disk.names.sync(None);
        let sizes = sizes_below(&root);
        disk.files.retain(|inode, dirty| match sizes.get(inode) {
            Some(&size) => !dirty.sync(size),
            None => false, // It has no name.
        });
        Some(Ok(0))
    }

    /// Makes what gives a name to something.
    ///
    /// # Safety
    /// As for the system call.
    unsafe fn make(&mut self, number: c_long, a: [usize; 6]) -> Option<SysResult> {
        let (dir, path) = match number {
            libc::SYS_symlinkat => (a[1], a[2]),
            libc::SYS_linkat => (a[2], a[3]),
            _ => (a[0], a[1]),
        };
        // SAFETY: the caller's contract.
        let place = unsafe { self.place(dir, path) }?;
        if let Err(error) = self.may_fail() {
            return Some(Err(error));
        }
        // SAFETY: the caller's contract.
        let result = unsafe { raw(number, a) };
        if result.is_ok() {
            let found = fs::symlink_metadata(&place.path).ok()?;
            let folder = found.is_dir().then(|| found.ino());
            let disk = self.disk(place.node);
            if number == libc::SYS_mknodat {
                disk.files.remove(&found.ino());
            }
            disk.names.note(Deed::Made(place.name, folder));
        }
        Some(result)
    }

    /// Keeps what is at a path, to be restored there. A folder is kept if it is empty.
    fn keep(&mut self, path: &Path) -> io::Result<Option<Old>> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(_) => return Ok(None),
        };
        if found.is_dir() {
            return Ok(Some(Old::Folder(found.ino(), found.mode())));
        }
        self.kept += 1;
        let root = self.root.as_ref().map(|it| it.0.as_path());
        let kept = root
            .unwrap_or(path)
            .join("removed")
            .join(self.kept.to_string());
        fs::hard_link(path, &kept)?;
        Ok(Some(Old::File(kept)))
    }

    /// Makes a call that takes away what is at a path, and keeps that until it is away on the disk.
    fn take_away(
        &mut self,
        path: &Path,
        call: impl FnOnce() -> SysResult,
    ) -> (SysResult, Option<Old>) {
        let old = match self.keep(path) {
            Ok(old) => old,
            Err(error) => return (Err(errno(&error)), None),
        };
        let result = call();
        if let (Err(_), Some(Old::File(kept))) = (result, &old) {
            let _ = fs::remove_file(kept);
        }
        (result, old)
    }

    /// # Safety
    /// As for `unlinkat`.
    unsafe fn remove(&mut self, a: [usize; 6]) -> Option<SysResult> {
        // SAFETY: the caller's contract, here and below.
        let place = unsafe { self.place(a[0], a[1]) }?;
        // SAFETY: the caller's contract.
        let remove = || unsafe { raw(libc::SYS_unlinkat, a) };
        let (result, old) = self.take_away(&place.path, remove);
        if let (Ok(_), Some(old)) = (result, old) {
            self.disk(place.node)
                .names
                .note(Deed::Removed(place.name, old));
        }
        Some(result)
    }

    /// # Safety
    /// As for `renameat2`.
    unsafe fn rename(&mut self, number: c_long, a: [usize; 6]) -> Option<SysResult> {
        // SAFETY: the caller's contract.
        let places = unsafe { [self.place(a[0], a[1]), self.place(a[2], a[3])] };
        let (from, to) = match places {
            [Some(from), Some(to)] if from.node == to.node => (from, to),
            [None, None] => return KERNELS,
            _ => return Some(Err(Errno(libc::EXDEV))),
        };
        let look = |it: &Place| fs::symlink_metadata(&it.path);
        let moved = look(&from).ok()?;
        let is_folder = moved.is_dir();
        // SAFETY: the caller's contract.
        let rename = || unsafe { raw(number, a) };
        if look(&to).is_ok_and(|it| it.ino() == moved.ino()) {
            return Some(rename()); // Does nothing.
        }
        let flags = if number == libc::SYS_renameat2 {
            a[4] as u32
        } else {
            0
        };
        let (result, deed) = if flags & libc::RENAME_EXCHANGE != 0 {
            (rename(), Deed::Exchanged(from.name, to.name))
        } else {
            let (result, old) = self.take_away(&to.path, rename);
            (result, Deed::Moved(from.name, to.name, old, is_folder))
        };
        if result.is_ok() {
            self.disk(from.node).names.note(deed);
        }
        Some(result)
    }
}

/// Returns the sizes of the files in a folder and below, by their inodes.
fn sizes_below(folder: &Path) -> std::collections::BTreeMap<u64, u64> {
    let mut sizes = std::collections::BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match fs::symlink_metadata(entry.path()) {
            Ok(found) if found.is_dir() => sizes.extend(sizes_below(&entry.path())),
            Ok(found) => drop(sizes.insert(found.ino(), found.len())),
            Err(_) => {}
        }
    }
    sizes
}
