//! Writing a dump.

use super::fields::Fields;
use super::{BLOCK, MAGIC, Tag, VERSION};
use crate::model::*;
use std::io::{self, Write};

/// Writes a dump record by record.
///
/// Records of different kinds may come in any order, and are counted per kind: the first stack is
/// number 0, wherever it comes. A reader gets them in the order of each kind. Records of
/// the same kind are best written one after the other: each change starts a new block.
///
/// # Examples
/// ```
/// use pirn_dump::{Dump, Encoder, Process, Thread};
/// let mut encoder = Encoder::new(Vec::new())?;
/// encoder.process(&Process { pid: 7, ..Process::default() })?;
/// for id in 1..=1000 {
///     encoder.thread(&Thread { id, ..Thread::default() })?;
/// }
/// let bytes = encoder.finish()?;
/// assert_eq!(Dump::read_from(&bytes[..])?.threads.len(), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Encoder<W> {
    out: W,
    tag: Tag,
    /// The records of the block that is being filled.
    block: Vec<u8>,
}

impl<W: Write> Encoder<W> {
    /// Begins a dump.
    ///
    /// # Errors
    /// The writer's, here and in all other methods.
    pub fn new(mut out: W) -> io::Result<Encoder<W>> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Encoder {
            out,
            tag: Tag::End,
            block: Vec::new(),
        })
    }

    fn record(&mut self, tag: Tag, write: impl FnOnce(&mut Fields<'_>)) -> io::Result<()> {
        if self.tag != tag || self.block.len() >= BLOCK {
            self.flush()?;
            self.tag = tag;
        }
        Fields(&mut self.block).framed(write);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.out.write_all(&(self.tag as u32).to_le_bytes())?;
        self.out
            .write_all(&(self.block.len() as u32).to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }

    /// Writes what is left, and the end. Returns the writer, flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.out.write_all(&[0; 8])?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes the process: once per dump.
    pub fn process(&mut self, process: &Process) -> io::Result<()> {
        self.record(Tag::Process, |fields| {
            fields.u32(process.pid);
            fields.u64(process.started);
            fields.bytes(process.program.as_bytes());
            fields.bytes(process.version.as_bytes());
            fields.u64(process.begin);
            fields.u64(process.end);
            fields.u32(process.parallelism);
        })
    }

    /// Writes the numbers: once per dump.
    pub fn totals(&mut self, totals: &Totals) -> io::Result<()> {
        self.record(Tag::Totals, |fields| {
            fields.u64(totals.started);
            fields.u64(totals.ended);
            fields.u64(totals.listed);
            totals.by_state.iter().for_each(|count| fields.u64(*count));
            fields.u64(totals.unlisted_new);
            fields.u64(totals.unclaimed);
            fields.u64(totals.cut);
        })
    }

    /// Writes a carrier.
    pub fn carrier(&mut self, carrier: &Carrier) -> io::Result<()> {
        self.record(Tag::Carriers, |fields| {
            fields.u32(carrier.number);
            fields.u32(carrier.tid);
            fields.u8(carrier.state as u8);
            fields.optional(carrier.thread, Fields::u64);
            fields.bool(carrier.spare);
        })
    }

    /// Writes a module.
    pub fn module(&mut self, module: &Module) -> io::Result<()> {
        self.record(Tag::Modules, |fields| {
            fields.bytes(&module.path);
            fields.bytes(&module.build_id);
            fields.u64(module.bias);
            fields.u64(module.start);
            fields.u64(module.end);
            fields.u64(module.offset);
        })
    }

    /// Writes a place.
    pub fn place(&mut self, place: &Place) -> io::Result<()> {
        self.record(Tag::Places, |fields| {
            fields.bytes(place.file.as_bytes());
            fields.u32(place.line);
            fields.u32(place.column);
        })
    }

    /// Writes a stack.
    pub fn stack(&mut self, stack: &Stack) -> io::Result<()> {
        self.record(Tag::Stacks, |fields| {
            fields.list(&stack.frames, Fields::u64);
            fields.bool(stack.exact_first);
            fields.u8(stack.end as u8);
            fields.u32(stack.runtime_frames);
        })
    }

    /// Writes a scope.
    pub fn scope(&mut self, scope: &Scope) -> io::Result<()> {
        self.record(Tag::Scopes, |fields| {
            fields.u64(scope.id);
            fields.optional(scope.name.as_deref(), |fields, name| {
                fields.bytes(name.as_bytes())
            });
            fields.optional(scope.parent, Fields::u64);
            fields.optional(scope.owner, Fields::u64);
            fields.bool(scope.cancelled);
            fields.u64(scope.members);
        })
    }

    /// Writes a group.
    pub fn group(&mut self, group: &Group) -> io::Result<()> {
        self.record(Tag::Groups, |fields| {
            fields.optional(group.stack, Fields::u32);
            fields.u8(group.state as u8);
            fields.u8(number_of(group.wait));
            fields.bool(group.timed);
            fields.optional(group.place, Fields::u32);
            fields.u64(group.count);
            fields.optional(group.object, Fields::u64);
            fields.optional(group.oldest, Fields::u64);
            fields.list(&group.examples, Fields::u32);
        })
    }

    /// Writes a thread.
    pub fn thread(&mut self, thread: &Thread) -> io::Result<()> {
        self.record(Tag::Threads, |fields| {
            fields.u64(thread.id);
            fields.optional(thread.name.as_deref(), Fields::bytes);
            fields.u8(thread.state as u8);
            fields.framed(|fields| wait(fields, &thread.wait));
            fields.optional(thread.until, Fields::u64);
            fields.optional(thread.stack, Fields::u32);
            fields.optional(thread.place, Fields::u32);
            fields.optional(thread.scope, Fields::u64);
            fields.optional(thread.carrier, Fields::u32);
            fields.u64(thread.mounts);
            fields.optional(thread.unmoved_since, Fields::u64);
            fields.bool(thread.interrupted);
            fields.bool(thread.is_virtual);
            fields.optional(thread.stack_bytes, Fields::u32);
            fields.texts(&thread.works_for);
        })
    }

    /// Writes a finding.
    pub fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.record(Tag::Findings, |fields| {
            fields.bytes(finding.kind.as_bytes());
            fields.bytes(finding.text.as_bytes());
            fields.list(&finding.threads, Fields::u64);
        })
    }

    /// Writes what memory is used for.
    pub fn memory(&mut self, memory: &Memory) -> io::Result<()> {
        self.record(Tag::Memory, |fields| {
            fields.bytes(memory.name.as_bytes());
            fields.u64(memory.bytes);
        })
    }
}

