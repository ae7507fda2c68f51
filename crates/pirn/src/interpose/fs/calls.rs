//! Files: what the kernel does with paths and with open files, short of reading and writing.
//!
//! None of these calls can be tried without blocking: a path may lead to a slow disk or over a
//! network, and so may the inode of an open file. They end by themselves, so on a virtual thread
//! they run on the pool of [`offload::bounded`]; on a platform thread they do what libc does. Three
//! tables: calls that only look at a file, and need no pool if it is [at hand](super::cached);
//! others that are one system call; and those for which libc does more.
//!
//! What waits for somebody else, rather than for a device, has a file of its own: opening
//! ([`open`](super::open)), locks ([`lock`](super::lock)) and moving bytes between
//! descriptors ([`copy`](super::copy)). Directory streams are in [`dir`](super::dir).
//!
//! Not covered: page faults on memory-mapped files, `lseek` with `SEEK_DATA`, and functions that
//! walk trees with callbacks inside libc (`ftw`, `nftw`, `fts_read`, `glob`): they block the
//! carrier as they would block a platform thread.

use super::cached::{file_at_hand, path_at_hand};
use crate::arch;
use crate::blocking::offload;
use crate::glibc::symbols::real;
use crate::interpose::virtual_thread;
use crate::sys::{self, Errno, SysResult};
use core::ffi::{c_char, c_int, c_long, c_uint, c_void};
use libc::{dev_t, gid_t, mode_t, off_t, size_t, ssize_t, timespec, timeval, uid_t};

/// A system call that needs nothing but what is `at_hand`, if it is; else the pool.
///
/// # Safety
/// As for the system call.
unsafe fn glance(at_hand: impl FnOnce() -> bool, number: c_long, args: [usize; 6]) -> isize {
    // SAFETY: the caller's contract.
    unsafe {
        if virtual_thread().is_some() && at_hand() {
            sys::to_c(sys::check(arch::syscall(number, args)))
        } else {
            bounded_call(number, args)
        }
    }
}

/// A system call that ends by itself, as a C function gives its result.
///
/// # Safety
/// As for the system call.
pub(in crate::interpose) unsafe fn bounded_call(number: c_long, args: [usize; 6]) -> isize {
    // SAFETY: the caller's contract.
    sys::to_c(offload::bounded(|| unsafe {
        sys::check(arch::syscall(number, args))
    }))
}

/// The result of a C function that reports through `errno`.
pub(in crate::interpose) fn from_c(result: c_int) -> SysResult {
    if result == -1 {
        Err(Errno(sys::errno()))
    } else {
        Ok(result as usize)
    }
}

/// The six arguments of a system call, of which the first are given.
pub(in crate::interpose) fn args<const N: usize>(given: [usize; N]) -> [usize; 6] {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&given);
    all
}

/// Defines libc functions that are one system call each:
/// `fn name(arguments) -> type = SYS_name(values);`.
macro_rules! kernel_calls {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty = $number:ident($($value:expr),*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            let args = $crate::interpose::fs::calls::args([$($value as usize),*]);
            // SAFETY: the caller's contract.
            unsafe { $crate::interpose::fs::calls::bounded_call(libc::$number, args) as $ret }
        }
    )*};
}
pub(in crate::interpose) use kernel_calls;

/// Defines libc functions that are one system call each, and only look:
/// `… = SYS_name(values) if at hand;`.
macro_rules! glances {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty
        = $number:ident($($value:expr),*) if $at_hand:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            let args = args([$($value as usize),*]);
            // SAFETY: the caller's contract.
            unsafe { glance(|| $at_hand, libc::$number, args) as $ret }
        }
    )*};
}

/// Defines libc functions that run libc's own definition.
macro_rules! libc_calls {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the caller's contract.
            $crate::blocking::offload::bounded(|| unsafe {
                $crate::glibc::symbols::real!(fn $name($($arg: $ty),*) -> $ret)
            })
        }
    )*};
}
pub(in crate::interpose) use libc_calls;

const HERE: c_int = libc::AT_FDCWD;
type Path = *const c_char;

