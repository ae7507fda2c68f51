//! Which thread probably holds a lock that keeps no owner, as those of `std`.
//!
//! A guard is a reference to its lock, on the stack of the thread that holds the lock. Of the
//! threads that wait for something else, that thread has the pointer nearest to the lock's word:
//! the word is in the lock, behind its data. This is a guess. A thread that has borrowed the lock
//! has the same pointer: then nothing is said. A part of a frame that is not used any more may have
//! one, optimised code keeps none to a lock in a static, and the word of a condition variable that
//! has been notified twice looks like that of a mutex.

use core::ops::Range;
use pirn_rt::arch;

/// The most bytes from where a pointer leads to the word of the lock.
const REACH: u64 = 256;
/// The most bytes that are read of a stack, from its innermost frame on.
const DEPTH: usize = 64 << 10;

/// The words of locks, with what points to them.
pub struct Holders {
    /// In the order of addresses.
    words: Vec<Word>,
}

struct Word {
    address: u64,
    /// The least distance at which a pointer was found, and the thread on whose stack: 0 if there
    /// are several.
    nearest: Option<(u64, u64)>,
}

impl Holders {
    /// Returns words of which nothing is known yet.
    pub fn new(words: impl Iterator<Item = u64>) -> Holders {
        let mut words: Vec<u64> = words.collect();
        words.sort_unstable();
        words.dedup();
        let word = |address| Word {
            address,
            nearest: None,
        };
        Holders {
            words: words.into_iter().map(word).collect(),
        }
    }

    /// Looks for pointers on the stack of a thread that is off it and waits for the word `awaited`,
    /// or for something else. Does not allocate.
    pub fn read(&mut self, thread: u64, awaited: Option<u64>, stack: Range<usize>) {
        let (Some(first), Some(last)) = (self.words.first(), self.words.last()) else {
            return;
        };
        let all = first.address.saturating_sub(REACH)..=last.address;
        let end = stack.end.min(stack.start + DEPTH);
        for place in (stack.start.next_multiple_of(8)..end).step_by(8) {
            // SAFETY: there are threads, so the handler is in place. The stack of a thread that the
            // caller has claimed. By an instruction, so that no sanitizer objects.
            let pointer = unsafe { arch::fetch_u64(place) }.value;
            if all.contains(&pointer) {
                self.note(pointer, thread, awaited);
            }
        }
    }

    fn note(&mut self, pointer: u64, thread: u64, awaited: Option<u64>) {
        let from = self.words.partition_point(|word| word.address < pointer);
        let words = self.words[from..].iter_mut();
        for word in words.take_while(|word| word.address - pointer <= REACH) {
            if awaited == Some(word.address) {
                continue;
            }
            let distance = word.address - pointer;
            word.nearest = match word.nearest {
                Some((nearest, _)) if nearest < distance => continue,
                Some((nearest, other)) if nearest == distance && other != thread => {
                    Some((distance, 0))
                }
                _ => Some((distance, thread)),
            };
        }
    }

    /// Returns the id of the thread that probably holds the lock with this word.
    pub fn of(&self, word: u64) -> Option<u64> {
        let place = self
            .words
            .binary_search_by_key(&word, |it| it.address)
            .ok()?;
        let (_, thread) = self.words[place].nearest?;
        (thread != 0).then_some(thread)
    }
}