/// Returns the number of a kind of wait: for a lock, 64 more than the number of its `LockKind`.
fn number_of(kind: WaitKind) -> u8 {
    match kind {
        WaitKind::None => 0,
        WaitKind::Lock(what) => 64 + what as u8,
        WaitKind::Read => 1,
        WaitKind::Write => 2,
        WaitKind::Poll => 3,
        WaitKind::Sleep => 4,
        WaitKind::Park => 5,
        WaitKind::Join => 6,
        WaitKind::Scope => 7,
        WaitKind::Child => 8,
        WaitKind::Call => 9,
        WaitKind::Signal => 10,
        WaitKind::Other => 11,
    }
}

/// Returns the kind of wait with a number. Kinds that are added later are others.
pub(super) fn kind_of(number: u8) -> WaitKind {
    WaitKind::ALL
        .into_iter()
        .find(|kind| number_of(*kind) == number)
        .unwrap_or(WaitKind::Other)
}

fn wait(fields: &mut Fields<'_>, wait: &Wait) {
    fields.u8(number_of(wait.kind()));
    match wait {
        Wait::Lock {
            address,
            owner,
            waiters,
            what: _,
        } => {
            fields.u64(*address);
            fields.optional(*owner, Fields::u64);
            fields.optional(*waiters, Fields::u32);
        }
        Wait::Descriptor { fd, ends, write: _ } => {
            fields.i32(*fd);
            fields.optional(ends.as_deref(), |fields, ends| {
                fields.bytes(ends.local.as_bytes());
                fields.bytes(ends.peer.as_bytes());
            });
        }
        Wait::Poll { fds } => fields.u32(*fds),
        Wait::Join { thread } => fields.u64(*thread),
        Wait::Scope { id } => fields.u64(*id),
        Wait::Child { pid } => fields.i32(*pid),
        Wait::Call { name } => fields.bytes(name.as_bytes()),
        Wait::None | Wait::Sleep | Wait::Park | Wait::Signal | Wait::Other => {}
    }
}
