//! `PIRN_DEBUG`: where debuggers, core files and readers of the process's memory find the runtime's
//! data.
//!
//! The table describes itself: names with values, so that a reader needs no debug information, and
//! a newer reader knows what an older program lacks. Values are addresses, offsets and sizes, all
//! in bytes. `docs/debugging.md` lists the names.
//!
//! ```text
//!    0   magic        b"PIRNDBG\0"
//!    8   version      of this layout: 1          (u32)
//!   12   entry size   bytes from entry to entry  (u32)
//!   16   entries      the number of them         (u64)
//!   24   first entry: name, filled up with zeros (24 bytes), value (u64)
//!        …
//! ```
//!
//! A reader finds it by its symbol, or, in a stripped program, by the section `.pirn_debug`, of
//! which it is the only content. `gdb/threads.py` beside this file is such a reader.

use pirn_rt::sched::carrier;
use pirn_rt::stack::region;
use pirn_rt::vthread::{record, table};
use pirn_rt::{arch, sched::runtime};

/// The version of the table's own layout. Names may come and go without a new one.
pub const VERSION: u32 = 1;
/// The version of this library, which ends with a zero.
const VERSION_OF_PIRN: &str = concat!("pirn ", env!("CARGO_PKG_VERSION"), "\0");
/// Bytes of a name.
const NAME: usize = 24;

/// A value, as a pointer: some are addresses, which are known only when the program is loaded.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    name: [u8; NAME],
    value: *const (),
}

/// The names that come from the layers' own lists.
const LAYOUTS: [&[(&str, usize)]; 7] = [
    &runtime::LAYOUT,
    &record::LAYOUT,
    &table::LAYOUT,
    &carrier::LAYOUT,
    &region::LAYOUT,
    &arch::SAVED,
    &arch::INTERRUPTED,
];

/// The names of addresses; the last four are of code that matters to a reader of stacks.
const ADDRESSES: [(&str, *const ()); 10] = {
    let [regions, count] = region::tables();
    let [switches, switches_end] = arch::switch_table();
    let [outermost, preempted] = arch::marks();
    [
        ("version", VERSION_OF_PIRN.as_ptr().cast()),
        ("runtime", runtime::place()),
        ("regions", regions),
        ("regions.count", count),
        ("threads", table::tables()),
        ("carriers", carrier::mounted()),
        ("switches", switches),
        ("switches.end", switches_end),
        ("outermost", outermost),
        ("preempted", preempted),
    ]
};

pub const COUNT: usize = {
    let (mut count, mut list) = (ADDRESSES.len(), 0);
    while list < LAYOUTS.len() {
        count += LAYOUTS[list].len();
        list += 1;
    }
    count
};

/// See the module's documentation.
#[repr(C)]
pub struct DebugTable {
    magic: [u8; 8],
    version: u32,
    entry_bytes: u32,
    count: u64,
    entries: [Entry; COUNT],
}

// SAFETY: never written; its addresses are followed by readers outside of the process.
unsafe impl Sync for DebugTable {}

/// See the module's documentation.
#[used]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".pirn_debug")]
pub static PIRN_DEBUG: DebugTable = DebugTable {
    magic: *b"PIRNDBG\0",
    version: VERSION,
    entry_bytes: size_of::<Entry>() as u32,
    count: COUNT as u64,
    entries: entries(),
};

const fn entries() -> [Entry; COUNT] {
    let mut entries = [entry("", core::ptr::null()); COUNT];
    let (mut at, mut list) = (0, 0);
    while at < ADDRESSES.len() {
        entries[at] = entry(ADDRESSES[at].0, ADDRESSES[at].1);
        at += 1;
    }
    while list < LAYOUTS.len() {
        let mut item = 0;
        while item < LAYOUTS[list].len() {
            let (name, value) = LAYOUTS[list][item];
            entries[at] = entry(name, core::ptr::without_provenance(value));
            item += 1;
            at += 1;
        }
        list += 1;
    }
    entries
}

const fn entry(name: &str, value: *const ()) -> Entry {
    let from = name.as_bytes();
    assert!(from.len() <= NAME, "a name is too long");
    let mut name = [0; NAME];
    let mut at = 0;
    while at < from.len() {
        name[at] = from[at];
        at += 1;
    }
    Entry { name, value }
}

/// Makes the linker keep the table in every program that starts a runtime: `#[used]` keeps it in
/// its object file, and this reference takes that out of an archive.
pub fn keep() {
    core::hint::black_box(&raw const PIRN_DEBUG);
}
