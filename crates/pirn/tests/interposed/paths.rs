//! Files by name: the C library's functions beside those that `std::fs` calls.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::{fs, mem, ptr};

use libc::{c_char, c_int, dev_t, mode_t, size_t, ssize_t};

use super::{checked, everywhere, nowhere};
use crate::common::processor::STAT_VERSIONS;
use crate::common::{TempDir, child, on_virtual, skip, watched};

unsafe extern "C" {
    fn euidaccess(path: *const c_char, mode: c_int) -> c_int;
    fn eaccess(path: *const c_char, mode: c_int) -> c_int;
    fn lchmod(path: *const c_char, mode: mode_t) -> c_int;
    fn canonicalize_file_name(path: *const c_char) -> *mut c_char;
    fn futimesat(dir: c_int, path: *const c_char, times: *const libc::timeval) -> c_int;
    fn __realpath_chk(path: *const c_char, resolved: *mut c_char, size: size_t) -> *mut c_char;
    fn __readlink_chk(
        path: *const c_char,
        buffer: *mut c_char,
        length: size_t,
        size: size_t,
    ) -> ssize_t;
    fn __readlinkat_chk(
        dir: c_int,
        path: *const c_char,
        buffer: *mut c_char,
        length: size_t,
        size: size_t,
    ) -> ssize_t;
    fn __xmknod(version: c_int, path: *const c_char, mode: mode_t, device: *mut dev_t) -> c_int;
    fn __xmknodat(
        version: c_int,
        dir: c_int,
        path: *const c_char,
        mode: mode_t,
        device: *mut dev_t,
    ) -> c_int;
    fn __xstat(version: c_int, path: *const c_char, out: *mut libc::stat) -> c_int;
    fn __xstat64(version: c_int, path: *const c_char, out: *mut libc::stat) -> c_int;
    fn __lxstat(version: c_int, path: *const c_char, out: *mut libc::stat) -> c_int;
    fn __lxstat64(version: c_int, path: *const c_char, out: *mut libc::stat) -> c_int;
    fn __fxstat(version: c_int, fd: c_int, out: *mut libc::stat) -> c_int;
    fn __fxstat64(version: c_int, fd: c_int, out: *mut libc::stat) -> c_int;
    fn __fxstatat(
        version: c_int,
        dir: c_int,
        path: *const c_char,
        out: *mut libc::stat,
        flags: c_int,
    ) -> c_int;
    fn __fxstatat64(
        version: c_int,
        dir: c_int,
        path: *const c_char,
        out: *mut libc::stat,
        flags: c_int,
    ) -> c_int;
}

/// A folder with a descriptor of it, for the functions that take one.
struct Folder {
    folder: TempDir,
    fd: c_int,
}

impl Folder {
    fn new() -> Folder {
        let folder = TempDir::new("paths");
        let path = CString::new(folder.join("").as_os_str().as_bytes()).unwrap();
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: a path.
        let fd = checked(unsafe { libc::open(path.as_ptr(), flags) }).unwrap();
        Folder { folder, fd }
    }

    fn path(&self, name: &str) -> CString {
        CString::new(self.folder.join(name).as_os_str().as_bytes()).unwrap()
    }

    fn file(&self, name: &str) -> CString {
        fs::write(self.folder.join(name), b"0123456789").unwrap();
        self.path(name)
    }

    /// Returns the names in it, in order.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join("")).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::close(self.fd) };
    }
}

/// Asserts that each of some calls succeeds.
macro_rules! succeed {
    ($($call:expr),* $(,)?) => {
        $( assert_eq!(checked($call), Ok(0), stringify!($call)); )*
    };
}

