//! The threads: from the tables of slots to their records and stacks.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::io;
use std::rc::Rc;

use pirn_dump::{Carrier, CarrierState, Dump, Grouper, LockKind, Place, Scope, Stack, State};
use pirn_dump::{Thread, Wait};

use super::arch;
use super::core_file::Registers;
use super::memory::Memory;
use super::modules::Modules;
use super::record::{Fields, Record};
use super::table::Table;
use super::unwind::{Bytes, Unwinder};

/// How often a thread is looked at that changes meanwhile.
const LOOKS: u32 = 3;
/// The most bytes of a stack that are read.
const MOST_BYTES: u64 = 1 << 20;
/// A thread's id to glibc's locks is its slot's number and this.
const FIRST_TID: u32 = 1 << 22;
/// The most regions that a table may name.
const MOST_REGIONS: u64 = 1 << 16;
/// Slots per region, as in slots' numbers.
const SLOT_BITS: u32 = 12;
/// The number of slots: ids that differ by a multiple of it are of one slot's threads.
const SLOTS: u32 = 1 << (14 + SLOT_BITS);

/// A thread's slot.
#[derive(Clone, Copy)]
struct Slot {
    start: u64,
    end: u64,
    /// Where the table of slots has its record.
    entry: u64,
}

/// The threads of a process, as they are found.
struct Reader<'a> {
    memory: &'a Memory,
    fields: Rc<Fields>,
    flags: u64,
    slots: Vec<Vec<Slot>>,
    /// The numbers of the carriers, by the records of the threads that are mounted.
    mounted: HashMap<u64, u32>,
    unwinder: Unwinder,
    stacks: HashMap<Stack, u32>,
    /// The numbers of places, by their addresses.
    places: HashMap<u64, Option<u32>>,
    scopes: BTreeMap<u64, Scope>,
    grouper: Grouper,
    dump: Dump,
}

/// Reads all threads that have a stack.
pub fn read(memory: &Memory, modules: Modules, table: &Table) -> Result<Dump, Box<dyn Error>> {
    let mut unwinder = Unwinder::new(modules);
    unwinder.outermost = table.maybe("outermost");
    unwinder.preempted = table.maybe("preempted");
    unwinder.interrupted = arch::INTERRUPTED.and_then(|names| {
        let places = names.map(|name| table.maybe(name));
        places
            .iter()
            .all(Option::is_some)
            .then(|| places.map(Option::unwrap_or_default))
    });
    let mut reader = Reader {
        memory,
        fields: Rc::new(Fields::of(table)?),
        flags: table.get("threads.flags")?,
        slots: Vec::new(),
        mounted: HashMap::new(),
        unwinder,
        stacks: HashMap::new(),
        places: HashMap::new(),
        scopes: BTreeMap::new(),
        grouper: Grouper::default(),
        dump: Dump::default(),
    };
    if memory.word(table.get("runtime")?)? != 0 {
        reader.find_slots(table)?;
        reader.read_carriers(table)?;
        reader.read_threads();
    }
    Ok(reader.finish())
}

impl<'a> Reader<'a> {
    fn find_slots(&mut self, table: &Table) -> Result<(), Box<dyn Error>> {
        let memory = self.memory;
        let count = memory
            .word(table.get("regions.count")?)?
            .min(table.get("regions.most")?)
            .min(MOST_REGIONS);
        let regions = memory.words(table.get("regions")?, count as usize)?;
        let tables = memory.words(table.get("threads")?, count as usize)?;
        let [base, stride, capacity] =
            ["base", "stride", "capacity"].map(|name| table.get(&format!("region.{name}")));
        let (base, stride, capacity) = (base?, stride?, capacity?);
        for (region, entries) in regions.into_iter().zip(tables) {
            let mut slots = Vec::new();
            if region != 0 && entries != 0 {
                let [base, stride, capacity] =
                    [base, stride, capacity].map(|at| memory.word(region.wrapping_add(at)));
                let (base, stride, capacity) = (base?, stride?, capacity?.min(1 << SLOT_BITS));
                slots.extend((0..capacity).map(|index| Slot {
                    start: base.saturating_add(index.saturating_mul(stride)),
                    end: base.saturating_add((index + 1).saturating_mul(stride)),
                    entry: entries.saturating_add(8 * index),
                }));
            }
            self.slots.push(slots);
        }
        Ok(())
    }

