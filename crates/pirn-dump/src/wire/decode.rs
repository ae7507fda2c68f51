//! Reading a dump.

use super::encode::kind_of;
use super::fields::Rest;
use super::{DecodeError, LONGEST_BLOCK, MAGIC, Tag, VERSION};
use crate::model::*;
use std::io::Read;

/// Reads a dump.
pub(super) fn dump(mut source: impl Read) -> Result<Dump, DecodeError> {
    let mut head = [0; 12];
    source
        .read_exact(&mut head)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => DecodeError::new("not a dump: it is too short"),
            _ => error.into(),
        })?;
    let (magic, version) = head.split_at(8);
    if magic != MAGIC {
        return Err(DecodeError::new(
            "not a dump: it begins with other bytes than PIRNDUMP",
        ));
    }
    let version = Rest(version).u32()?;
    if version != VERSION {
        return Err(DecodeError::new(format!(
            "the dump has version {version}, and only {VERSION} can be read: \
             use the `pirn` command of the version of the process"
        )));
    }
    let mut dump = Dump::default();
    let mut offset = 12;
    let mut block = Vec::new();
    while let Some(tag) = next(&mut source, &mut block, offset)? {
        if let Some(tag) = Tag::numbered(tag) {
            records(&mut dump, tag, &block).map_err(|error| error.within(tag.word(), offset))?;
        }
        offset += 8 + block.len() as u64;
    }
    check(&dump)?;
    Ok(dump)
}

/// Reads a block. Returns its tag, or None for the end block.
fn next(
    source: &mut impl Read,
    block: &mut Vec<u8>,
    offset: u64,
) -> Result<Option<u32>, DecodeError> {
    let mut head = [0; 8];
    source.read_exact(&mut head)?;
    let mut head = Rest(&head);
    let (tag, length) = (head.u32()?, head.u32()?);
    if tag == Tag::End as u32 {
        return Ok(None);
    }
    let name = Tag::numbered(tag).map_or("of an unknown kind", Tag::word);
    if length > LONGEST_BLOCK {
        let message = format!("a block has {length} bytes, more than {LONGEST_BLOCK}");
        return Err(DecodeError::new(message).within(name, offset));
    }
    block.clear();
    // Memory is used for what comes, not for what is announced.
    source.take(u64::from(length)).read_to_end(block)?;
    if block.len() < length as usize {
        return Err(
            DecodeError::from(std::io::Error::from(std::io::ErrorKind::UnexpectedEof))
                .within(name, offset),
        );
    }
    Ok(Some(tag))
}

/// Reads the records of a block.
fn records(dump: &mut Dump, tag: Tag, block: &[u8]) -> Result<(), DecodeError> {
    let mut block = Rest(block);
    while !block.0.is_empty() {
        let fields = &mut block.framed()?;
        match tag {
            Tag::End => {}
            Tag::Process => dump.process = process(fields)?,
            Tag::Totals => dump.totals = totals(fields)?,
            Tag::Carriers => dump.carriers.push(carrier(fields)?),
            Tag::Modules => dump.modules.push(module(fields)?),
            Tag::Places => dump.places.push(place(fields)?),
            Tag::Stacks => dump.stacks.push(stack(fields)?),
            Tag::Scopes => dump.scopes.push(scope(fields)?),
            Tag::Groups => dump.groups.push(group(fields)?),
            Tag::Threads => dump.threads.push(thread(fields)?),
            Tag::Findings => dump.findings.push(finding(fields)?),
            Tag::Memory => dump.memory.push(memory(fields)?),
        }
    }
    Ok(())
}

/// Looks whether all indices lead to something.
fn check(dump: &Dump) -> Result<(), DecodeError> {
    let check =
        |what: &str, number: usize, index: Option<u32>, kind: &str, length: usize| match index {
            Some(index) if index as usize >= length => Err(DecodeError::new(format!(
                "{what} {number} refers to {kind} {index}, and there are {length}"
            ))),
            _ => Ok(()),
        };
    for (number, thread) in dump.threads.iter().enumerate() {
        check("thread", number, thread.stack, "stack", dump.stacks.len())?;
        check("thread", number, thread.place, "place", dump.places.len())?;
    }
    for (number, group) in dump.groups.iter().enumerate() {
        check("group", number, group.stack, "stack", dump.stacks.len())?;
        check("group", number, group.place, "place", dump.places.len())?;
        for example in &group.examples {
            check(
                "group",
                number,
                Some(*example),
                "thread",
                dump.threads.len(),
            )?;
        }
    }
    Ok(())
}

fn process(fields: &mut Rest<'_>) -> Result<Process, DecodeError> {
    Ok(Process {
        pid: fields.u32()?,
        started: fields.u64()?,
        program: fields.text()?,
        version: fields.text()?,
        begin: fields.u64()?,
        end: fields.u64()?,
        parallelism: fields.u32()?,
    })
}

