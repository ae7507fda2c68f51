//! Which calls need no pool thread, because the kernel has at hand all they need.
//!
//! Passing a call to the pool and back costs several microseconds, and most `stat`s and opens are
//! of what was used a moment ago. Two questions, to which the kernel's answer never blocks:
//! * Is the path in the cache of names? `openat2` with `RESOLVE_CACHED` says so; `O_PATH` keeps the
//!   file itself from being opened.
//! * Is the file on a local file system, whose inodes are in memory while they are in use? On
//!   others (NFS, FUSE, …) somebody else is asked about them. `statx` names the device, and what
//!   that is was found out before, on the pool.
//!
//! If both are so, the call itself is made by the carrier. In the worst case, between the questions
//! and the call something has been dropped from the cache, and a carrier waits for the disk once.

use crate::blocking::{fds, offload};
use crate::sys::call;
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicU64, Ordering};
use libc::mode_t;

/// The file type of what a path leads to, if it is at hand. `flags`: of `openat`, those that say
/// how to follow the path.
///
/// # Safety
/// As for `openat(2)`.
pub(in crate::interpose) unsafe fn path_at_hand(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
) -> Option<mode_t> {
    // SAFETY: all zeros is a valid `open_how`.
    let mut how: libc::open_how = unsafe { core::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC | flags) as u64;
    how.resolve = libc::RESOLVE_CACHED;
    // SAFETY: the caller's contract; the structure is of the size given.
    let fd = unsafe {
        call!(
            libc::SYS_openat2,
            dir,
            path,
            &raw const how,
            size_of_val(&how)
        )
    }
    .ok()? as c_int;
    let mode = file_at_hand(fd);
    // SAFETY: ours, and known to nobody: the table of descriptors has not heard of it.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    mode
}

/// The file type of a descriptor, if all about it is at hand.
pub(in crate::interpose) fn file_at_hand(fd: c_int) -> Option<mode_t> {
    let statx = identify(fd)?;
    is_local(fd, &statx).then_some(mode_t::from(statx.stx_mode) & libc::S_IFMT)
}

/// The file type of a descriptor, from what is in memory: this never blocks.
pub(in crate::interpose) fn file_type(fd: c_int) -> Option<mode_t> {
    identify(fd).map(|statx| mode_t::from(statx.stx_mode) & libc::S_IFMT)
}

/// Type and device of a descriptor's file, which nobody else needs to be asked for.
fn identify(fd: c_int) -> Option<libc::statx> {
    const FLAGS: c_int = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: all zeros is a valid `statx`, which the kernel fills in.
    unsafe {
        let mut statx: libc::statx = core::mem::zeroed();
        call!(
            libc::SYS_statx,
            fd,
            c"".as_ptr(),
            FLAGS,
            libc::STATX_TYPE,
            &raw mut statx
        )
        .ok()?;
        Some(statx)
    }
}

/// Whether a descriptor is of a file whose contents may have to be fetched from somewhere: not of a
/// pipe or a socket, and not of a file that is in memory, such as those of `/proc`.
pub(in crate::interpose) fn is_on_device(fd: c_int) -> bool {
    let Some(statx) = identify(fd) else {
        return fds::is_file(fd); // Without `statx`, all that can be known.
    };
    match mode_t::from(statx.stx_mode) & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFDIR => !traits(fd, &statx).in_memory,
        kind => kind == libc::S_IFBLK,
    }
}

/// What there is to know of a file system.
#[derive(Clone, Copy)]
struct Traits {
    /// Metadata of a file is in memory while it is in use.
    local: bool,
    /// So are the contents, or they are made when they are read.
    in_memory: bool,
}

/// Devices looked at, by their number's last bits: `number << 2 | in memory << 1 | local`. Zero:
/// none.
///
/// A number may come to mean another device after an unmount. A call may then block its carrier
/// that need not, no more.
static DEVICES: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Whether a file's metadata is in memory while it is in use.
fn is_local(fd: c_int, statx: &libc::statx) -> bool {
    traits(fd, statx).local
}

/// The traits of the file system that a file is on.
fn traits(fd: c_int, statx: &libc::statx) -> Traits {
    let number = u64::from(statx.stx_dev_major) << 32 | u64::from(statx.stx_dev_minor);
    let entry = &DEVICES[number as usize % DEVICES.len()];
    // Relaxed: an entry is complete in itself.
    let known = entry.load(Ordering::Relaxed);
    if known >> 2 == number && known != 0 {
        return Traits {
            local: known & 1 != 0,
            in_memory: known & 2 != 0,
        };
    }
    let traits = offload::bounded(|| traits_of_file_system(fd));
    let (local, in_memory) = (u64::from(traits.local), u64::from(traits.in_memory));
    entry.store(number << 2 | in_memory << 1 | local, Ordering::Relaxed);
    traits
}

/// Asks the file system what it is, which may take time.
fn traits_of_file_system(fd: c_int) -> Traits {
    const EXT: i64 = libc::EXT4_SUPER_MAGIC;
    const XFS: i64 = libc::XFS_SUPER_MAGIC;
    const BTRFS: i64 = libc::BTRFS_SUPER_MAGIC;
    const F2FS: i64 = libc::F2FS_SUPER_MAGIC;
    const TMPFS: i64 = libc::TMPFS_MAGIC;
    const OVERLAY: i64 = libc::OVERLAYFS_SUPER_MAGIC;
    const PROC: i64 = libc::PROC_SUPER_MAGIC;
    const SYSFS: i64 = libc::SYSFS_MAGIC;
    const PIPES: i64 = 0x5049_5045;
    const SOCKETS: i64 = 0x534f_434b;
    let mut traits = Traits {
        local: false,
        in_memory: false,
    };
    // SAFETY: all zeros is a valid `statfs`, which the kernel fills in.
    unsafe {
        let mut statfs: libc::statfs = core::mem::zeroed();
        if call!(libc::SYS_fstatfs, fd, &raw mut statfs).is_ok() {
            traits.in_memory = matches!(statfs.f_type, TMPFS | PROC | SYSFS | PIPES | SOCKETS);
            traits.local =
                traits.in_memory || matches!(statfs.f_type, EXT | XFS | BTRFS | F2FS | OVERLAY);
        }
    }
    traits
}
