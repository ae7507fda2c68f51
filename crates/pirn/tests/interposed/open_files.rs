//! Opening files, and operations on open ones, under all names of the functions.

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::{fs, mem, ptr};

use libc::{DIR, FILE, c_char, c_int, c_void, dirent, dirent64, iovec, off_t, size_t, ssize_t};

use super::{checked, everywhere, nowhere};
use crate::common::{TempDir, sys, watched};

type Compare = unsafe extern "C" fn(*mut *const dirent64, *mut *const dirent64) -> c_int;
type Filter = unsafe extern "C" fn(*const dirent64) -> c_int;
type List = *mut *mut *mut dirent64;

unsafe extern "C" {
    fn __open_2(path: *const c_char, flags: c_int) -> c_int;
    fn __open64_2(path: *const c_char, flags: c_int) -> c_int;
    fn __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int;
    fn __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int;
    fn mkostemp64(template: *mut c_char, flags: c_int) -> c_int;
    fn mkstemp64(template: *mut c_char) -> c_int;
    fn mkstemps64(template: *mut c_char, suffix: c_int) -> c_int;
    fn mkostemps64(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int;
    fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE;
    fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE;
    fn tmpfile64() -> *mut FILE;
    fn readdir64_r(dir: *mut DIR, entry: *mut dirent64, result: *mut *mut dirent64) -> c_int;
    fn getdents64(fd: c_int, buffer: *mut c_void, size: size_t) -> ssize_t;
    pub(super) fn scandir(
        path: *const c_char,
        list: List,
        filter: Filter,
        compare: Compare,
    ) -> c_int;
    fn scandir64(path: *const c_char, list: List, filter: Filter, compare: Compare) -> c_int;
    fn scandirat(
        at: c_int,
        path: *const c_char,
        list: List,
        filter: Filter,
        compare: Compare,
    ) -> c_int;
    fn scandirat64(
        at: c_int,
        path: *const c_char,
        list: List,
        filter: Filter,
        compare: Compare,
    ) -> c_int;
    fn lockf64(fd: c_int, command: c_int, length: off_t) -> c_int;
    fn __pread64(fd: c_int, buffer: *mut c_void, length: size_t, offset: off_t) -> ssize_t;
    fn __pwrite64(fd: c_int, buffer: *const c_void, length: size_t, offset: off_t) -> ssize_t;
    fn __pread_chk(
        fd: c_int,
        buffer: *mut c_void,
        length: size_t,
        offset: off_t,
        room: size_t,
    ) -> ssize_t;
    fn __pread64_chk(
        fd: c_int,
        buffer: *mut c_void,
        length: size_t,
        offset: off_t,
        room: size_t,
    ) -> ssize_t;
}

fn path(folder: &TempDir, name: &str) -> CString {
    CString::new(folder.join(name).as_os_str().as_bytes()).unwrap()
}

fn own(fd: c_int) -> OwnedFd {
    sys::own(fd).unwrap()
}

#[watched]
fn opening_by_all_names() {
    everywhere(|| {
        let folder = TempDir::new("opening");
        let [new, here] = ["new", ""].map(|name| path(&folder, name));
        let (new, name) = (new.as_ptr(), c"new".as_ptr());
        let create = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        let read = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: paths, with a mode where the flags ask for one.
        unsafe {
            let dir = own(libc::open(here.as_ptr(), read | libc::O_DIRECTORY));
            let dir = dir.as_raw_fd();
            let creating: [&dyn Fn() -> c_int; 6] = [
                &|| libc::open(new, create, 0o600),
                &|| libc::open64(new, create, 0o600),
                &|| libc::openat(dir, name, create, 0o600),
                &|| libc::openat64(dir, name, create, 0o600),
                &|| libc::creat(new, 0o600),
                &|| libc::creat64(new, 0o600),
            ];
            for open in creating {
                drop(own(open()));
                let mode = fs::metadata(folder.join("new")).unwrap().permissions();
                assert_eq!(
                    std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
                    0o600
                );
                let opening: [&dyn Fn() -> c_int; 4] = [
                    &|| __open_2(new, read),
                    &|| __open64_2(new, read),
                    &|| __openat_2(dir, name, read),
                    &|| __openat64_2(dir, name, read),
                ];
                let _ = opening.map(|open| own(open()));
                assert_eq!(libc::unlink(new), 0);
                assert_eq!(checked(__open_2(new, read)), Err(libc::ENOENT));
            }
        }
    });
}

#[watched]
fn temporary_files() {
    everywhere(|| {
        let folder = TempDir::new("temporary");
        // SAFETY: templates that may be written to.
        unsafe {
            let from = |template: &str, make: &dyn Fn(*mut c_char) -> c_int| {
                let name = path(&folder, template).into_raw();
                drop(own(make(name)));
                let name = CString::from_raw(name);
                assert!(!name.to_bytes().ends_with(template.as_bytes()));
                assert!(fs::exists(name.to_str().unwrap()).unwrap());
            };
            from("XXXXXX", &|name| libc::mkstemp(name));
            from("XXXXXX", &|name| mkstemp64(name));
            from("XXXXXX", &|name| libc::mkostemp(name, libc::O_CLOEXEC));
            from("XXXXXX", &|name| mkostemp64(name, libc::O_CLOEXEC));
            from("XXXXXX.c", &|name| libc::mkstemps(name, 2));
            from("XXXXXX.c", &|name| mkstemps64(name, 2));
            from("XXXXXX.c", &|name| {
                libc::mkostemps(name, 2, libc::O_CLOEXEC)
            });
            from("XXXXXX.c", &|name| mkostemps64(name, 2, libc::O_CLOEXEC));
            let name = path(&folder, "XXXXXX").into_raw();
            assert_eq!(libc::mkdtemp(name), name);
            assert!(
                fs::metadata(CString::from_raw(name).to_str().unwrap())
                    .unwrap()
                    .is_dir()
            );
        }
        assert_eq!(fs::read_dir(folder.join("")).unwrap().count(), 9);
    });
}

#[watched]
fn streams() {
    everywhere(|| {
        let folder = TempDir::new("streams");
        let [one, two] = ["one", "two"].map(|name| path(&folder, name));
        // SAFETY: paths and modes; streams that are open.
        unsafe {
            type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE;
            type Reopen =
                unsafe extern "C" fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE;
            let variants: [(Open, Reopen); 2] =
                [(libc::fopen, libc::freopen), (fopen64, freopen64)];
            for (open, reopen) in variants {
                let stream = open(one.as_ptr(), c"w".as_ptr());
                assert!(libc::fputs(c"first".as_ptr(), stream) >= 0);
                let stream = reopen(two.as_ptr(), c"w".as_ptr(), stream);
                assert!(libc::fputs(c"second".as_ptr(), stream) >= 0);
                assert_eq!(libc::fclose(stream), 0);
                assert_eq!(fs::read(folder.join("one")).unwrap(), b"first");
                assert_eq!(fs::read(folder.join("two")).unwrap(), b"second");
                assert!(open(c"/proc/none".as_ptr(), c"r".as_ptr()).is_null());
            }
            for open in [libc::tmpfile, tmpfile64] {
                let stream = open();
                assert!(libc::fputs(c"text".as_ptr(), stream) >= 0);
                libc::rewind(stream);
                assert_eq!(libc::fgetc(stream), c_int::from(b't'));
                assert_eq!(libc::fclose(stream), 0);
            }
            let command = libc::popen(c"exit 3".as_ptr(), c"r".as_ptr());
            assert_eq!(libc::WEXITSTATUS(libc::pclose(command)), 3);
        }
    });
}

/// Returns the name of an entry.
///
/// # Safety
/// It points to an entry.
unsafe fn name(entry: *const dirent64) -> String {
    // SAFETY: the caller's contract.
    unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) }
        .to_str()
        .unwrap()
        .to_owned()
}

