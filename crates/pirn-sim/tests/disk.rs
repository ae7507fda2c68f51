//! Files on simulated disks, and crashes of their nodes.

mod common;

use common::{alike, passes};
use pirn_sim::net::{self, node};
use pirn_sim::{Outcome, Sim, disk};
use std::collections::HashSet;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Runs `before` on a node until it has ended, crashes the node, and returns what `after` finds in
/// its folder.
fn after_crash<R: Send + 'static>(
    before: impl Fn(&Path) + Send + Sync + 'static,
    after: impl Fn(&Path) -> R,
) -> R {
    let place = Arc::new(Mutex::new(None));
    let folder = Arc::clone(&place);
    let machine = node("machine", move || {
        let path = disk::folder();
        before(&path);
        *folder.lock().unwrap() = Some(path);
    });
    let path = loop {
        if let Some(path) = place.lock().unwrap().take() {
            break path;
        }
        thread::sleep(Duration::from_millis(1));
    };
    machine.crash();
    after(&path)
}

/// Returns what is found after a crash, in runs of these seeds.
fn found<R: Clone + Send + std::hash::Hash + Eq + 'static>(
    seeds: u64,
    before: fn(&Path),
    after: fn(&Path) -> R,
) -> HashSet<R> {
    let all = Arc::new(Mutex::new(HashSet::new()));
    for seed in 0..seeds {
        let all = Arc::clone(&all);
        passes(alike(seed, move || {
            let found = after_crash(before, after);
            all.lock().unwrap().insert(found);
        }));
    }
    let all = all.lock().unwrap();
    all.clone()
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn sync_folder(path: &Path) {
    File::open(path).unwrap().sync_all().unwrap();
}

/// Appends numbers to a log and acknowledges each, until its node crashes at some time.
fn log_with_crash(sync: bool) -> Vec<u64> {
    let acknowledged = Arc::new(AtomicU64::new(0));
    let so_far = Arc::clone(&acknowledged);
    let store = node("store", move || {
        let path = disk::folder().join("log");
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        if sync {
            sync_folder(path.parent().unwrap());
        }
        for number in 1_u64.. {
            log.write_all(format!("{number}\n").as_bytes()).unwrap();
            if sync {
                log.sync_data().unwrap();
            }
            so_far.store(number, SeqCst);
            thread::sleep(Duration::from_millis(1));
        }
    });
    thread::sleep(Duration::from_millis(10));
    while !pirn_sim::chance(0.2) {
        thread::sleep(Duration::from_micros(300));
    }
    store.crash();
    let last = acknowledged.load(SeqCst);
    let found = fs::read(store_folder().join("log")).unwrap_or_default();
    let found = String::from_utf8_lossy(&found);
    let found: HashSet<u64> = found.lines().filter_map(|it| it.parse().ok()).collect();
    (1..=last).filter(|it| !found.contains(it)).collect()
}

/// The folder of the first node, which is beside the test's own.
fn store_folder() -> PathBuf {
    disk::folder().parent().unwrap().join("1")
}

#[test]
fn what_is_acknowledged_before_it_is_synced_is_lost_in_some_seed() {
    let lost = |sync: bool| {
        (0..100).find(|&seed| {
            let report = alike(seed, move || assert!(log_with_crash(sync).is_empty()));
            report.outcome != Outcome::Passed
        })
    };
    assert!(lost(false).is_some());
    assert_eq!(lost(true), None);
}

/// Replaces a file, which is on the disk, by a new one.
fn replace(folder: &Path, sync: bool) {
    let (old, new) = (folder.join("it"), folder.join("new"));
    fs::write(&old, "old").unwrap();
    File::open(&old).unwrap().sync_all().unwrap();
    sync_folder(folder);
    fs::write(&new, "new").unwrap();
    if sync {
        File::open(&new).unwrap().sync_all().unwrap();
    }
    fs::rename(&new, &old).unwrap();
    if sync {
        sync_folder(folder);
    }
}

#[test]
fn a_rename_without_fsync_gives_an_empty_file_in_some_seed() {
    let of = |text: &str| Some(text.to_owned());
    let after = |folder: &Path| read(&folder.join("it"));
    let seen = found(100, |folder| replace(folder, false), after);
    let all = HashSet::from([of("old"), of("new"), of(""), of("\0\0\0")]);
    assert_eq!(seen, all);
    let seen = found(100, |folder| replace(folder, true), after);
    assert_eq!(seen, HashSet::from([of("new")]));
}

#[test]
fn a_rename_is_whole_or_not_at_all() {
    let before = |folder: &Path| {
        for name in ["a", "b"] {
            let mut file = File::create(folder.join(name)).unwrap();
            file.write_all(name.as_bytes()).unwrap();
            file.sync_all().unwrap();
        }
        fs::create_dir(folder.join("below")).unwrap();
        sync_folder(folder);
        fs::rename(folder.join("a"), folder.join("below/c")).unwrap();
        fs::rename(folder.join("b"), folder.join("below/c")).unwrap();
    };
    let after = |folder: &Path| ["a", "b", "below/c"].map(|name| read(&folder.join(name)));
    let of = |text: &str| Some(text.to_owned());
    let seen = found(60, before, after);
    let all = HashSet::from([
        [of("a"), of("b"), None],
        [None, of("b"), of("a")],
        [None, None, of("b")],
    ]);
    assert_eq!(seen, all);
}

#[test]
fn names_that_are_not_synced_come_and_go_one_by_one() {
    let before = |folder: &Path| {
        for name in ["old", "gone"] {
            fs::write(folder.join(name), name).unwrap();
            File::open(folder.join(name)).unwrap().sync_all().unwrap();
        }
        fs::create_dir(folder.join("empty")).unwrap();
        sync_folder(folder);
        fs::remove_file(folder.join("gone")).unwrap();
        fs::remove_dir(folder.join("empty")).unwrap();
        fs::create_dir_all(folder.join("x/y")).unwrap();
        fs::write(folder.join("x/y/z"), "z").unwrap();
        fs::hard_link(folder.join("old"), folder.join("link")).unwrap();
        std::os::unix::fs::symlink("old", folder.join("symlink")).unwrap();
    };
    let after = |folder: &Path| {
        let names = [
            "old", "gone", "empty", "x", "x/y", "x/y/z", "link", "symlink",
        ];
        let there = names.map(|name| folder.join(name).symlink_metadata().is_ok());
        assert!(there[0], "it was synced");
        for name in ["old", "gone", "link", "symlink"] {
            if let Some(text) = read(&folder.join(name)) {
                assert_eq!(text, if name == "gone" { "gone" } else { "old" });
            }
        }
        there
    };
    let seen = found(120, before, after);
    for place in 1..8 {
        for there in [true, false] {
            assert!(
                seen.iter().any(|it| it[place] == there),
                "{place} {there}: {seen:?}"
            );
        }
    }
    // In another order than they were done.
    assert!(seen.iter().any(|it| it[1] && it[7]));
}

#[test]
fn a_folder_is_synced_with_what_leads_to_it() {
    let before = |folder: &Path| {
        fs::create_dir_all(folder.join("x/y")).unwrap();
        let mut file = File::create(folder.join("x/y/z")).unwrap();
        file.write_all(b"z").unwrap();
        file.sync_all().unwrap();
        fs::write(folder.join("beside"), "").unwrap();
        sync_folder(&folder.join("x/y"));
    };
    let after = |folder: &Path| (read(&folder.join("x/y/z")), folder.join("beside").exists());
    let z = Some("z".to_owned());
    let seen = found(50, before, after);
    assert_eq!(seen, HashSet::from([(z.clone(), true), (z, false)]));
}

#[test]
fn writes_are_torn_by_sectors_and_a_sector_is_of_one_time() {
    let before = |folder: &Path| {
        let file = File::create(folder.join("it")).unwrap();
        file.write_all_at(&[b'0'; 2048], 0).unwrap();
        file.sync_all().unwrap();
        sync_folder(folder);
        file.write_all_at(&[b'1'; 2048], 0).unwrap();
        file.write_all_at(&[b'2'; 1000], 1000).unwrap();
    };
    // The first and last byte of each sector.
    let after = |folder: &Path| {
        let text = fs::read(folder.join("it")).unwrap();
        assert_eq!(text.len(), 2048);
        let ends = |sector: &[u8]| [sector[0], sector[511]].map(char::from);
        text.chunks(512).map(ends).collect::<Vec<_>>()
    };
    let seen = found(200, before, after);
    assert!(seen.len() > 10, "{seen:?}");
    for sectors in &seen {
        assert!([['0'; 2], ['1'; 2]].contains(&sectors[0]), "{sectors:?}");
        assert!(
            [['0'; 2], ['1'; 2], ['1', '2']].contains(&sectors[1]),
            "{sectors:?}"
        );
        assert!(
            [['0'; 2], ['1'; 2], ['2'; 2]].contains(&sectors[2]),
            "{sectors:?}"
        );
    }
    // An old one between new ones.
    assert!(
        seen.iter()
            .any(|it| it[0][0] != '0' && it[1][0] == '0' && it[2][0] != '0')
    );
}

#[test]
fn what_follows_a_cut_is_there_only_with_the_cut() {
    let before = |folder: &Path| {
        fs::write(folder.join("it"), [b'a'; 1500]).unwrap();
        File::open(folder.join("it")).unwrap().sync_all().unwrap();
        sync_folder(folder);
        fs::write(folder.join("it"), [b'b'; 700]).unwrap(); // Cuts it first.
    };
    let after = |folder: &Path| {
        let text = fs::read(folder.join("it")).unwrap();
        match text.contains(&b'a') {
            true => assert_eq!(text, [b'a'; 1500]),
            false => assert!(text.len() <= 700),
        }
        (text.len(), text.first().copied(), text.last().copied())
    };
    let seen = found(120, before, after);
    let new = (700, Some(b'b'), Some(b'b'));
    for it in [
        (1500, Some(b'a'), Some(b'a')),
        (0, None, None),
        new,
        (700, Some(0), Some(0)),
    ] {
        assert!(seen.contains(&it), "{it:?}: {seen:?}");
    }
}

#[test]
fn all_calls_that_write_are_seen() {
    let before = |folder: &Path| {
        use std::os::fd::AsRawFd;
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        let file = options.open(folder.join("it")).unwrap();
        file.write_all_at(&[b'.'; 4096], 0).unwrap();
        let source = File::create_new(folder.join("source")).unwrap();
        source.write_all_at(&[b'x'; 512], 0).unwrap();
        let source = File::open(folder.join("source")).unwrap();
        file.sync_all().unwrap();
        sync_folder(folder);
        let (fd, from) = (file.as_raw_fd(), source.as_raw_fd());
        let x = [b'x'; 512];
        let buffer = libc::iovec {
            iov_base: x.as_ptr().cast_mut().cast(),
            iov_len: 512,
        };
        let mut at = 2048;
        let at = &raw mut at;
        // SAFETY: descriptors, buffers and offsets that are there.
        unsafe {
            assert_eq!(libc::write(fd, x.as_ptr().cast(), 512), 512);
            assert_eq!(libc::writev(fd, &raw const buffer, 1), 512);
            assert_eq!(libc::pwritev(fd, &raw const buffer, 1, 1024), 512);
            assert_eq!(
                libc::pwritev2(fd, &raw const buffer, 1, 1536, libc::RWF_HIPRI),
                512
            );
            let mut begin = 0;
            assert_eq!(
                libc::copy_file_range(from, &raw mut begin, fd, at, 512, 0),
                512
            );
            libc::lseek(fd, 2560, libc::SEEK_SET);
            assert_eq!(libc::sendfile(fd, from, core::ptr::null_mut(), 512), 512);
            let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            assert_eq!(libc::fallocate(fd, hole, 3072, 512), 0);
            assert_eq!(libc::posix_fallocate(fd, 4096, 512), 0);
            let by_number = libc::syscall(libc::SYS_pwrite64, fd, x.as_ptr(), 512, 3584);
            assert_eq!(by_number, 512);
        }
    };
    let after = |folder: &Path| {
        let text = fs::read(folder.join("it")).unwrap();
        text.chunks(512)
            .map(|sector| sector[0] == b'.')
            .chain([text.len() == 4096])
            .collect::<Vec<_>>()
    };
    let seen = found(100, before, after);
    assert!(seen.contains(&vec![true; 9]), "{seen:?}");
    assert!(seen.contains(&vec![false; 10]), "{seen:?}");
    for place in 0..9 {
        let alone = |it: &Vec<bool>| it[place] && it.iter().any(|old| !old);
        assert!(seen.iter().any(alone), "{place}: {seen:?}");
    }
}

#[test]
fn o_sync_and_sync_keep_what_they_are_for() {
    let before = |folder: &Path| {
        fs::write(folder.join("all"), "all").unwrap();
        // SAFETY: no arguments.
        unsafe { libc::sync() };
        let mut it = OpenOptions::new();
        let it = it.write(true).create(true).custom_flags(libc::O_DSYNC);
        let mut it = it.open(folder.join("it")).unwrap();
        it.write_all(b"it").unwrap();
        sync_folder(folder);
    };
    let after = |folder: &Path| ["it", "all"].map(|name| read(&folder.join(name)));
    let all = ["it", "all"].map(|it| Some(it.to_owned()));
    assert_eq!(found(30, before, after), HashSet::from([all]));
}

#[test]
fn a_crash_is_of_one_node_and_a_disk_lasts_for_a_run() {
    // Another process may get the folder's name next.
    let name = format!("own-{}", std::process::id());
    for seed in 0..20 {
        let (path, file) = (Arc::new(Mutex::new(PathBuf::new())), name.clone());
        let place = Arc::clone(&path);
        passes(alike(seed, move || {
            let own = disk::folder();
            assert!(fs::read_dir(&own).unwrap().next().is_none());
            fs::write(own.join(&file), "own").unwrap();
            after_crash(
                |folder| {
                    // As programs lock what only one process may have.
                    let lock = File::create(folder.join("lock")).unwrap();
                    lock.try_lock().unwrap();
                    Box::leak(Box::new(lock));
                    sync_folder(folder);
                },
                |folder| File::open(folder.join("lock")).unwrap().try_lock().unwrap(),
            );
            assert_eq!(read(&own.join(&file)).unwrap(), "own");
            *place.lock().unwrap() = own;
        }));
        let own = path.lock().unwrap().clone();
        assert!(!own.join(&name).exists());
    }
}

#[test]
fn a_node_that_starts_again_finds_its_disk() {
    passes(alike(3, || {
        let starts = node("counter", || {
            let path = disk::folder().join("starts");
            let count: u32 = read(&path).map_or(0, |it| it.parse().unwrap());
            let mut file = File::create(path.with_extension("new")).unwrap();
            write!(file, "{}", count + 1).unwrap();
            file.sync_all().unwrap();
            fs::rename(path.with_extension("new"), &path).unwrap();
            sync_folder(path.parent().unwrap());
            thread::sleep(Duration::from_secs(10));
        });
        for _ in 0..3 {
            thread::sleep(Duration::from_secs(1));
            starts.crash();
            starts.restart();
        }
        thread::sleep(Duration::from_secs(1));
        assert_eq!(read(&store_folder().join("starts")).unwrap(), "4");
        net::latency(Duration::ZERO..Duration::from_millis(1)); // Both in one run.
    }));
}

#[test]
fn what_fsync_failed_to_write_is_lost_though_the_next_one_succeeds() {
    let before = |folder: &Path| {
        let file = loop {
            match File::create(folder.join("it")) {
                Ok(file) => break file,
                Err(error) => assert!(matches!(
                    error.raw_os_error(),
                    Some(libc::ENOSPC | libc::EIO)
                )),
            }
        };
        sync_folder(folder);
        file.write_all_at(b"it", 0).unwrap();
        disk::errors(1.0);
        let failed = file.sync_all().unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(libc::EIO));
        let refused: io::Result<_> = File::create(folder.join("other"));
        assert!(refused.is_err());
        disk::errors(0.0);
        assert_eq!(read(&folder.join("it")).unwrap(), "it");
        file.sync_all().unwrap();
    };
    let after = |folder: &Path| read(&folder.join("it"));
    assert_eq!(
        found(50, before, after),
        HashSet::from([Some("\0\0".into())])
    );
}

