//! The table is read as a reader outside does it: by names, offsets and addresses only.

use crate::thread;
use core::ffi::c_void;
use pirn_observe::debug_table::{COUNT, PIRN_DEBUG, VERSION};
use std::collections::HashMap;

/// The table's names with their values.
struct Names(HashMap<String, usize>);

impl Names {
    /// Reads the table by its documented layout.
    fn read() -> Names {
        let table = &raw const PIRN_DEBUG as usize;
        let word = |at: usize| read(table + at);
        assert_eq!(word(0), usize::from_le_bytes(*b"PIRNDBG\0"));
        assert_eq!(word(8) & 0xffff_ffff, VERSION as usize);
        let stride = word(8) >> 32;
        let names = (0..word(16)).map(|index| {
            let entry = 24 + index * stride;
            let name: Vec<u8> = (0..3)
                .flat_map(|i| word(entry + 8 * i).to_le_bytes())
                .collect();
            let name = String::from_utf8(name).unwrap();
            (name.trim_end_matches('\0').to_owned(), word(entry + 24))
        });
        Names(names.collect())
    }

    fn get(&self, name: &str) -> usize {
        *self
            .0
            .get(name)
            .unwrap_or_else(|| panic!("{name} is missing"))
    }

    /// Returns the records of all threads that have a stack, each with the end of its slot.
    fn threads(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for number in 0..read(self.get("regions.count")) {
            let region = read(self.get("regions") + 8 * number);
            let table = read(self.get("threads") + 8 * number);
            if table == 0 {
                continue;
            }
            let [base, stride, slots] = ["base", "stride", "capacity"]
                .map(|field| read(region + self.get(&format!("region.{field}"))));
            for index in 0..slots {
                let record = read(table + 8 * index) & !self.get("threads.flags");
                if record != 0 {
                    found.push((record, base + (index + 1) * stride));
                }
            }
        }
        found
    }
}

/// Reads a word of this process, as the kernel does it for others: an error in place of a fault.
fn read(address: usize) -> usize {
    let mut word = 0usize;
    let local = libc::iovec {
        iov_base: (&raw mut word).cast::<c_void>(),
        iov_len: 8,
    };
    let remote = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: 8,
    };
    // SAFETY: writes to the word; the kernel checks the other address.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    assert_eq!(read, 8, "{address:#x} cannot be read");
    word
}

#[test]
fn names_are_unique_and_on_the_page() {
    let names = Names::read();
    assert_eq!(names.0.len(), COUNT, "a name is there twice");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/debugging.md");
    let page = std::fs::read_to_string(page).unwrap();
    for name in names.0.keys() {
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/debugging.md lacks {name}"
        );
    }
}

#[test]
fn a_reader_from_outside_finds_threads_and_what_they_are() {
    let parked = thread::Builder::new()
        .name("under-glass".into())
        .spawn(thread::park)
        .unwrap();
    const PARKED: usize = 1;
    let id = parked.thread().id().number() as usize;
    let names = Names::read();
    assert_ne!(read(names.get("runtime")), 0);
    let field = |record: usize, name: &str| read(record + names.get(&format!("thread.{name}")));
    // It is off its stack a moment after it has begun.
    let (record, end) = loop {
        let mut all = names.threads().into_iter();
        let found = all.find(|(record, _)| field(*record, "id") == id);
        match found {
            Some((record, end)) if field(record, "handshake") & 0xffff_ffff == PARKED => {
                break (record, end);
            }
            _ => thread::yield_now(),
        }
    };
    let name = [0, 8].map(|at| read(record + names.get("thread.name") + at));
    assert_eq!(name[1], "under-glass".len());
    assert_eq!(&read(name[0]).to_le_bytes(), b"under-gl");
    let [sp, tp] = ["sp", "tp"].map(|name| field(record, name));
    assert!((sp..end).contains(&tp), "{tp:#x} is not above {sp:#x}");
    assert!(
        (end - 0x8000..end).contains(&sp),
        "{sp:#x} is not on the stack"
    );
    let frames = sp + names.get("saved.bytes");
    assert!(frames.is_multiple_of(8), "{frames:#x}");
    assert_ne!(read(sp + names.get("saved.pc")), 0);
    parked.thread().unpark();
    parked.join().unwrap();
}

#[test]
fn a_platform_thread_has_an_entry_with_the_mounted_thread() {
    thread::spawn(|| {
        let names = Names::read();
        let id = thread::current().id().number() as usize;
        // It stays on its platform thread while that is looked at.
        thread::no_preemption(|| has_entry(&names, id));
    })
    .join()
    .unwrap();
}

/// Asserts that the entry of the running platform thread has the virtual thread with this id.
fn has_entry(names: &Names, id: usize) {
    // SAFETY: no arguments.
    let platform = unsafe { libc::gettid() } as usize;
    let reach = names.get("carriers.reach");
    let entries = (0..reach).map(|step| {
        let index = (platform + step) % names.get("carriers.count");
        names.get("carriers") + index * names.get("carriers.stride")
    });
    let mut own =
        entries.filter(|entry| read(entry + names.get("carriers.tid")) & 0xffff_ffff == platform);
    let entry = own.next().expect("no entry");
    let record = read(entry + names.get("carriers.thread"));
    assert_eq!(read(record + names.get("thread.id")), id);
    assert_eq!(own.next(), None);
}