#[watched]
fn directories() {
    everywhere(|| {
        let folder = TempDir::new("directories");
        for name in ["a", "b", "c"] {
            fs::write(folder.join(name), b"").unwrap();
        }
        let here = path(&folder, "");
        // SAFETY: paths, streams that are open, structures with room for an entry.
        unsafe {
            let dir = libc::opendir(here.as_ptr());
            let all = |next: &dyn Fn() -> *const dirent64| {
                let mut names = Vec::new();
                while let entry = next()
                    && !entry.is_null()
                {
                    names.push(name(entry));
                }
                names.sort();
                assert_eq!(names, [".", "..", "a", "b", "c"]);
                libc::rewinddir(dir);
            };
            all(&|| libc::readdir(dir).cast());
            all(&|| libc::readdir64(dir));
            let entry: mem::MaybeUninit<dirent64> = mem::MaybeUninit::zeroed();
            all(&|| {
                let mut result = ptr::null_mut();
                assert_eq!(readdir64_r(dir, entry.as_ptr().cast_mut(), &mut result), 0);
                result
            });
            all(&|| {
                let mut result: *mut dirent = ptr::null_mut();
                let entry = entry.as_ptr().cast_mut().cast();
                assert_eq!(libc::readdir_r(dir, entry, &mut result), 0);
                result.cast()
            });
            libc::readdir64(dir);
            let place = libc::telldir(dir);
            let second = name(libc::readdir64(dir));
            libc::seekdir(dir, place);
            assert_eq!(name(libc::readdir64(dir)), second);
            let fd = libc::dup(libc::dirfd(dir));
            assert_eq!(libc::closedir(dir), 0);
            let mut buffer = [0u64; 128];
            assert_eq!(libc::lseek(fd, 0, libc::SEEK_SET), 0);
            let size = size_of_val(&buffer);
            assert!(getdents64(fd, buffer.as_mut_ptr().cast(), size) > 0);
            let dir = libc::fdopendir(fd);
            assert_eq!(libc::dirfd(dir), fd);
            assert_eq!(libc::closedir(dir), 0);
            assert!(libc::opendir(c"/proc/none".as_ptr()).is_null());
        }
    });
}