// Names and attributes, by path.
kernel_calls! {
    /// `mkdir`.
    fn mkdir(path: Path, mode: mode_t) -> c_int = SYS_mkdir(path, mode);
    /// `mkdirat`.
    fn mkdirat(dir: c_int, path: Path, mode: mode_t) -> c_int = SYS_mkdirat(dir, path, mode);
    /// `mkfifo`.
    fn mkfifo(path: Path, mode: mode_t) -> c_int = SYS_mknodat(HERE, path, mode | libc::S_IFIFO, 0);
    /// `mkfifoat`.
    fn mkfifoat(dir: c_int, path: Path, mode: mode_t) -> c_int = SYS_mknodat(dir, path, mode | libc::S_IFIFO, 0);
    /// `mknod`.
    fn mknod(path: Path, mode: mode_t, device: dev_t) -> c_int = SYS_mknodat(HERE, path, mode, device);
    /// `mknodat`.
    fn mknodat(dir: c_int, path: Path, mode: mode_t, device: dev_t) -> c_int = SYS_mknodat(dir, path, mode, device);
    /// `rmdir`.
    fn rmdir(path: Path) -> c_int = SYS_rmdir(path);
    /// `unlink`.
    fn unlink(path: Path) -> c_int = SYS_unlink(path);
    /// `unlinkat`.
    fn unlinkat(dir: c_int, path: Path, flags: c_int) -> c_int = SYS_unlinkat(dir, path, flags);
    /// `rename`.
    fn rename(from: Path, to: Path) -> c_int = SYS_rename(from, to);
    /// `renameat`.
    fn renameat(dir: c_int, from: Path, to_dir: c_int, to: Path) -> c_int = SYS_renameat(dir, from, to_dir, to);
    /// `renameat2`.
    fn renameat2(dir: c_int, from: Path, to_dir: c_int, to: Path, flags: c_uint) -> c_int
        = SYS_renameat2(dir, from, to_dir, to, flags);
    /// `link`.
    fn link(from: Path, to: Path) -> c_int = SYS_link(from, to);
    /// `linkat`.
    fn linkat(dir: c_int, from: Path, to_dir: c_int, to: Path, flags: c_int) -> c_int
        = SYS_linkat(dir, from, to_dir, to, flags);
    /// `symlink`.
    fn symlink(target: Path, path: Path) -> c_int = SYS_symlink(target, path);
    /// `symlinkat`.
    fn symlinkat(target: Path, dir: c_int, path: Path) -> c_int = SYS_symlinkat(target, dir, path);
    /// `chmod`.
    fn chmod(path: Path, mode: mode_t) -> c_int = SYS_chmod(path, mode);
    /// `chown`.
    fn chown(path: Path, owner: uid_t, group: gid_t) -> c_int = SYS_chown(path, owner, group);
    /// `lchown`.
    fn lchown(path: Path, owner: uid_t, group: gid_t) -> c_int = SYS_lchown(path, owner, group);
    /// `fchownat`.
    fn fchownat(dir: c_int, path: Path, owner: uid_t, group: gid_t, flags: c_int) -> c_int
        = SYS_fchownat(dir, path, owner, group, flags);
    /// `truncate`.
    fn truncate(path: Path, length: off_t) -> c_int = SYS_truncate(path, length);
    /// `truncate64`.
    fn truncate64(path: Path, length: off_t) -> c_int = SYS_truncate(path, length);
    /// `chdir`.
    fn chdir(path: Path) -> c_int = SYS_chdir(path);
    /// `fchdir`.
    fn fchdir(fd: c_int) -> c_int = SYS_fchdir(fd);
}

