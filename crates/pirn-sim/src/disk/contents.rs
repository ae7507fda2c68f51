//! The contents of a file that are only in memory, and what a crash leaves of them.
//!
//! The real file has all changes. [`Dirty`] keeps what the disk has of the sectors that they
//! concern, and the changes since. The kernel writes a page back as it is at that moment: so after
//! a crash each sector is as it was on the disk, or as it was after one of the changes to it. A
//! change that makes the file shorter is one of the journal of the file system. What was written
//! after it is on the disk only if it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// What a disk writes as a whole.
const SECTOR: u64 = 512;

type Sector = [u8; SECTOR as usize];

/// A change of a file.
pub(super) struct Change {
    /// Where these bytes were written.
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
    /// The size of the file after it.
    pub(super) size: u64,
    /// Whether it has made the file shorter.
    pub(super) cuts: bool,
}

/// A file that differs from what the disk has.
pub(super) struct Dirty {
    /// The size on the disk.
    size: u64,
    /// What the disk has of the sectors that differ.
    sectors: BTreeMap<u64, Sector>,
    changes: Vec<Change>,
    /// Sectors that the kernel could not write. It takes them for written.
    lost: BTreeSet<u64>,
}

/// How much of the changes is left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// The size has been written, and the data has not.
    Size,
    /// The first changes.
    First,
    /// Some of the changes.
    Some,
    /// Parts of the changes.
    Torn,
}

impl Dirty {
    /// Returns a file of this size that is on the disk.
    pub(super) fn new(size: u64) -> Dirty {
        Dirty {
            size,
            sectors: BTreeMap::new(),
            changes: Vec::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Keeps what the disk has of a range that is about to be changed. `size` is the file's.
    pub(super) fn keep(&mut self, file: &File, range: Range<u64>, size: u64) -> io::Result<()> {
        let begin = range.start / SECTOR * SECTOR;
        let end = range.end.min(size);
        if begin >= end {
            return Ok(());
        }
        let mut bytes = vec![0; (end - begin).next_multiple_of(SECTOR) as usize];
        read_at(file, begin, &mut bytes)?;
        for (number, bytes) in (begin / SECTOR..).zip(bytes.as_chunks().0) {
            self.sectors.entry(number).or_insert(*bytes);
        }
        Ok(())
    }

    /// Notes a change, of which the sectors that were there have been [kept](Self::keep).
    pub(super) fn change(&mut self, change: Change) {
        for number in change.sectors() {
            self.sectors.entry(number).or_insert([0; _]);
            self.lost.remove(&number);
        }
        if change.cuts {
            let _none_there = self.lost.split_off(&change.size.div_ceil(SECTOR));
        }
        self.changes.push(change);
    }

    /// Notes that the program has synced the file, which has this size: the disk has all sectors
    /// but the lost ones. Returns whether none is lost.
    pub(super) fn sync(&mut self, size: u64) -> bool {
        self.changes.clear();
        self.sectors.retain(|number, _| self.lost.contains(number));
        self.size = size;
        self.lost.is_empty()
    }

    /// Loses what is not on the disk: the kernel could not write it, and forgets that it has to.
    pub(super) fn fail(&mut self) {
        for change in self.changes.iter().filter(|it| it.cuts) {
            cut(&mut self.sectors, change.size, |_| true);
        }
        self.lost.extend(self.sectors.keys());
    }

    /// Makes the file what a crash leaves of it.
    pub(super) fn crash(self, file: &File, below: &mut dyn FnMut(u64) -> u64) -> io::Result<()> {
        let mut below = |bound: usize| below(bound as u64) as usize;
        let all = self.changes.len();
        const LEFT: [Left; 5] = [
            Left::Nothing,
            Left::Size,
            Left::First,
            Left::Some,
            Left::Torn,
        ];
        let left = LEFT[below(LEFT.len())];
        // The changes from here on have left nothing.
        let end = match left {
            Left::Nothing => 0,
            Left::Size => all,
            _ => below(all + 1),
        };
        // The changes up to here have all been made.
        let begin = self.changes[..end].iter().rposition(|it| it.cuts);
        let begin = begin.map_or(0, |place| place + 1);
        let mut versions: BTreeMap<u64, usize> = BTreeMap::new();
        for &number in self.sectors.keys().filter(|it| !self.lost.contains(it)) {
            versions.insert(
                number,
                match left {
                    Left::First => end,
                    Left::Torn => begin + below(end - begin + 1),
                    _ => begin,
                },
            );
        }
        if left == Left::Some {
            for place in begin..end {
                if below(2) == 0 {
                    let sectors = self.changes[place].sectors();
                    versions.extend(sectors.map(|number| (number, place + 1)));
                }
            }
        }
        let version_of_size = match left {
            Left::Nothing | Left::Size | Left::First => end,
            _ => begin + below(end - begin + 1),
        };
        let size = match version_of_size {
            0 => self.size,
            version => self.changes[version - 1].size,
        };
        let mut sectors = self.sectors;
        for (place, change) in self.changes[..end].iter().enumerate() {
            let has = |number: u64| versions.get(&number).copied().unwrap_or(begin) > place;
            if change.cuts {
                cut(&mut sectors, change.size, has);
            }
            change.apply(&mut sectors, has);
        }
        file.set_len(size)?;
        for (number, bytes) in sectors {
            let at = number * SECTOR;
            let length = size.saturating_sub(at).min(SECTOR) as usize;
            file.write_all_at(&bytes[..length], at)?;
        }
        Ok(())
    }
}

/// Zeros what is behind the end of a file of this size.
fn cut(sectors: &mut BTreeMap<u64, Sector>, size: u64, has: impl Fn(u64) -> bool) {
    for (number, bytes) in sectors.range_mut(size / SECTOR..) {
        if has(*number) {
            let stays = size.saturating_sub(number * SECTOR).min(SECTOR) as usize;
            bytes[stays..].fill(0);
        }
    }
}

impl Change {
    /// Returns the sectors with bytes of it.
    fn sectors(&self) -> Range<u64> {
        let end = self.at + self.bytes.len() as u64;
        self.at / SECTOR..end.div_ceil(SECTOR).max(self.at / SECTOR)
    }

    /// Writes its bytes to the sectors that have it.
    fn apply(&self, sectors: &mut BTreeMap<u64, Sector>, has: impl Fn(u64) -> bool) {
        for number in self.sectors().filter(|&number| has(number)) {
            let Some(sector) = sectors.get_mut(&number) else {
                continue;
            };
            let begin = (number * SECTOR).max(self.at);
            let end = ((number + 1) * SECTOR).min(self.at + self.bytes.len() as u64);
            if begin < end {
                let from = &self.bytes[(begin - self.at) as usize..(end - self.at) as usize];
                let place = (begin - number * SECTOR) as usize;
                sector[place..place + from.len()].copy_from_slice(from);
            }
        }
    }
}

/// Fills a buffer from a file, as far as there is something.
pub(super) fn read_at(file: &File, at: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at + done as u64)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(())
}