#[test]
fn what_is_not_seen_is_refused() {
    let report = alike(1, || {
        use std::os::fd::AsRawFd;
        let path = disk::folder().join("it");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = options.open(&path).unwrap();
        file.set_len(4096).unwrap();
        let direct = options
            .custom_flags(libc::O_DIRECT)
            .open(&path)
            .unwrap_err();
        assert_eq!(direct.raw_os_error(), Some(libc::EINVAL));
        let map = |protection, flags| {
            // SAFETY: a new mapping.
            let place = unsafe {
                libc::mmap(
                    core::ptr::null_mut(),
                    4096,
                    protection,
                    flags,
                    file.as_raw_fd(),
                    0,
                )
            };
            place != libc::MAP_FAILED
        };
        assert!(!map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED));
        assert!(map(libc::PROT_READ, libc::MAP_SHARED));
        assert!(map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE));
        let away = fs::rename(&path, std::env::temp_dir().join("pirn-sim-away")).unwrap_err();
        assert_eq!(away.raw_os_error(), Some(libc::EXDEV));
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: strings, and a stream.
        unsafe { libc::fclose(libc::fopen(path.as_ptr(), c"w".as_ptr())) };
    });
    let report = passes(report);
    let names: Vec<_> = report
        .refused
        .iter()
        .map(|it| it.split(' ').next().unwrap())
        .collect();
    assert_eq!(names, ["open", "mmap", "fopen"]);
}

