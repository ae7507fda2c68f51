//! The JSON of the JDK's `Thread.dump_to_file`.
//!
//! Members, their order, and which are there only if they apply, are the JDK's. What is a container
//! there is a scope here; the root has all threads that are in no scope.

use super::json::{Json, Value};
use crate::model::{LockKind, Scope, State, Thread, Wait};
use crate::scopes::{self, Placed};
use crate::text::words::Time;
use crate::view::Shown;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

/// Whose format it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edition {
    /// Of version 25: numbers of 64 bits are strings.
    Jdk25,
    /// Of version 27: they are numbers, the format has a version, and locks may have an owner.
    Jdk27,
}

struct Writer<'a> {
    json: Json<'a>,
    edition: Edition,
    shown: &'a Shown<'a>,
    time: String,
    /// The frames of stacks that have been written once: a million threads have some hundred.
    stacks: HashMap<u32, Vec<u8>>,
}

/// Writes a dump.
pub(crate) fn write(shown: &Shown<'_>, edition: Edition, out: &mut dyn Write) -> io::Result<()> {
    let dump = shown.dump;
    let time = Time(dump.process.end).to_string();
    let mut writer = Writer {
        json: Json::new(out),
        edition,
        shown,
        time,
        stacks: HashMap::new(),
    };
    let scopes = scopes::in_order(dump);
    let threads = scopes::members(dump);
    let of = |id: Option<u64>| threads.get(&id).map_or(&[][..], Vec::as_slice);
    writer.json.object("")?;
    writer.json.object("threadDump")?;
    if edition == Edition::Jdk27 {
        writer.json.number("formatVersion", 2_u64)?;
    }
    writer.long("processId", u64::from(dump.process.pid))?;
    writer.json.string("time", &writer.time)?;
    writer
        .json
        .string("runtimeVersion", &dump.process.version)?;
    writer.json.array("threadContainers")?;
    writer.container("<root>", None, None, of(None), 0)?;
    let names: HashMap<u64, String> = scopes
        .iter()
        .map(|it| (it.scope.id, name_of(it.scope)))
        .collect();
    for Placed { scope, parent, .. } in &scopes {
        let parent = parent
            .and_then(|id| names.get(&id))
            .map_or("<root>", String::as_str);
        let name = &names[&scope.id];
        writer.container(
            name,
            Some(parent),
            scope.owner,
            of(Some(scope.id)),
            scope.members,
        )?;
    }
    writer.json.close()?;
    writer.json.close()?;
    writer.json.close()
}

/// Returns a container's name, which no other has: the id is in it.
fn name_of(scope: &Scope) -> String {
    match &scope.name {
        Some(name) => format!("{name}/pirn.scope@{:x}", scope.id),
        None => format!("pirn.scope@{:x}", scope.id),
    }
}

impl Writer<'_> {
    /// Writes a number that is a `long` in Java.
    fn long(&mut self, name: &str, value: u64) -> io::Result<()> {
        match self.edition {
            Edition::Jdk25 => self.json.string(name, value.to_string()),
            Edition::Jdk27 => self.json.number(name, value),
        }
    }

    fn container(
        &mut self,
        name: &str,
        parent: Option<&str>,
        owner: Option<u64>,
        threads: &[&Thread],
        members: u64,
    ) -> io::Result<()> {
        self.json.object("")?;
        self.json.string("container", name)?;
        self.json
            .value("parent", parent.map_or(Value::Null, Value::Text))?;
        match owner {
            Some(owner) => self.long("owner", owner)?,
            None => self.json.value("owner", Value::Null)?,
        }
        self.json.array("threads")?;
        threads.iter().try_for_each(|thread| self.thread(thread))?;
        self.json.close()?;
        self.long("threadCount", members.max(threads.len() as u64))?;
        self.json.close()
    }

    fn thread(&mut self, thread: &Thread) -> io::Result<()> {
        self.json.object("")?;
        self.long("tid", thread.id)?;
        self.json.string("time", &self.time)?;
        if thread.is_virtual {
            self.json.value("virtual", Value::Bool(true))?;
        }
        self.json.value(
            "name",
            Value::Bytes(thread.name.as_deref().unwrap_or_default()),
        )?;
        self.json.string("state", state(thread))?;
        self.wait(thread)?;
        self.json.array("stack")?;
        if let Some(index) = thread.stack {
            self.frames(index)?;
        }
        self.json.close()?;
        let tid = thread.carrier.and_then(|number| {
            self.shown
                .dump
                .carriers
                .iter()
                .find(|it| it.number == number)
        });
        if let Some(carrier) = tid {
            self.long("carrier", u64::from(carrier.tid))?;
        }
        self.json.close()
    }

    fn frames(&mut self, stack: u32) -> io::Result<()> {
        let text = match self.stacks.entry(stack) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let frames = self
                    .shown
                    .stack(Some(stack))
                    .map_or_else(Vec::new, |(_, frames)| frames);
                entry.insert(Json::inside(self.json.levels(), |json| {
                    frames
                        .iter()
                        .try_for_each(|frame| json.string("", frame.to_string()))
                })?)
            }
        };
        self.json.all(text)
    }

    fn wait(&mut self, thread: &Thread) -> io::Result<()> {
        let Some(object) = object(&thread.wait) else {
            return Ok(());
        };
        let member = match &thread.wait {
            Wait::Lock {
                what: LockKind::Mutex,
                ..
            } => "blockedOn",
            Wait::Lock {
                what: LockKind::Condvar,
                ..
            } => "waitingOn",
            _ => "parkBlocker",
        };
        let owner = thread
            .wait
            .owner()
            .filter(|_| self.edition == Edition::Jdk27);
        if member == "parkBlocker" || owner.is_some() {
            self.json.object("parkBlocker")?;
            self.json.string("object", &object)?;
            if let Some(owner) = owner {
                self.long("owner", owner)?;
            }
            self.json.close()?;
        }
        if member != "parkBlocker" {
            self.json.string(member, &object)
        } else {
            Ok(())
        }
    }
}

/// Returns the state's name in Java.
fn state(thread: &Thread) -> &'static str {
    match (thread.state, &thread.wait) {
        (State::New, _) => "NEW",
        (State::Runnable | State::Running, _) => "RUNNABLE",
        (
            State::Waiting,
            Wait::Lock {
                what: LockKind::Mutex,
                ..
            },
        ) => "BLOCKED",
        (State::Waiting, _) if thread.until.is_some() => "TIMED_WAITING",
        (State::Waiting, _) => "WAITING",
        (State::Ended, _) => "TERMINATED",
    }
}

/// Returns what a thread waits for as Java names an object.
fn object(wait: &Wait) -> Option<String> {
    Some(match wait {
        Wait::Lock { address, what, .. } => format!("{}@{address:x}", what.word()),
        Wait::Descriptor { fd, .. } => format!("fd@{fd}"),
        Wait::Join { thread } => format!("join@{thread}"),
        Wait::Scope { id } => format!("pirn.scope@{id:x}"),
        Wait::Child { pid } => format!("child@{pid}"),
        Wait::Call { name } => format!("call@{name}"),
        Wait::Poll { .. } | Wait::Sleep | Wait::Park | Wait::Signal | Wait::Other | Wait::None => {
            return None;
        }
    })
}