#[watched]
fn directories_as_arrays() {
    /// Leaves out names that begin with a dot.
    unsafe extern "C" fn visible(entry: *const dirent64) -> c_int {
        // SAFETY: an entry, from the caller.
        (!unsafe { name(entry) }.starts_with('.')).into()
    }
    unsafe extern "C" fn compare(a: *mut *const dirent64, b: *mut *const dirent64) -> c_int {
        // SAFETY: two entries, from the caller.
        unsafe { name(*b).cmp(&name(*a)) as c_int }
    }
    everywhere(|| {
        let folder = TempDir::new("directories");
        for name in ["a", "b", "c"] {
            fs::write(folder.join(name), b"").unwrap();
        }
        let here = path(&folder, "");
        let here = here.as_ptr();
        // SAFETY: a path, functions as they are asked for, room for the list, which is the
        // caller's.
        unsafe {
            let scans: [&dyn Fn(List) -> c_int; 4] = [
                &|list| scandir(here, list, visible, compare),
                &|list| scandir64(here, list, visible, compare),
                &|list| scandirat(libc::AT_FDCWD, here, list, visible, compare),
                &|list| scandirat64(libc::AT_FDCWD, here, list, visible, compare),
            ];
            for scan in scans {
                let mut list = ptr::null_mut();
                assert_eq!(scan(&mut list), 3);
                let entries = std::slice::from_raw_parts(list, 3);
                let names = entries.iter().map(|&entry| name(entry)).collect::<Vec<_>>();
                assert_eq!(names, ["c", "b", "a"]);
                entries.iter().for_each(|&entry| libc::free(entry.cast()));
                libc::free(list.cast());
            }
        }
    });
}

#[watched]
fn reading_and_writing_at_offsets() {
    everywhere(|| {
        let file = fs::File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(TempDir::new("offsets").join("file"))
            .unwrap();
        let fd = file.as_raw_fd();
        // SAFETY: buffers of the lengths given.
        unsafe {
            let mut place = 0;
            let mut write = |write: &dyn Fn(*const c_void, off_t) -> ssize_t| {
                assert_eq!(write(b"ab".as_ptr().cast(), place), 2);
                place += 2;
            };
            let vector = |buffer: *const c_void| iovec {
                iov_base: buffer.cast_mut(),
                iov_len: 2,
            };
            write(&|buffer, at| libc::pwrite(fd, buffer, 2, at));
            write(&|buffer, at| libc::pwrite64(fd, buffer, 2, at));
            write(&|buffer, at| __pwrite64(fd, buffer, 2, at));
            write(&|buffer, at| libc::pwritev(fd, &vector(buffer), 1, at));
            write(&|buffer, at| libc::pwritev64(fd, &vector(buffer), 1, at));
            assert_eq!(libc::lseek(fd, 0, libc::SEEK_END), 10);
            write(&|buffer, _| libc::writev(fd, &vector(buffer), 1));
            assert_eq!(file.metadata().unwrap().len(), 12);
            let mut place = 0;
            let mut read = |read: &dyn Fn(*mut c_void, off_t) -> ssize_t| {
                let mut text = [0u8; 2];
                assert_eq!(read(text.as_mut_ptr().cast(), place), 2);
                assert_eq!(&text, b"ab");
                place += 2;
            };
            read(&|buffer, at| libc::pread(fd, buffer, 2, at));
            read(&|buffer, at| libc::pread64(fd, buffer, 2, at));
            read(&|buffer, at| __pread64(fd, buffer, 2, at));
            read(&|buffer, at| __pread_chk(fd, buffer, 2, at, 2));
            read(&|buffer, at| libc::preadv64(fd, &vector(buffer), 1, at));
            assert_eq!(libc::lseek(fd, 10, libc::SEEK_SET), 10);
            read(&|buffer, _| libc::readv(fd, &vector(buffer), 1));
            assert_eq!(__pread64_chk(fd, [0u8; 2].as_mut_ptr().cast(), 2, 12, 2), 0);
            let bad = libc::pread(fd, nowhere(), 2, 0);
            assert_eq!(checked(bad as i64), Err(libc::EFAULT));
            let bad = libc::pwrite(fd, b"ab".as_ptr().cast(), 2, -1);
            assert_eq!(checked(bad as i64), Err(libc::EINVAL));
        }
    });
}