/// Calls `test` everywhere with a folder, the path of the file in it, and that file opened, which
/// it closes.
fn with_a_file(test: fn(c_int, *const c_char, c_int)) {
    everywhere(move || {
        let folder = Folder::new();
        let file = folder.file("file");
        // SAFETY: a path.
        let fd = unsafe { libc::open(file.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        test(folder.fd, file.as_ptr(), checked(fd).unwrap());
    });
}

#[watched]
fn making_and_removing_names() {
    everywhere(|| {
        let folder = Folder::new();
        let (dir, path) = (folder.fd, |name| folder.path(name));
        // SAFETY: paths, and numbers that the kernel checks.
        unsafe {
            let mut none: dev_t = 0;
            succeed!(
                libc::mkdir(path("a").as_ptr(), 0o700),
                libc::mkdirat(dir, c"b".as_ptr(), 0o700),
                libc::mkfifoat(dir, c"c".as_ptr(), 0o600),
                libc::mknod(path("d").as_ptr(), libc::S_IFREG | 0o600, 0),
                libc::mknodat(dir, c"e".as_ptr(), libc::S_IFREG | 0o600, 0),
                __xmknod(0, path("f").as_ptr(), libc::S_IFREG | 0o600, &mut none),
                __xmknodat(0, dir, c"g".as_ptr(), libc::S_IFREG | 0o600, &mut none),
                libc::symlinkat(c"d".as_ptr(), dir, c"h".as_ptr()),
                libc::linkat(dir, c"d".as_ptr(), dir, c"i".as_ptr(), 0),
                libc::renameat(dir, c"i".as_ptr(), dir, c"j".as_ptr()),
                libc::symlink(c"d".as_ptr(), path("k").as_ptr()),
                libc::link(path("d").as_ptr(), path("l").as_ptr()),
                libc::rename(path("l").as_ptr(), path("k").as_ptr()),
                libc::unlink(path("k").as_ptr()),
            );
            const KEEP: u32 = libc::RENAME_NOREPLACE;
            let kept = libc::renameat2(dir, c"j".as_ptr(), dir, c"d".as_ptr(), KEEP);
            assert_eq!(checked(kept), Err(libc::EEXIST));
            assert_eq!(
                folder.names(),
                ["a", "b", "c", "d", "e", "f", "g", "h", "j"]
            );
            succeed!(
                libc::rmdir(path("a").as_ptr()),
                libc::unlinkat(dir, c"b".as_ptr(), libc::AT_REMOVEDIR),
                libc::unlink(path("c").as_ptr()),
                libc::remove(path("d").as_ptr()),
            );
            assert_eq!(folder.names(), ["e", "f", "g", "h", "j"]);
            assert_eq!(checked(libc::unlink(path("x").as_ptr())), Err(libc::ENOENT));
            assert_eq!(checked(libc::mkdir(nowhere(), 0o700)), Err(libc::EFAULT));
        }
    });
}

#[watched]
fn asking_for_permission() {
    everywhere(|| {
        let folder = Folder::new();
        let (dir, file) = (folder.fd, folder.file("file"));
        let (here, not_here) = (file.as_ptr(), folder.path("x"));
        let not_here = not_here.as_ptr();
        // SAFETY: paths.
        unsafe {
            for access in [libc::access, euidaccess, eaccess] {
                assert_eq!(checked(access(here, libc::R_OK)), Ok(0));
                assert_eq!(checked(access(not_here, libc::R_OK)), Err(libc::ENOENT));
            }
            succeed!(libc::faccessat(
                dir,
                c"file".as_ptr(),
                libc::R_OK,
                libc::AT_EACCESS
            ));
        }
    });
}

#[watched]
fn links_and_real_paths() {
    everywhere(|| {
        let folder = Folder::new();
        let (dir, file) = (folder.fd, folder.file("file"));
        std::os::unix::fs::symlink("file", folder.folder.join("link")).unwrap();
        let link = folder.path("link");
        let (link, name) = (link.as_ptr(), c"link".as_ptr());
        let real = fs::canonicalize(folder.folder.join("file")).unwrap();
        // SAFETY: paths, and buffers of the lengths given.
        unsafe {
            let mut text = [0u8; libc::PATH_MAX as usize];
            let size = text.len();
            let buffer = text.as_mut_ptr().cast::<c_char>();
            for count in [
                libc::readlink(link, buffer, size),
                libc::readlinkat(dir, name, buffer, size),
                __readlink_chk(link, buffer, size, size),
                __readlinkat_chk(dir, name, buffer, size, size),
            ] {
                assert_eq!(count, 4);
                assert_eq!(&text[..4], b"file");
            }
            for resolved in [
                libc::realpath(link, buffer),
                __realpath_chk(link, buffer, size),
                canonicalize_file_name(link),
                libc::realpath(link, ptr::null_mut()),
            ] {
                let path = CStr::from_ptr(resolved);
                assert_eq!(path.to_bytes(), real.as_os_str().as_bytes());
                if resolved != buffer {
                    libc::free(resolved.cast());
                }
            }
        }
        drop(file);
    });
}

#[watched]
fn the_folder_a_process_is_in() {
    child::isolated(&[], || {
        let folder = Folder::new();
        let dir = folder.fd;
        on_virtual(move || {
            // SAFETY: a path.
            unsafe {
                succeed!(libc::chdir(c"/proc".as_ptr()));
                assert_eq!(std::env::current_dir().unwrap().as_os_str(), "/proc");
                succeed!(libc::fchdir(dir));
                assert_ne!(std::env::current_dir().unwrap().as_os_str(), "/proc");
            }
        });
    });
}

#[watched]
fn attributes() {
    with_a_file(|dir, path, fd| {
        let name = c"file".as_ptr();
        // SAFETY: paths, structures with room for the answer, a descriptor of our own.
        unsafe {
            let mode = || {
                let mut found: libc::stat = mem::zeroed();
                succeed!(libc::stat(path, &mut found));
                found.st_mode & 0o777
            };
            succeed!(libc::chmod(path, 0o600));
            assert_eq!(mode(), 0o600);
            succeed!(libc::fchmod(fd, 0o640));
            assert_eq!(mode(), 0o640);
            succeed!(libc::fchmodat(dir, name, 0o644, 0));
            assert_eq!(mode(), 0o644);
            succeed!(lchmod(path, 0o604));
            assert_eq!(mode(), 0o604);
            const SAME: u32 = u32::MAX;
            succeed!(
                libc::chown(path, SAME, SAME),
                libc::lchown(path, SAME, SAME),
                libc::fchown(fd, SAME, SAME),
                libc::fchownat(dir, name, SAME, SAME, 0),
                libc::close(fd),
            );
        }
    });
}

#[watched]
fn looking_at_files_by_all_names() {
    with_a_file(|dir, path, fd| {
        let name = c"file".as_ptr();
        // SAFETY: paths, structures with room for the answer, a descriptor of our own. (`stat` and
        // `stat64` are one structure on this machine.)
        unsafe {
            let of = |look: &dyn Fn(*mut libc::stat) -> c_int| {
                let mut found: libc::stat = mem::zeroed();
                assert_eq!(checked(look(&mut found)), Ok(0));
                assert_eq!(found.st_size, 10);
            };
            of(&|out| libc::stat(path, out));
            of(&|out| libc::stat64(path, out.cast()));
            of(&|out| libc::lstat(path, out));
            of(&|out| libc::lstat64(path, out.cast()));
            of(&|out| libc::fstat(fd, out));
            of(&|out| libc::fstat64(fd, out.cast()));
            of(&|out| libc::fstatat(dir, name, out, 0));
            of(&|out| libc::fstatat64(dir, name, out.cast(), 0));
            for &version in STAT_VERSIONS {
                of(&|out| __xstat(version, path, out));
                of(&|out| __xstat64(version, path, out));
                of(&|out| __lxstat(version, path, out));
                of(&|out| __lxstat64(version, path, out));
                of(&|out| __fxstat(version, fd, out));
                of(&|out| __fxstat64(version, fd, out));
                of(&|out| __fxstatat(version, dir, name, out, 0));
                of(&|out| __fxstatat64(version, dir, name, out, 0));
            }
            let mut found: libc::statx = mem::zeroed();
            succeed!(libc::statx(dir, name, 0, libc::STATX_SIZE, &mut found));
            assert_eq!(found.stx_size, 10);
            let mut system: libc::statfs = mem::zeroed();
            succeed!(
                libc::statfs(path, &mut system),
                libc::statfs64(path, (&raw mut system).cast()),
                libc::fstatfs(fd, &mut system),
                libc::fstatfs64(fd, (&raw mut system).cast()),
            );
            let mut system: libc::statvfs = mem::zeroed();
            succeed!(
                libc::statvfs(path, &mut system),
                libc::statvfs64(path, (&raw mut system).cast()),
                libc::fstatvfs(fd, &mut system),
                libc::fstatvfs64(fd, (&raw mut system).cast()),
                libc::close(fd),
            );
            assert!(system.f_bsize > 0);
            assert_eq!(checked(libc::stat(path, nowhere())), Err(libc::EFAULT));
            assert_eq!(checked(libc::fstat(-1, nowhere())), Err(libc::EBADF));
        }
    });
}

#[watched]
fn times() {
    with_a_file(|dir, path, fd| {
        let name = c"file".as_ptr();
        // SAFETY: paths, two times each, a descriptor of our own.
        unsafe {
            let seconds = |tv_sec| libc::timeval { tv_sec, tv_usec: 0 };
            let is = |call: c_int, time: i64| {
                assert_eq!(checked(call), Ok(0));
                let mut found: libc::stat = mem::zeroed();
                succeed!(libc::stat(path, &mut found));
                assert_eq!(found.st_mtime, time);
            };
            let precise = |tv_sec| [libc::timespec { tv_sec, tv_nsec: 0 }; 2];
            is(libc::utimensat(dir, name, precise(1).as_ptr(), 0), 1);
            is(libc::futimens(fd, precise(2).as_ptr()), 2);
            let (actime, modtime) = (3, 3);
            is(libc::utime(path, &libc::utimbuf { actime, modtime }), 3);
            is(libc::utimes(path, [seconds(4); 2].as_ptr()), 4);
            is(libc::lutimes(path, [seconds(5); 2].as_ptr()), 5);
            is(libc::futimes(fd, [seconds(6); 2].as_ptr()), 6);
            is(futimesat(dir, name, [seconds(7); 2].as_ptr()), 7);
            succeed!(libc::close(fd));
        }
    });
}

#[watched]
fn extended_attributes() {
    everywhere(|| {
        let folder = Folder::new();
        let file = folder.file("file");
        let (path, name) = (file.as_ptr(), c"user.pirn".as_ptr());
        // SAFETY: paths, names, buffers of the lengths given, a descriptor of our own.
        unsafe {
            let fd = checked(libc::open(path, libc::O_RDWR | libc::O_CLOEXEC)).unwrap();
            let value = b"value".as_ptr().cast();
            if checked(libc::setxattr(path, name, value, 5, 0)) == Err(libc::EOPNOTSUPP) {
                succeed!(libc::close(fd));
                return skip("no extended attributes on this file system");
            }
            succeed!(
                libc::lsetxattr(path, name, value, 5, libc::XATTR_REPLACE),
                libc::fsetxattr(fd, name, value, 5, libc::XATTR_REPLACE),
            );
            let mut text = [0u8; 64];
            let buffer = text.as_mut_ptr();
            for length in [
                libc::getxattr(path, name, buffer.cast(), 64),
                libc::lgetxattr(path, name, buffer.cast(), 64),
                libc::fgetxattr(fd, name, buffer.cast(), 64),
            ] {
                assert_eq!((length, &text[..5]), (5, b"value".as_slice()));
            }
            for length in [
                libc::listxattr(path, buffer.cast(), 64),
                libc::llistxattr(path, buffer.cast(), 64),
                libc::flistxattr(fd, buffer.cast(), 64),
            ] {
                assert!(
                    text[..length as usize]
                        .windows(10)
                        .any(|w| w == b"user.pirn\0")
                );
            }
            let remove: [&dyn Fn() -> c_int; 3] = [
                &|| libc::removexattr(path, name),
                &|| libc::lremovexattr(path, name),
                &|| libc::fremovexattr(fd, name),
            ];
            for remove in remove {
                assert_eq!(checked(remove()), Ok(0));
                assert_eq!(checked(remove()), Err(libc::ENODATA));
                succeed!(libc::setxattr(path, name, value, 5, 0));
            }
            succeed!(libc::close(fd));
        }
    });
}