// What is only looked at. `struct stat` is the kernel's on this machine, in every version of glibc.
glances! {
    /// `access`.
    fn access(path: Path, mode: c_int) -> c_int = SYS_access(path, mode) if found(HERE, path, 0);
    /// `readlink`.
    fn readlink(path: Path, buffer: *mut c_char, size: size_t) -> ssize_t
        = SYS_readlink(path, buffer, size) if found(HERE, path, libc::AT_SYMLINK_NOFOLLOW);
    /// `readlinkat`.
    fn readlinkat(dir: c_int, path: Path, buffer: *mut c_char, size: size_t) -> ssize_t
        = SYS_readlinkat(dir, path, buffer, size) if found(dir, path, libc::AT_SYMLINK_NOFOLLOW);
    /// `stat`.
    fn stat(path: Path, out: *mut libc::stat) -> c_int = SYS_stat(path, out) if found(HERE, path, 0);
    /// `stat64`.
    fn stat64(path: Path, out: *mut libc::stat64) -> c_int = SYS_stat(path, out) if found(HERE, path, 0);
    /// `lstat`.
    fn lstat(path: Path, out: *mut libc::stat) -> c_int
        = SYS_lstat(path, out) if found(HERE, path, libc::AT_SYMLINK_NOFOLLOW);
    /// `lstat64`.
    fn lstat64(path: Path, out: *mut libc::stat64) -> c_int
        = SYS_lstat(path, out) if found(HERE, path, libc::AT_SYMLINK_NOFOLLOW);
    /// `fstat`.
    fn fstat(fd: c_int, out: *mut libc::stat) -> c_int = SYS_fstat(fd, out) if file_at_hand(fd).is_some();
    /// `fstat64`.
    fn fstat64(fd: c_int, out: *mut libc::stat64) -> c_int = SYS_fstat(fd, out) if file_at_hand(fd).is_some();
    /// `fstatat`.
    fn fstatat(dir: c_int, path: Path, out: *mut libc::stat, flags: c_int) -> c_int
        = SYS_newfstatat(dir, path, out, flags) if found(dir, path, flags);
    /// `fstatat64`.
    fn fstatat64(dir: c_int, path: Path, out: *mut libc::stat64, flags: c_int) -> c_int
        = SYS_newfstatat(dir, path, out, flags) if found(dir, path, flags);
    /// `statx`: what `std::fs::metadata` calls.
    fn statx(dir: c_int, path: Path, flags: c_int, mask: c_uint, out: *mut libc::statx) -> c_int
        = SYS_statx(dir, path, flags, mask, out) if found(dir, path, flags);
}