#[test]
fn names_that_libc_makes_and_removes_are_seen() {
    let before = |folder: &Path| {
        File::create(folder.join("it")).unwrap();
        sync_folder(folder);
        let path = |name| CString::new(folder.join(name).to_str().unwrap()).unwrap();
        // SAFETY: strings, the second of which may be changed.
        unsafe {
            assert_eq!(libc::remove(path("it").as_ptr()), 0);
            assert_ne!(libc::mkstemp(path("other-XXXXXX").into_raw()), -1);
        }
    };
    let after = |folder: &Path| {
        let other = fs::read_dir(folder).unwrap().flatten();
        let mut other = other.filter(|it| it.file_name() != "it");
        (folder.join("it").exists(), other.next().is_some())
    };
    let seen = found(40, before, after);
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[test]
fn calls_on_files_are_points() {
    let fails =
        |test: fn()| (0..100).any(|seed| Sim::new().run(seed, test).outcome != Outcome::Passed);
    assert!(fails(|| {
        let path = disk::folder().join("it");
        File::create(&path).unwrap().write_all_at(&[0], 0).unwrap();
        let add = || {
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, 0).unwrap();
            file.write_all_at(&[byte[0] + 1], 0).unwrap();
        };
        thread::scope(|scope| drop([scope.spawn(add), scope.spawn(add)]));
        assert_eq!(fs::read(&path).unwrap(), [2]);
    }));
    assert!(fails(|| {
        let path = disk::folder().join("it");
        let make = || {
            if !path.exists() {
                fs::create_dir(&path).unwrap();
            }
        };
        thread::scope(|scope| drop([scope.spawn(make), scope.spawn(make)]));
    }));
}
