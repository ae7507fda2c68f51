//! Finds the calls that need no pool thread, because the kernel has all they need at hand.
//!
//! Passing a call to the pool and back costs several microseconds, and most `stat`s and opens
//! concern files that were used a moment ago. Two questions, which the kernel answers without
//! blocking:
//! * Is the path in the cache of names? `openat2` with `RESOLVE_CACHED` says so; `O_PATH` keeps the
//!   file itself from being opened.
//! * Is the file on a local file system, whose inodes are in memory while they are in use? On
//!   others (NFS, FUSE, …) the kernel asks a server about them. `statx` names the device; the
//!   device's traits were found out before, on the pool.
//!
//! If both answers are yes, the carrier makes the call itself. In the worst case, the kernel drops
//! something from the cache between the questions and the call, and a carrier waits for the disk
//! once.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicU64, Ordering};
use libc::mode_t;
use pirn_rt::blocking::pool;
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sys::{self, call};
use pirn_rt::vthread::wait_reason::WaitReason;

/// Returns the type of the file that a path leads to, if it is at hand. `flags`: the flags of
/// `openat` that say how to follow the path.
///
/// # Safety
/// As for `openat(2)`.
pub(crate) unsafe fn path_at_hand(dir: c_int, path: *const c_char, flags: c_int) -> Option<mode_t> {
    if !valgrind::kernel_has(libc::SYS_openat2) {
        return None;
    }
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
    // SAFETY: this code made it, and no other code has its number: the table of descriptors was not
    // told.
    let _ = unsafe { call!(libc::SYS_close, fd) };
    mode
}

/// Returns the file type of a descriptor, if all its metadata is at hand.
pub(crate) fn file_at_hand(fd: c_int) -> Option<mode_t> {
    let statx = identify(fd)?;
    traits(fd, &statx)
        .local
        .then_some(mode_t::from(statx.stx_mode) & libc::S_IFMT)
}

/// Returns the file type of a descriptor, from memory: this never blocks.
pub(crate) fn file_type(fd: c_int) -> Option<mode_t> {
    identify(fd).map(|statx| mode_t::from(statx.stx_mode) & libc::S_IFMT)
}

/// Returns type and device of a descriptor's file, which the kernel knows without asking a server.
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

/// Returns whether the contents of a descriptor's file may have to be fetched from a device. For a
/// pipe, a socket and a file in memory, such as the files of `/proc`, they need not.
pub(crate) fn is_on_device(fd: c_int) -> bool {
    let Some(statx) = identify(fd) else {
        return sys::is_file(fd); // The best answer without `statx`.
    };
    match mode_t::from(statx.stx_mode) & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFDIR => !traits(fd, &statx).in_memory,
        kind => kind == libc::S_IFBLK,
    }
}

/// The traits of a file system.
#[derive(Clone, Copy)]
struct Traits {
    /// Metadata of a file is in memory while it is in use.
    local: bool,
    /// The contents are in memory too, or are made when they are read.
    in_memory: bool,
}

/// Known devices, by their number's last bits: `number << 2 | in memory << 1 | local`. Zero: none.
///
/// A number may mean another device after an unmount. Then a call may block its carrier although it
/// need not; nothing else goes wrong.
static DEVICES: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Returns the traits of the file system that a file is on.
fn traits(fd: c_int, statx: &libc::statx) -> Traits {
    let number = u64::from(statx.stx_dev_major) << 32 | u64::from(statx.stx_dev_minor);
    let entry = &DEVICES[number as usize % DEVICES.len()];
    // Relaxed: no other data.
    let known = entry.load(Ordering::Relaxed);
    if known >> 2 == number && known != 0 {
        return Traits {
            local: known & 1 != 0,
            in_memory: known & 2 != 0,
        };
    }
    let traits = pool::bounded(WaitReason::call(c"statfs"), || traits_of_file_system(fd));
    let (local, in_memory) = (u64::from(traits.local), u64::from(traits.in_memory));
    entry.store(number << 2 | in_memory << 1 | local, Ordering::Relaxed);
    traits
}

/// Asks the file system for its type, which may take time.
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