    fn read_carriers(&mut self, table: &Table) -> Result<(), Box<dyn Error>> {
        let get = |name: &str| table.get(&format!("carriers.{name}"));
        let (count, stride) = (get("count")?.min(1 << 16), get("stride")?.clamp(16, 4096));
        let (tid, number, thread) = (get("tid")?, get("number")?, get("thread")?);
        let entries = self
            .memory
            .bytes(table.get("carriers")?, (count * stride) as usize)?;
        for bytes in entries.chunks_exact(stride as usize) {
            let word = |at: u64| {
                let bytes = bytes.get(at as usize..).and_then(|rest| rest.first_chunk());
                bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
            };
            let (tid, number, record) = (word(tid) as u32, word(number) as u32, word(thread));
            if tid == 0 {
                continue;
            }
            let id = || {
                self.memory
                    .word(record.saturating_add(self.fields.id as u64))
                    .ok()
            };
            let id = (record != 0).then(id).flatten();
            self.mounted.extend(id.map(|_| (record, number)));
            self.dump.carriers.push(Carrier {
                number,
                tid,
                state: id.map_or(CarrierState::Sleeping, |_| CarrierState::Running),
                thread: id,
                spare: false,
            });
        }
        self.dump.carriers.sort_by_key(|carrier| carrier.number);
        Ok(())
    }

    fn read_threads(&mut self) {
        for region in 0..self.slots.len() {
            let slots = self.slots[region].clone();
            let Some(first) = slots.first() else { continue };
            let Ok(records) = self.memory.words(first.entry, slots.len()) else {
                continue;
            };
            for (slot, record) in slots.into_iter().zip(records) {
                if record != 0 {
                    self.read_thread(slot);
                }
            }
        }
    }

    /// Returns a record and its address.
    fn record_at(&self, slot: Slot) -> io::Result<(u64, Record)> {
        let address = self.memory.word(slot.entry)? & !self.flags;
        if address == 0 {
            return Err(io::Error::other("the thread has ended"));
        }
        let bytes = self.memory.bytes(address, self.fields.bytes)?;
        let fields = Rc::clone(&self.fields);
        Ok((address, Record { bytes, fields }))
    }

    /// Adds the thread in a slot, if there is one.
    fn read_thread(&mut self, slot: Slot) {
        for look in 1..=LOOKS {
            let Ok((address, record)) = self.record_at(slot) else {
                return;
            };
            let registers = self.registers(slot, address, &record);
            let stack = registers.and_then(|(registers, exact)| {
                // From the stack pointer up, so never across the guard below.
                let top = record.word(self.fields.tp).clamp(slot.start, slot.end);
                let start = registers.sp.clamp(slot.start, top);
                let len = (top - start).min(MOST_BYTES);
                let bytes = self.memory.bytes(start, len as usize).ok()?;
                Some((registers, exact, Bytes { start, bytes }))
            });
            let name = self.name(&record);
            let moved = !self.memory.is_still()
                && self.record_at(slot).map_or(true, |(again, now)| {
                    again != address || now.moment() != record.moment()
                });
            if moved && look < LOOKS {
                continue;
            }
            let mut thread = self.thread(&record, address);
            thread.name = name;
            if let Some((registers, exact, bytes)) = stack.filter(|_| !moved) {
                thread.stack_bytes = Some(slot.end.saturating_sub(registers.sp) as u32);
                let stack = self.unwinder.unwind(registers, &bytes, exact);
                thread.stack = Some(self.stack_number(stack));
            }
            self.add(thread);
            return;
        }
    }

    /// Returns the registers with which a thread goes on, and whether it was interrupted between
    /// any two instructions, not at a switch.
    fn registers(&self, slot: Slot, address: u64, record: &Record) -> Option<(Registers, bool)> {
        let all = self.memory.registers();
        if let Some(running) = all
            .iter()
            .find(|it| (slot.start..slot.end).contains(&it.sp))
        {
            return Some((*running, true));
        }
        // In a core file, a thread in the middle of a switch has saved its context.
        let is_off = record.is_off_its_stack() || self.memory.is_still();
        if !is_off || self.mounted.contains_key(&address) && !self.memory.is_still() {
            return None;
        }
        let sp = record.word(self.fields.sp);
        let word = |at| self.memory.word(sp.checked_add(at)?).ok();
        let registers = Registers {
            tid: 0,
            pc: word(self.fields.saved_pc)?,
            bp: word(self.fields.saved_bp)?,
            sp: sp.checked_add(self.fields.saved_bytes)?,
            lr: 0, // The function that has switched has put it on the stack.
        };
        (slot.start..slot.end)
            .contains(&sp)
            .then_some((registers, false))
    }

    fn name(&self, record: &Record) -> Option<Vec<u8>> {
        let [address, len] = [0, 8].map(|at| record.word(self.fields.name.saturating_add(at)));
        if address == 0 {
            return None;
        }
        self.memory.text(address, len).ok()
    }