fn totals(fields: &mut Rest<'_>) -> Result<Totals, DecodeError> {
    let mut totals = Totals {
        started: fields.u64()?,
        ended: fields.u64()?,
        listed: fields.u64()?,
        ..Totals::default()
    };
    for count in &mut totals.by_state {
        *count = fields.u64()?;
    }
    totals.unlisted_new = fields.u64()?;
    totals.unclaimed = fields.u64()?;
    totals.cut = fields.u64()?;
    Ok(totals)
}

fn carrier(fields: &mut Rest<'_>) -> Result<Carrier, DecodeError> {
    Ok(Carrier {
        number: fields.u32()?,
        tid: fields.u32()?,
        state: fields.variant("state of carriers", &CarrierState::ALL)?,
        thread: fields.optional(Rest::u64)?,
        spare: fields.bool()?,
    })
}

fn module(fields: &mut Rest<'_>) -> Result<Module, DecodeError> {
    Ok(Module {
        path: fields.bytes()?.to_vec(),
        build_id: fields.bytes()?.to_vec(),
        bias: fields.u64()?,
        start: fields.u64()?,
        end: fields.u64()?,
        offset: fields.u64()?,
    })
}

fn place(fields: &mut Rest<'_>) -> Result<Place, DecodeError> {
    Ok(Place {
        file: fields.text()?,
        line: fields.u32()?,
        column: fields.u32()?,
    })
}

fn stack(fields: &mut Rest<'_>) -> Result<Stack, DecodeError> {
    Ok(Stack {
        frames: fields.list(8, Rest::u64)?,
        exact_first: fields.bool()?,
        end: fields.variant("end of stacks", &End::ALL)?,
        runtime_frames: fields.u32()?,
    })
}

fn scope(fields: &mut Rest<'_>) -> Result<Scope, DecodeError> {
    Ok(Scope {
        id: fields.u64()?,
        name: fields.optional(Rest::text)?,
        parent: fields.optional(Rest::u64)?,
        owner: fields.optional(Rest::u64)?,
        cancelled: fields.bool()?,
        members: fields.u64()?,
    })
}

fn group(fields: &mut Rest<'_>) -> Result<Group, DecodeError> {
    Ok(Group {
        stack: fields.optional(Rest::u32)?,
        state: fields.variant("state", &State::ALL)?,
        wait: kind_of(fields.u8()?),
        timed: fields.bool()?,
        place: fields.optional(Rest::u32)?,
        count: fields.u64()?,
        object: fields.optional(Rest::u64)?,
        oldest: fields.optional(Rest::u64)?,
        examples: fields.list(4, Rest::u32)?,
    })
}

fn thread(fields: &mut Rest<'_>) -> Result<Thread, DecodeError> {
    Ok(Thread {
        id: fields.u64()?,
        name: fields.optional(Rest::bytes)?.map(<[u8]>::to_vec),
        state: fields.variant("state", &State::ALL)?,
        wait: wait(&mut fields.framed()?)?,
        until: fields.optional(Rest::u64)?,
        stack: fields.optional(Rest::u32)?,
        place: fields.optional(Rest::u32)?,
        scope: fields.optional(Rest::u64)?,
        carrier: fields.optional(Rest::u32)?,
        mounts: fields.u64()?,
        unmoved_since: fields.optional(Rest::u64)?,
        interrupted: fields.bool()?,
        is_virtual: fields.bool()?,
        stack_bytes: fields.optional(Rest::u32)?,
        works_for: fields.later(Rest::texts)?,
    })
}

fn wait(fields: &mut Rest<'_>) -> Result<Wait, DecodeError> {
    let kind = kind_of(fields.u8()?);
    Ok(match kind {
        WaitKind::None => Wait::None,
        WaitKind::Lock(what) => Wait::Lock {
            address: fields.u64()?,
            what,
            owner: fields.optional(Rest::u64)?,
            waiters: fields.optional(Rest::u32)?,
        },
        WaitKind::Read | WaitKind::Write => Wait::Descriptor {
            fd: fields.i32()?,
            write: kind == WaitKind::Write,
            ends: fields.optional(|fields| {
                Ok(Box::new(Ends {
                    local: fields.text()?,
                    peer: fields.text()?,
                }))
            })?,
        },
        WaitKind::Poll => Wait::Poll { fds: fields.u32()? },
        WaitKind::Sleep => Wait::Sleep,
        WaitKind::Park => Wait::Park,
        WaitKind::Join => Wait::Join {
            thread: fields.u64()?,
        },
        WaitKind::Scope => Wait::Scope { id: fields.u64()? },
        WaitKind::Child => Wait::Child { pid: fields.i32()? },
        WaitKind::Call => Wait::Call {
            name: fields.text()?.into(),
        },
        WaitKind::Signal => Wait::Signal,
        WaitKind::Other => Wait::Other,
    })
}

fn finding(fields: &mut Rest<'_>) -> Result<Finding, DecodeError> {
    Ok(Finding {
        kind: fields.text()?,
        text: fields.text()?,
        threads: fields.list(8, Rest::u64)?,
    })
}

fn memory(fields: &mut Rest<'_>) -> Result<Memory, DecodeError> {
    Ok(Memory {
        name: fields.text()?,
        bytes: fields.u64()?,
    })
}