/// Whether what such a path leads to is at hand. `flags`: of `fstatat`.
///
/// # Safety
/// As for `fstatat(2)`.
unsafe fn found(dir: c_int, path: Path, flags: c_int) -> bool {
    // SAFETY: the caller's contract.
    unsafe {
        if flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || *path == 0) {
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

// Open files and file systems.
kernel_calls! {
    /// `statfs`.
    fn statfs(path: Path, out: *mut libc::statfs) -> c_int = SYS_statfs(path, out);
    /// `statfs64`.
    fn statfs64(path: Path, out: *mut libc::statfs64) -> c_int = SYS_statfs(path, out);
    /// `fstatfs`.
    fn fstatfs(fd: c_int, out: *mut libc::statfs) -> c_int = SYS_fstatfs(fd, out);
    /// `fstatfs64`.
    fn fstatfs64(fd: c_int, out: *mut libc::statfs64) -> c_int = SYS_fstatfs(fd, out);
    /// `fsync`.
    fn fsync(fd: c_int) -> c_int = SYS_fsync(fd);
    /// `fdatasync`.
    fn fdatasync(fd: c_int) -> c_int = SYS_fdatasync(fd);
    /// `syncfs`.
    fn syncfs(fd: c_int) -> c_int = SYS_syncfs(fd);
    /// `sync_file_range`.
    fn sync_file_range(fd: c_int, offset: off_t, length: off_t, flags: c_uint) -> c_int
        = SYS_sync_file_range(fd, offset, length, flags);
    /// `msync`.
    fn msync(address: *mut c_void, length: size_t, flags: c_int) -> c_int = SYS_msync(address, length, flags);
    /// `ftruncate`.
    fn ftruncate(fd: c_int, length: off_t) -> c_int = SYS_ftruncate(fd, length);
    /// `ftruncate64`.
    fn ftruncate64(fd: c_int, length: off_t) -> c_int = SYS_ftruncate(fd, length);
    /// `fallocate`.
    fn fallocate(fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int
        = SYS_fallocate(fd, mode, offset, length);
    /// `fallocate64`.
    fn fallocate64(fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int
        = SYS_fallocate(fd, mode, offset, length);
    /// `fchmod`.
    fn fchmod(fd: c_int, mode: mode_t) -> c_int = SYS_fchmod(fd, mode);
    /// `fchown`.
    fn fchown(fd: c_int, owner: uid_t, group: gid_t) -> c_int = SYS_fchown(fd, owner, group);
    /// `readahead`.
    fn readahead(fd: c_int, offset: off_t, length: size_t) -> ssize_t = SYS_readahead(fd, offset, length);
}

// Extended attributes.
kernel_calls! {
    /// `getxattr`.
    fn getxattr(path: Path, name: Path, value: *mut c_void, size: size_t) -> ssize_t
        = SYS_getxattr(path, name, value, size);
    /// `lgetxattr`.
    fn lgetxattr(path: Path, name: Path, value: *mut c_void, size: size_t) -> ssize_t
        = SYS_lgetxattr(path, name, value, size);
    /// `fgetxattr`.
    fn fgetxattr(fd: c_int, name: Path, value: *mut c_void, size: size_t) -> ssize_t
        = SYS_fgetxattr(fd, name, value, size);
    /// `setxattr`.
    fn setxattr(path: Path, name: Path, value: *const c_void, size: size_t, flags: c_int) -> c_int
        = SYS_setxattr(path, name, value, size, flags);
    /// `lsetxattr`.
    fn lsetxattr(path: Path, name: Path, value: *const c_void, size: size_t, flags: c_int) -> c_int
        = SYS_lsetxattr(path, name, value, size, flags);
    /// `fsetxattr`.
    fn fsetxattr(fd: c_int, name: Path, value: *const c_void, size: size_t, flags: c_int) -> c_int
        = SYS_fsetxattr(fd, name, value, size, flags);
    /// `listxattr`.
    fn listxattr(path: Path, list: *mut c_char, size: size_t) -> ssize_t = SYS_listxattr(path, list, size);
    /// `llistxattr`.
    fn llistxattr(path: Path, list: *mut c_char, size: size_t) -> ssize_t = SYS_llistxattr(path, list, size);
    /// `flistxattr`.
    fn flistxattr(fd: c_int, list: *mut c_char, size: size_t) -> ssize_t = SYS_flistxattr(fd, list, size);
    /// `removexattr`.
    fn removexattr(path: Path, name: Path) -> c_int = SYS_removexattr(path, name);
    /// `lremovexattr`.
    fn lremovexattr(path: Path, name: Path) -> c_int = SYS_lremovexattr(path, name);
    /// `fremovexattr`.
    fn fremovexattr(fd: c_int, name: Path) -> c_int = SYS_fremovexattr(fd, name);
}

// What libc does more for than to pass it on: flags it emulates, structures it converts.
libc_calls! {
    /// `faccessat`.
    fn faccessat(dir: c_int, path: Path, mode: c_int, flags: c_int) -> c_int;
    /// `euidaccess`.
    fn euidaccess(path: Path, mode: c_int) -> c_int;
    /// `eaccess`.
    fn eaccess(path: Path, mode: c_int) -> c_int;
    /// `fchmodat`.
    fn fchmodat(dir: c_int, path: Path, mode: mode_t, flags: c_int) -> c_int;
    /// `lchmod`.
    fn lchmod(path: Path, mode: mode_t) -> c_int;
    /// `remove`.
    fn remove(path: Path) -> c_int;
    /// `utimensat`.
    fn utimensat(dir: c_int, path: Path, times: *const timespec, flags: c_int) -> c_int;
    /// `futimens`.
    fn futimens(fd: c_int, times: *const timespec) -> c_int;
    /// `utime`.
    fn utime(path: Path, times: *const libc::utimbuf) -> c_int;
    /// `utimes`.
    fn utimes(path: Path, times: *const timeval) -> c_int;
    /// `lutimes`.
    fn lutimes(path: Path, times: *const timeval) -> c_int;
    /// `futimes`.
    fn futimes(fd: c_int, times: *const timeval) -> c_int;
    /// `futimesat`.
    fn futimesat(dir: c_int, path: Path, times: *const timeval) -> c_int;
    /// `statvfs`.
    fn statvfs(path: Path, out: *mut libc::statvfs) -> c_int;
    /// `statvfs64`.
    fn statvfs64(path: Path, out: *mut libc::statvfs64) -> c_int;
    /// `fstatvfs`.
    fn fstatvfs(fd: c_int, out: *mut libc::statvfs) -> c_int;
    /// `fstatvfs64`.
    fn fstatvfs64(fd: c_int, out: *mut libc::statvfs64) -> c_int;
    /// `posix_fallocate`. Returns an error number.
    fn posix_fallocate(fd: c_int, offset: off_t, length: off_t) -> c_int;
    /// `posix_fallocate64`. Returns an error number.
    fn posix_fallocate64(fd: c_int, offset: off_t, length: off_t) -> c_int;
    /// `posix_fadvise`. Returns an error number.
    fn posix_fadvise(fd: c_int, offset: off_t, length: off_t, advice: c_int) -> c_int;
    /// `posix_fadvise64`. Returns an error number.
    fn posix_fadvise64(fd: c_int, offset: off_t, length: off_t, advice: c_int) -> c_int;
    /// `canonicalize_file_name`.
    fn canonicalize_file_name(path: Path) -> *mut c_char;
    /// `__realpath_chk`: what a fortified program calls for `realpath`.
    fn __realpath_chk(path: Path, resolved: *mut c_char, size: size_t) -> *mut c_char;
    /// `__readlink_chk`: what a fortified program calls for `readlink`.
    fn __readlink_chk(path: Path, buffer: *mut c_char, length: size_t, size: size_t) -> ssize_t;
    /// `__readlinkat_chk`: what a fortified program calls for `readlinkat`.
    fn __readlinkat_chk(dir: c_int, path: Path, buffer: *mut c_char, length: size_t, size: size_t) -> ssize_t;
}

// What programs built against glibc before 2.33 call in place of the `stat`s. `version`: of the
// structure; on this machine there has been only one, and glibc does no more than to check it.
libc_calls! {
    /// `__xstat`.
    fn __xstat(version: c_int, path: Path, out: *mut libc::stat) -> c_int;
    /// `__xstat64`.
    fn __xstat64(version: c_int, path: Path, out: *mut libc::stat64) -> c_int;
    /// `__lxstat`.
    fn __lxstat(version: c_int, path: Path, out: *mut libc::stat) -> c_int;
    /// `__lxstat64`.
    fn __lxstat64(version: c_int, path: Path, out: *mut libc::stat64) -> c_int;
    /// `__fxstat`.
    fn __fxstat(version: c_int, fd: c_int, out: *mut libc::stat) -> c_int;
    /// `__fxstat64`.
    fn __fxstat64(version: c_int, fd: c_int, out: *mut libc::stat64) -> c_int;
    /// `__fxstatat`.
    fn __fxstatat(version: c_int, dir: c_int, path: Path, out: *mut libc::stat, flags: c_int) -> c_int;
    /// `__fxstatat64`.
    fn __fxstatat64(version: c_int, dir: c_int, path: Path, out: *mut libc::stat64, flags: c_int) -> c_int;
}

/// `sync`.
#[unsafe(no_mangle)]
pub extern "C" fn sync() {
    // SAFETY: no arguments.
    unsafe { bounded_call(libc::SYS_sync, [0; 6]) };
}

/// `realpath`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realpath(path: Path, resolved: *mut c_char) -> *mut c_char {
    if resolved.is_null() {
        // The same, and there is one version of it only: `realpath`'s first could not allocate.
        // SAFETY: the caller's contract.
        return unsafe { canonicalize_file_name(path) };
    }
    // SAFETY: the caller's contract.
    offload::bounded(|| unsafe {
        real!(fn realpath(path: Path, resolved: *mut c_char) -> *mut c_char)
    })
}