    /// Returns what a record says, but for name and stack.
    fn thread(&mut self, record: &Record, address: u64) -> Thread {
        let carrier = self.mounted.get(&address).copied();
        let mut state = record.state();
        if carrier.is_some() {
            state = State::Running;
        }
        let mut thread = Thread {
            id: record.id(),
            state,
            carrier,
            mounts: u64::from(record.mounts()),
            is_virtual: true,
            ..Thread::default()
        };
        let word = |at: Option<usize>| at.map(|at| record.word(at)).filter(|word| *word != 0);
        thread.scope = word(self.fields.scope);
        if state == State::Waiting {
            thread.wait = record.wait();
            self.complete(&mut thread.wait, record);
            let clocks = self.memory.clock().zip(record.until());
            thread.until = clocks.map(|(now, until)| {
                let since_1970 = super::now();
                since_1970.saturating_add(until).saturating_sub(now)
            });
        }
        thread.place = word(self.fields.place).and_then(|address| self.place(address));
        thread
    }

    /// Adds to a wait what is elsewhere: the owner of a lock, the name of a call.
    fn complete(&self, wait: &mut Wait, record: &Record) {
        match wait {
            Wait::Call { name } => {
                if let Some(text) = self.memory.text_to_zero(record.argument()) {
                    *name = text.into();
                }
            }
            Wait::Lock {
                address,
                what,
                owner,
                ..
            } => {
                // glibc's `__owner` and `__cur_writer`, a part of its ABI.
                let place = match what {
                    LockKind::Mutex => *address + 8,
                    LockKind::RwLock => *address + 24,
                    _ => return,
                };
                let holder = self.memory.word(place).ok().map(|word| word as u32);
                let number = holder.and_then(|tid| tid.checked_sub(FIRST_TID));
                let slot = number.map(|number| number % SLOTS).and_then(|number| {
                    let slots = self.slots.get((number >> SLOT_BITS) as usize)?;
                    slots.get(number as usize & ((1 << SLOT_BITS) - 1))
                });
                let record = slot.and_then(|slot| self.record_at(*slot).ok());
                *owner = record.map(|(_, record)| record.id());
            }
            _ => {}
        }
    }

    /// Returns the number of the place where a thread was spawned: a `core::panic::Location`, which
    /// is the file's address and length, line and column.
    fn place(&mut self, address: u64) -> Option<u32> {
        if let Some(known) = self.places.get(&address) {
            return *known;
        }
        let read = || {
            let words = self.memory.words(address, 3).ok()?;
            let (file, len, line) = (words[0], words[1], words[2] as u32);
            let file = self.memory.text(file, len).ok()?;
            Some(Place {
                file: String::from_utf8(file).ok()?,
                line,
                column: (words[2] >> 32) as u32,
            })
        };
        let number = read().map(|place| {
            let places = &mut self.dump.places;
            let known = places.iter().position(|known| *known == place);
            known.unwrap_or_else(|| {
                places.push(place);
                places.len() - 1
            }) as u32
        });
        self.places.insert(address, number);
        number
    }

    fn stack_number(&mut self, stack: Stack) -> u32 {
        let stacks = &mut self.dump.stacks;
        // As they are shown: there are several ways through the runtime into the same wait.
        let hidden = stack.runtime_frames as usize;
        let mut shown = Stack {
            frames: stack.frames[hidden..].to_vec(),
            ..stack
        };
        if let (0, false, Some(first)) = (hidden, stack.exact_first, shown.frames.first_mut()) {
            *first = 0; // The switch, which is in two places of a function.
        }
        *self.stacks.entry(shown).or_insert_with(|| {
            stacks.push(stack);
            stacks.len() as u32 - 1
        })
    }

    fn add(&mut self, thread: Thread) {
        let totals = &mut self.dump.totals;
        totals.listed += 1;
        totals.started += 1;
        totals.by_state[thread.state as usize] += 1;
        totals.unclaimed += u64::from(thread.stack.is_none());
        if let Some(id) = thread.scope {
            let scope = self.scopes.entry(id).or_insert_with(|| Scope {
                id,
                ..Scope::default()
            });
            scope.members += 1;
        }
        self.grouper.add(&thread, self.dump.threads.len() as u32);
        self.dump.threads.push(thread);
    }

    fn finish(mut self) -> Dump {
        self.dump.groups = self.grouper.finish();
        self.dump.scopes = self.scopes.into_values().collect();
        let modules = self.unwinder.modules.0.into_iter();
        self.dump.modules = modules.map(|loaded| loaded.module).collect();
        self.dump
    }
}
