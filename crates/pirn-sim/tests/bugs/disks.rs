//! Programs that keep something on a disk.

use pirn_sim::net::node;
use pirn_sim::{chance, disk};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Broken: a log acknowledges records that are in the page cache only, and a crash loses them.
pub fn log(mended: bool) {
    let [acknowledged, recovered] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let (own, found) = (Arc::clone(&acknowledged), Arc::clone(&recovered));
    let store = node("store", move || {
        let folder = disk::folder();
        let path = folder.join("log");
        let before = fs::read(&path).unwrap_or_default();
        let before = String::from_utf8_lossy(&before);
        let whole = (1_u64..)
            .zip(before.lines())
            .take_while(|(number, line)| line.parse() == Ok(*number));
        let last = whole.count() as u64;
        found.store(last, SeqCst);
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        if mended {
            File::open(&folder).unwrap().sync_all().unwrap();
        }
        for number in last + 1.. {
            log.write_all(format!("{number}\n").as_bytes()).unwrap();
            if mended {
                log.sync_data().unwrap();
            }
            own.store(number, SeqCst);
            thread::sleep(Duration::from_millis(1));
        }
    });
    thread::sleep(Duration::from_millis(10));
    while !chance(0.2) {
        thread::sleep(Duration::from_micros(300));
    }
    store.crash();
    let last = acknowledged.load(SeqCst);
    store.restart();
    thread::sleep(Duration::from_micros(500));
    let found = recovered.load(SeqCst);
    assert!(found >= last, "{last} records acknowledged, {found} found");
}
