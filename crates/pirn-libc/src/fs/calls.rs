//! Files: the kernel's operations on paths and open files, except reading and writing.
//!
//! None of these calls can be tried without blocking: a path may lead to a slow disk or over a
//! network, and so may the inode of an open file. They end by themselves, so on a virtual thread
//! they run on the pool of [`pool::bounded`], unless they only look at a file that is [at
//! hand](crate::fs::cached). On a platform thread they act as libc does.
//!
//! Calls that wait for another process, rather than for a device, have files of their own: opening
//! ([`open`](super::open)), locks ([`lock`](super::lock)) and moving bytes between descriptors
//! ([`copy`](crate::io::copy)). Directory streams are in [`dir`](super::dir).

use crate::forward::{args, bounded_call, number};
use crate::fs::cached::{file_at_hand, path_at_hand};
use crate::registry::interposed;
use crate::{Path, cancel, simulated};
use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use libc::{dev_t, gid_t, mode_t, off_t, size_t, ssize_t, timespec, timeval, uid_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::pool;
use pirn_rt::sys;
use pirn_rt::vthread::wait_reason::WaitReason;

const HERE: c_int = libc::AT_FDCWD;

interposed! {
    family "Files: names, attributes, contents as a whole" for Scaling,
        cannot "keep a carrier from waiting for a page of a mapped file, for `lseek` with \
            `SEEK_DATA`, or in functions that walk a tree inside libc (`ftw`, `nftw`, \
            `fts_read`, `glob`)";

    // Names and attributes, by path.
    Pool {
        fn mkdir(path: Path, mode: mode_t) -> c_int = SYS_mkdirat(HERE, path, mode);
        fn mkdirat(dir: c_int, path: Path, mode: mode_t) -> c_int = SYS_mkdirat(dir, path, mode);
        fn mkfifo(path: Path, mode: mode_t) -> c_int = SYS_mknodat(HERE, path, mode | libc::S_IFIFO, 0);
        fn mkfifoat(dir: c_int, path: Path, mode: mode_t) -> c_int = SYS_mknodat(dir, path, mode | libc::S_IFIFO, 0);
        fn mknod(path: Path, mode: mode_t, device: dev_t) -> c_int = SYS_mknodat(HERE, path, mode, device);
        fn mknodat(dir: c_int, path: Path, mode: mode_t, device: dev_t) -> c_int = SYS_mknodat(dir, path, mode, device);
        fn rmdir(path: Path) -> c_int = SYS_unlinkat(HERE, path, libc::AT_REMOVEDIR);
        fn unlink(path: Path) -> c_int = SYS_unlinkat(HERE, path, 0);
        fn unlinkat(dir: c_int, path: Path, flags: c_int) -> c_int = SYS_unlinkat(dir, path, flags);
        fn rename(from: Path, to: Path) -> c_int = SYS_renameat(HERE, from, HERE, to);
        fn renameat(dir: c_int, from: Path, to_dir: c_int, to: Path) -> c_int = SYS_renameat(dir, from, to_dir, to);
        fn renameat2(dir: c_int, from: Path, to_dir: c_int, to: Path, flags: c_uint) -> c_int
            = SYS_renameat2(dir, from, to_dir, to, flags);
        fn link(from: Path, to: Path) -> c_int = SYS_linkat(HERE, from, HERE, to, 0);
        fn linkat(dir: c_int, from: Path, to_dir: c_int, to: Path, flags: c_int) -> c_int
            = SYS_linkat(dir, from, to_dir, to, flags);
        fn symlink(target: Path, path: Path) -> c_int = SYS_symlinkat(target, HERE, path);
        fn symlinkat(target: Path, dir: c_int, path: Path) -> c_int = SYS_symlinkat(target, dir, path);
        fn chmod(path: Path, mode: mode_t) -> c_int = SYS_fchmodat(HERE, path, mode);
        fn chown(path: Path, owner: uid_t, group: gid_t) -> c_int
            = SYS_fchownat(HERE, path, owner, group, 0);
        fn lchown(path: Path, owner: uid_t, group: gid_t) -> c_int
            = SYS_fchownat(HERE, path, owner, group, libc::AT_SYMLINK_NOFOLLOW);
        fn fchownat(dir: c_int, path: Path, owner: uid_t, group: gid_t, flags: c_int) -> c_int
            = SYS_fchownat(dir, path, owner, group, flags);
        fn truncate(path: Path, length: off_t) -> c_int = SYS_truncate(path, length);
        fn chdir(path: Path) -> c_int = SYS_chdir(path);
        fn fchdir(fd: c_int) -> c_int = SYS_fchdir(fd);
    }

    // Calls that only look. `struct stat` is the kernel's on this machine, in every version of
    // glibc.
    Cached {
        fn access(path: Path, mode: c_int) -> c_int = SYS_faccessat(HERE, path, mode) if found(HERE, path, 0);
        fn readlink(path: Path, buffer: *mut c_char, size: size_t) -> ssize_t
            = SYS_readlinkat(HERE, path, buffer, size) if found(HERE, path, libc::AT_SYMLINK_NOFOLLOW);
        fn readlinkat(dir: c_int, path: Path, buffer: *mut c_char, size: size_t) -> ssize_t
            = SYS_readlinkat(dir, path, buffer, size) if found(dir, path, libc::AT_SYMLINK_NOFOLLOW);
        fn stat(path: Path, out: *mut libc::stat) -> c_int
            = SYS_newfstatat(HERE, path, out, 0) if found(HERE, path, 0);
        fn lstat(path: Path, out: *mut libc::stat) -> c_int
            = SYS_newfstatat(HERE, path, out, libc::AT_SYMLINK_NOFOLLOW)
            if found(HERE, path, libc::AT_SYMLINK_NOFOLLOW);
        fn fstat(fd: c_int, out: *mut libc::stat) -> c_int = SYS_fstat(fd, out) if file_at_hand(fd).is_some();
        fn fstatat(dir: c_int, path: Path, out: *mut libc::stat, flags: c_int) -> c_int
            = SYS_newfstatat(dir, path, out, flags) if found(dir, path, flags);
        /// `std::fs::metadata` calls this.
        fn statx(dir: c_int, path: Path, flags: c_int, mask: c_uint, out: *mut libc::statx) -> c_int
            = SYS_statx(dir, path, flags, mask, out) if found(dir, path, flags);
    }

    // Open files and file systems.
    Pool {
        fn statfs(path: Path, out: *mut libc::statfs) -> c_int = SYS_statfs(path, out);
        fn fstatfs(fd: c_int, out: *mut libc::statfs) -> c_int = SYS_fstatfs(fd, out);
        fn syncfs(fd: c_int) -> c_int = SYS_syncfs(fd);
        fn ftruncate(fd: c_int, length: off_t) -> c_int = SYS_ftruncate(fd, length);
        fn fchmod(fd: c_int, mode: mode_t) -> c_int = SYS_fchmod(fd, mode);
        fn fchown(fd: c_int, owner: uid_t, group: gid_t) -> c_int = SYS_fchown(fd, owner, group);
        fn readahead(fd: c_int, offset: off_t, length: size_t) -> ssize_t = SYS_readahead(fd, offset, length);
    }

    // Cancellation points.
    Pool as {
        fn fsync(fd: c_int) -> c_int = at_a_point(c"fsync", libc::SYS_fsync, args([fd as usize]));
        fn fdatasync(fd: c_int) -> c_int
            = at_a_point(c"fdatasync", libc::SYS_fdatasync, args([fd as usize]));
        fn sync_file_range(fd: c_int, offset: off_t, length: off_t, flags: c_uint) -> c_int
            = at_a_point(c"sync_file_range", libc::SYS_sync_file_range, args([
                fd as usize, offset as usize, length as usize, flags as usize,
            ]));
        fn msync(address: *mut c_void, length: size_t, flags: c_int) -> c_int
            = at_a_point(c"msync", libc::SYS_msync, args([address as usize, length, flags as usize]));
        fn fallocate(fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int
            = at_a_point(c"fallocate", libc::SYS_fallocate, args([
                fd as usize, mode as usize, offset as usize, length as usize,
            ]));
    }

    // Extended attributes.
    Pool {
        fn getxattr(path: Path, name: Path, value: *mut c_void, size: size_t) -> ssize_t
            = SYS_getxattr(path, name, value, size);
        fn lgetxattr(path: Path, name: Path, value: *mut c_void, size: size_t) -> ssize_t
            = SYS_lgetxattr(path, name, value, size);
        fn fgetxattr(fd: c_int, name: Path, value: *mut c_void, size: size_t) -> ssize_t
            = SYS_fgetxattr(fd, name, value, size);
        fn setxattr(path: Path, name: Path, value: *const c_void, size: size_t, flags: c_int) -> c_int
            = SYS_setxattr(path, name, value, size, flags);
        fn lsetxattr(path: Path, name: Path, value: *const c_void, size: size_t, flags: c_int) -> c_int
            = SYS_lsetxattr(path, name, value, size, flags);
        fn fsetxattr(fd: c_int, name: Path, value: *const c_void, size: size_t, flags: c_int) -> c_int
            = SYS_fsetxattr(fd, name, value, size, flags);
        fn listxattr(path: Path, list: *mut c_char, size: size_t) -> ssize_t = SYS_listxattr(path, list, size);
        fn llistxattr(path: Path, list: *mut c_char, size: size_t) -> ssize_t = SYS_llistxattr(path, list, size);
        fn flistxattr(fd: c_int, list: *mut c_char, size: size_t) -> ssize_t = SYS_flistxattr(fd, list, size);
        fn removexattr(path: Path, name: Path) -> c_int = SYS_removexattr(path, name);
        fn lremovexattr(path: Path, name: Path) -> c_int = SYS_lremovexattr(path, name);
        fn fremovexattr(fd: c_int, name: Path) -> c_int = SYS_fremovexattr(fd, name);
    }

    // Calls that libc does not just pass on: it emulates flags, or converts structures.
    Pool {
        fn faccessat(dir: c_int, path: Path, mode: c_int, flags: c_int) -> c_int;
        fn euidaccess(path: Path, mode: c_int) -> c_int;
        fn fchmodat(dir: c_int, path: Path, mode: mode_t, flags: c_int) -> c_int;
        fn lchmod(path: Path, mode: mode_t) -> c_int;
        fn utimensat(dir: c_int, path: Path, times: *const timespec, flags: c_int) -> c_int;
        fn futimens(fd: c_int, times: *const timespec) -> c_int;
        fn utime(path: Path, times: *const libc::utimbuf) -> c_int;
        fn utimes(path: Path, times: *const timeval) -> c_int;
        fn lutimes(path: Path, times: *const timeval) -> c_int;
        fn futimes(fd: c_int, times: *const timeval) -> c_int;
        fn futimesat(dir: c_int, path: Path, times: *const timeval) -> c_int;
        fn statvfs(path: Path, out: *mut libc::statvfs) -> c_int;
        fn fstatvfs(fd: c_int, out: *mut libc::statvfs) -> c_int;
        /// Returns an error number.
        fn posix_fadvise(fd: c_int, offset: off_t, length: off_t, advice: c_int) -> c_int;
        fn canonicalize_file_name(path: Path) -> *mut c_char;
        /// A fortified program calls this for `realpath`.
        fn __realpath_chk(path: Path, resolved: *mut c_char, size: size_t) -> *mut c_char;
        /// A fortified program calls this for `readlink`.
        fn __readlink_chk(path: Path, buffer: *mut c_char, length: size_t, size: size_t) -> ssize_t;
        /// A fortified program calls this for `readlinkat`.
        fn __readlinkat_chk(dir: c_int, path: Path, buffer: *mut c_char, length: size_t, size: size_t) -> ssize_t;
    }

    // Programs built against glibc before 2.33 call these in place of the `stat`s and `mknod`s.
    // `version` is the structure's. This machine has had one, and glibc only checks it.
    Pool {
        fn __xmknod(version: c_int, path: Path, mode: mode_t, device: *mut dev_t) -> c_int;
        fn __xmknodat(version: c_int, dir: c_int, path: Path, mode: mode_t, device: *mut dev_t) -> c_int;
        fn __xstat(version: c_int, path: Path, out: *mut libc::stat) -> c_int;
        fn __lxstat(version: c_int, path: Path, out: *mut libc::stat) -> c_int;
        fn __fxstat(version: c_int, fd: c_int, out: *mut libc::stat) -> c_int;
        fn __fxstatat(version: c_int, dir: c_int, path: Path, out: *mut libc::stat, flags: c_int) -> c_int;
    }
    Pool as {
        fn sync() -> () = { bounded_call(c"sync", libc::SYS_sync, [0; 6]); };
        fn remove(path: Path) -> c_int = match unlink(path) {
            -1 if sys::errno() == libc::EISDIR => rmdir(path),
            result => result,
        };
    }
    Pool by hand { realpath, posix_fallocate: "returns an error number" }

    // On this machine the structures and offsets of both names are the same.
    Pool alias {
        truncate64 = truncate, ftruncate64 = ftruncate, statfs64 = statfs, __statfs = statfs,
        fstatfs64 = fstatfs, fallocate64 = fallocate, posix_fallocate64 = posix_fallocate,
        posix_fadvise64 = posix_fadvise, statvfs64 = statvfs, fstatvfs64 = fstatvfs,
        eaccess = euidaccess, __xstat64 = __xstat, __lxstat64 = __lxstat, __fxstat64 = __fxstat,
        __fxstatat64 = __fxstatat,
    }
    Cached alias { stat64 = stat, lstat64 = lstat, fstat64 = fstat, fstatat64 = fstatat }
}

/// Makes a call as [`bounded_call`] does, as a cancellation point.
///
/// # Safety
/// As for the system call; the caller is `extern "C-unwind"` and has nothing to drop.
unsafe fn at_a_point(name: &'static CStr, number: c_long, args: [usize; 6]) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { cancel::own_point(move || bounded_call(name, number, args) as c_int) }
}

/// Returns whether the file that this path leads to is at hand. `flags` as for `fstatat`.
///
/// # Safety
/// As for `fstatat(2)`.
unsafe fn found(dir: c_int, path: Path, flags: c_int) -> bool {
    // SAFETY: the caller's contract.
    unsafe {
        if flags & libc::AT_EMPTY_PATH != 0
            && (path.is_null() || sys::fetch_u8(path.addr()) == Ok(0))
        {
            return file_at_hand(dir).is_some();
        }
        let follow = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
            libc::O_NOFOLLOW
        } else {
            0
        };
        path_at_hand(dir, path, follow).is_some()
    }
}

#[libc_fn]
pub unsafe fn realpath(path: Path, resolved: *mut c_char) -> *mut c_char {
    if resolved.is_null() {
        // This does what `realpath` does, and exists in one version only: the first version of
        // `realpath` could not allocate.
        return canonicalize_file_name(path);
    }
    pool::bounded(WaitReason::call(c"realpath"), || libcs!())
}

/// libc writes zeros where the file system cannot allocate.
#[libc_fn]
pub unsafe fn posix_fallocate(fd: c_int, offset: off_t, length: off_t) -> c_int {
    let simulated = [fd as usize, 0, offset as usize, length as usize];
    match simulated::call(libc::SYS_fallocate, simulated) {
        Some(result) => number(result),
        None => pool::bounded(WaitReason::call(c"posix_fallocate"), || libcs!()),
    }
}