#[watched]
fn sizes_and_safety_of_files() {
    everywhere(|| {
        let folder = TempDir::new("sizes");
        let file = fs::File::create_new(folder.join("file")).unwrap();
        let (fd, name) = (file.as_raw_fd(), path(&folder, "file"));
        // SAFETY: a path; a mapping of a page, which is unmapped at the end.
        unsafe {
            let is = |result: c_int, size: u64| {
                assert_eq!(checked(result), Ok(0));
                assert_eq!(file.metadata().unwrap().len(), size);
            };
            is(libc::truncate(name.as_ptr(), 5), 5);
            is(libc::truncate64(name.as_ptr(), 10), 10);
            is(libc::ftruncate(fd, 20), 20);
            is(libc::ftruncate64(fd, 30), 30);
            is(libc::fallocate(fd, 0, 0, 40), 40);
            is(libc::fallocate64(fd, 0, 0, 50), 50);
            is(libc::posix_fallocate(fd, 0, 60), 60);
            is(libc::posix_fallocate64(fd, 0, 70), 70);
            is(libc::posix_fadvise64(fd, 0, 0, libc::POSIX_FADV_NORMAL), 70);
            assert_eq!(libc::posix_fallocate(-1, 0, 1), libc::EBADF); // the error, as the result
            libc::sync();
            is(libc::fsync(fd), 70);
            is(libc::fdatasync(fd), 70);
            is(libc::syncfs(fd), 70);
            is(
                libc::sync_file_range(fd, 0, 0, libc::SYNC_FILE_RANGE_WRITE),
                70,
            );
            let protection = libc::PROT_READ;
            let own = fs::File::open(folder.join("file")).unwrap();
            let (none, own) = (ptr::null_mut(), own.as_raw_fd());
            assert_eq!(libc::readahead(own, 0, 70), 0);
            let map = libc::mmap(none, 4096, protection, libc::MAP_SHARED, own, 0);
            is(libc::msync(map, 4096, libc::MS_SYNC), 70);
            assert_eq!(libc::munmap(map, 4096), 0);
            assert_eq!(checked(libc::fsync(-1)), Err(libc::EBADF));
        }
    });
}

#[watched]
fn moving_bytes() {
    everywhere(|| {
        let folder = TempDir::new("moving");
        fs::write(folder.join("from"), b"0123456789").unwrap();
        let from = fs::File::open(folder.join("from")).unwrap();
        let to = fs::File::create_new(folder.join("to")).unwrap();
        let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
        let (mut reader, writer) = io::pipe().unwrap();
        let (mut other_reader, other_writer) = io::pipe().unwrap();
        // SAFETY: places of our own, and buffers of the lengths given.
        unsafe {
            let (mut at, mut end) = (2, 0);
            let copied = libc::copy_file_range(from, &mut at, to, &mut end, 4, 0);
            assert_eq!((copied, at, end), (4, 6, 4));
            assert_eq!(libc::lseek(to, 4, libc::SEEK_SET), 4);
            assert_eq!(libc::sendfile(to, from, &mut at, 2), 2);
            assert_eq!(libc::sendfile64(to, from, &mut at, 9), 2);
            assert_eq!(fs::read(folder.join("to")).unwrap(), b"23456789");
            at = 0;
            assert_eq!(libc::sendfile64(writer.as_raw_fd(), from, &mut at, 3), 3);
            let vector = iovec {
                iov_base: b"abc".as_ptr().cast_mut().cast(),
                iov_len: 3,
            };
            assert_eq!(libc::vmsplice(writer.as_raw_fd(), &vector, 1, 0), 3);
            let (out, into) = (reader.as_raw_fd(), other_writer.as_raw_fd());
            assert_eq!(libc::tee(out, into, 6, 0), 6);
            at = 0;
            let none = ptr::null_mut();
            assert_eq!(libc::splice(from, &mut at, into, none, 2, 0), 2);
        }
        for reader in [&mut reader, &mut other_reader] {
            let mut text = [0; 6];
            reader.read_exact(&mut text).unwrap();
            assert_eq!(&text, b"012abc");
        }
        let mut text = [0; 2];
        other_reader.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"01");
    });
}

#[watched]
fn locking_by_lockf() {
    everywhere(|| {
        let folder = TempDir::new("lockf");
        let file = fs::File::create_new(folder.join("file")).unwrap();
        // SAFETY: no pointers.
        unsafe {
            for lockf in [libc::lockf, lockf64] {
                assert_eq!(checked(lockf(file.as_raw_fd(), libc::F_LOCK, 0)), Ok(0));
                assert_eq!(checked(lockf(file.as_raw_fd(), libc::F_ULOCK, 0)), Ok(0));
                assert_eq!(checked(lockf(-1, libc::F_LOCK, 0)), Err(libc::EBADF));
            }
        }
    });
}
