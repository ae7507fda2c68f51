//! Files through `std::fs`, file locks, FIFOs and name lookup: calls that the kernel cannot do
//! without blocking. They run on a bounded pool that must never deadlock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::ToSocketAddrs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use crate::common::sys::check;
use crate::common::{
    TempDir, block_then, child, crowd, fewer, many_files, most_carriers, on_virtual, pattern,
    virtual_crowd, watched,
};
use pirn::thread;

#[watched]
fn many_threads_write_and_read_their_files() {
    let folder = TempDir::new("files");
    crowd(|i| {
        let path = folder.join(&i.to_string());
        let data = pattern(1000 + i);
        fs::write(&path, &data).unwrap();
        assert_eq!(fs::read(&path).unwrap(), data);
        assert_eq!(fs::metadata(&path).unwrap().len(), data.len() as u64);
        let moved = path.with_extension("moved");
        fs::rename(&path, &moved).unwrap();
        assert!(!fs::exists(&path).unwrap());
        assert_eq!(fs::copy(&moved, &path).unwrap(), data.len() as u64);
        fs::remove_file(&moved).unwrap();
        assert_eq!(
            fs::read_to_string(&moved).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(fs::read(&path).unwrap(), data);
    });
}

#[watched]
fn folders_are_made_listed_and_removed() {
    let folder = TempDir::new("folders");
    virtual_crowd(|i| {
        let top = folder.join(&i.to_string());
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::write(top.join("a/file"), b"x").unwrap();
        symlink("file", top.join("a/link")).unwrap();
        let mut names: Vec<_> = fs::read_dir(top.join("a"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["b", "file", "link"]);
        assert_eq!(
            fs::read_link(top.join("a/link")).unwrap(),
            Path::new("file")
        );
        fs::set_permissions(top.join("a/file"), PermissionsExt::from_mode(0o600)).unwrap();
        let real = fs::canonicalize(top.join("a/link")).unwrap();
        assert!(real.ends_with("a/file"));
        fs::remove_dir_all(&top).unwrap();
        assert!(!top.exists());
    });
}

#[watched]
fn a_big_file_is_read_back_whole() {
    let folder = TempDir::new("big");
    let path = folder.join("file");
    let data = pattern(fewer(32 << 20));
    on_virtual(move || {
        let mut file = File::create_new(&path).unwrap();
        file.write_all(&data).unwrap();
        file.sync_all().unwrap();
        let mut file = File::open(&path).unwrap();
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert!(read == data, "damaged");
        file.seek(SeekFrom::Start(1000)).unwrap();
        let mut part = [0; 100];
        file.read_exact(&mut part).unwrap();
        assert_eq!(part, data[1000..1100]);
    });
}

#[watched]
fn positioned_reads_and_writes_share_one_file() {
    let folder = TempDir::new("positioned");
    let path = folder.join("file");
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).open(&path);
    let file = file.unwrap();
    crowd(|i| {
        let place = 100 * i as u64;
        file.write_all_at(&[i as u8; 100], place).unwrap();
        file.sync_data().unwrap();
        let mut read = [0; 100];
        file.read_exact_at(&mut read, place).unwrap();
        assert_eq!(read, [i as u8; 100]);
    });
    assert_eq!(
        file.metadata().unwrap().len(),
        100 * crate::common::crowd_size() as u64
    );
    file.set_len(10).unwrap();
    assert_eq!(fs::read(&path).unwrap(), [0; 10]);
}

#[watched]
fn appended_lines_stay_whole() {
    let folder = TempDir::new("append");
    let path = folder.join("log");
    crowd(|i| {
        let mut options = OpenOptions::new();
        let mut log = options.append(true).create(true).open(&path).unwrap();
        for _ in 0..5 {
            log.write_all(format!("<{i:06}>\n").as_bytes()).unwrap();
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 5 * crate::common::crowd_size());
    assert!(
        text.lines()
            .all(|line| line.len() == 8 && line.ends_with('>'))
    );
}

#[watched]
fn errors_are_those_of_the_kernel() {
    let folder = TempDir::new("errors");
    let path = folder.join("file");
    crowd(|_| {
        assert_eq!(File::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
        let error = fs::read_dir("/dev/null").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
        let error = File::open("/").unwrap().read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
    });
}

/// Many threads take a lock on the file in turn; the holder uses the pool while the rest wait.
fn locks_in_turn(lock: fn(&File), unlock: fn(&File)) {
    let folder = TempDir::new("lock");
    let path = folder.join("counter");
    fs::write(&path, "0").unwrap();
    let threads = many_files();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut options = OpenOptions::new();
                let file = options.read(true).write(true).open(&path).unwrap();
                lock(&file);
                let count: usize = fs::read_to_string(&path).unwrap().parse().unwrap();
                thread::yield_now();
                fs::write(&path, (count + 1).to_string()).unwrap();
                unlock(&file);
            });
        }
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), threads.to_string());
}

#[watched]
fn a_file_lock_excludes() {
    locks_in_turn(|file| file.lock().unwrap(), |file| file.unlock().unwrap());
}

#[watched]
fn a_file_lock_does_not_exhaust_a_small_pool() {
    child::isolated(&[("PIRN_MAX_BLOCKING_THREADS", "2")], || {
        locks_in_turn(|file| file.lock().unwrap(), |file| file.unlock().unwrap());
    });
}

/// `fcntl` with a lock of the open file description over the whole file.
fn record_lock(file: &File, command: i32, kind: i32) {
    // SAFETY: all-zero is a valid `flock`; the call reads and writes just that.
    unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = kind as _;
        check(libc::fcntl(file.as_raw_fd(), command, &mut lock)).unwrap();
    }
}

#[watched]
fn a_record_lock_excludes() {
    locks_in_turn(
        |file| record_lock(file, libc::F_OFD_SETLKW, libc::F_WRLCK),
        |file| record_lock(file, libc::F_OFD_SETLK, libc::F_UNLCK),
    );
}

#[watched]
fn a_shared_file_lock_is_shared() {
    let folder = TempDir::new("shared");
    let path = folder.join("file");
    fs::write(&path, "").unwrap();
    let count = 4 * most_carriers();
    let all_inside = std::sync::Barrier::new(count);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let file = File::open(&path).unwrap();
                file.lock_shared().unwrap();
                all_inside.wait();
                let other = File::open(&path).unwrap();
                assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
            });
        }
    });
}

fn make_fifo(path: &Path) {
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path is a C string.
    check(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }).unwrap();
}

/// Opens both ends of `count` FIFOs; all the readers are blocked before the first writer comes.
fn meet_in_fifos(count: usize) {
    let folder = TempDir::new("fifo");
    let paths: Vec<_> = (0..count).map(|i| folder.join(&i.to_string())).collect();
    paths.iter().for_each(|path| make_fifo(path));
    block_then(
        count,
        |i| {
            let text = fs::read_to_string(&paths[i]).unwrap();
            assert_eq!(text, i.to_string());
        },
        || {
            for (i, path) in paths.iter().enumerate() {
                fs::write(path, i.to_string()).unwrap();
            }
        },
    );
}

#[watched]
fn opening_a_fifo_waits_for_the_other_side() {
    meet_in_fifos(8 * most_carriers());
}

#[watched]
fn opening_fifos_does_not_exhaust_a_small_pool() {
    child::isolated(&[("PIRN_MAX_BLOCKING_THREADS", "2")], || {
        meet_in_fifos(20);
    });
}

#[watched]
fn opening_a_fifo_to_write_waits_for_a_reader() {
    let folder = TempDir::new("fifo-write");
    let path = folder.join("fifo");
    make_fifo(&path);
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NONBLOCK);
    let error = on_virtual({
        let path = path.clone();
        move || options.open(path).unwrap_err()
    });
    assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    block_then(
        1,
        |_| fs::write(&path, "through").unwrap(),
        || assert_eq!(fs::read_to_string(&path).unwrap(), "through"),
    );
}

#[watched]
fn names_are_looked_up() {
    virtual_crowd(|_| {
        let mut addresses = "localhost:80".to_socket_addrs().unwrap();
        assert!(addresses.any(|address| address.ip().is_loopback() && address.port() == 80));
    });
}
