//! The JSON of the JDK's `Thread.dump_to_file`.
//!
//! Members, their order, and which are there only if they apply, are the JDK's. What is a container
//! there is a scope here; the root has all threads that are in no scope.

use super::json::{self, All, Done, In, Members, Object};
use crate::model::{LockKind, Scope, State, Thread, Wait, WaitKind};
use crate::scopes;
use crate::text::words::Time;
use crate::view::Shown;
use serde::Serialize;
use serde::ser::SerializeMap;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Whose format it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edition {
    /// Of version 25: numbers of 64 bits are strings.
    Jdk25,
    /// Of version 27: they are numbers, the format has a version, and locks may have an owner.
    Jdk27,
}

/// A number that is a `long` in Java.
#[derive(Serialize)]
#[serde(untagged)]
enum Long {
    Text(String),
    Number(u64),
}

struct Dump<'a> {
    edition: Edition,
    shown: &'a Shown<'a>,
    time: String,
    /// The names in each stack: a million threads have some hundred.
    stacks: Vec<Vec<String>>,
    containers: Vec<Container<'a>>,
}

struct Container<'a> {
    name: &'a str,
    parent: Option<&'a str>,
    owner: Option<u64>,
    members: u64,
    threads: &'a [&'a Thread],
}

#[derive(Serialize)]
struct Blocker<'a> {
    object: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Long>,
}

/// Writes a dump.
pub(crate) fn write(shown: &Shown<'_>, edition: Edition, out: &mut dyn Write) -> io::Result<()> {
    let scopes = scopes::in_order(shown.dump);
    let names: HashMap<u64, String> = scopes
        .iter()
        .map(|it| (it.scope.id, name_of(it.scope)))
        .collect();
    let threads = scopes::members(shown.dump);
    let of = |id: Option<u64>| threads.get(&id).map_or(&[][..], Vec::as_slice);
    let root = Container {
        name: "<root>",
        parent: None,
        owner: None,
        members: 0,
        threads: of(None),
    };
    let others = scopes.iter().map(|it| {
        let parent = it.parent.and_then(|id| names.get(&id));
        Container {
            name: &names[&it.scope.id],
            parent: Some(parent.map_or(root.name, String::as_str)),
            owner: it.scope.owner,
            members: it.scope.members,
            threads: of(Some(it.scope.id)),
        }
    });
    let others: Vec<_> = others.collect();
    let stacks = shown.dump.stacks.iter().map(|stack| {
        let frames = shown.frames(stack);
        frames.iter().map(ToString::to_string).collect()
    });
    let dump = Dump {
        edition,
        shown,
        time: Time(shown.dump.process.end).to_string(),
        stacks: stacks.collect(),
        containers: [root].into_iter().chain(others).collect(),
    };
    json::write(&BTreeMap::from([("threadDump", In(&dump, &dump))]), out)
}

/// Returns a container's name, which no other has: the id is in it.
fn name_of(scope: &Scope) -> String {
    match &scope.name {
        Some(name) => format!("{name}/pirn.scope@{:x}", scope.id),
        None => format!("pirn.scope@{:x}", scope.id),
    }
}

impl Dump<'_> {
    fn long(&self, value: u64) -> Long {
        match self.edition {
            Edition::Jdk25 => Long::Text(value.to_string()),
            Edition::Jdk27 => Long::Number(value),
        }
    }
}

impl Object<Dump<'_>> for Dump<'_> {
    fn members<M: SerializeMap>(&self, dump: &Dump<'_>, out: &mut Members<M>) -> Done<M> {
        let process = &dump.shown.dump.process;
        out.maybe(
            "formatVersion",
            (dump.edition == Edition::Jdk27).then_some(2),
        )?;
        out.put("processId", dump.long(process.pid.into()))?;
        out.put("time", &dump.time)?;
        out.put("runtimeVersion", &process.version)?;
        out.put("threadContainers", All(dump, dump.containers.iter()))
    }
}

impl Object<Dump<'_>> for Container<'_> {
    fn members<M: SerializeMap>(&self, dump: &Dump<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("container", self.name)?;
        out.put("parent", self.parent)?;
        out.put("owner", self.owner.map(|id| dump.long(id)))?;
        out.put("threads", All(dump, self.threads.iter().copied()))?;
        let count = self.members.max(self.threads.len() as u64);
        out.put("threadCount", dump.long(count))
    }
}

impl Object<Dump<'_>> for Thread {
    fn members<M: SerializeMap>(&self, dump: &Dump<'_>, out: &mut Members<M>) -> Done<M> {
        let name = self.name.as_deref().unwrap_or_default();
        let mut carriers = dump.shown.dump.carriers.iter();
        let carrier = carriers.find(|it| Some(it.number) == self.carrier);
        let stack = self.stack.and_then(|it| dump.stacks.get(it as usize));
        out.put("tid", dump.long(self.id))?;
        out.put("time", &dump.time)?;
        out.maybe("virtual", self.is_virtual.then_some(true))?;
        out.put("name", String::from_utf8_lossy(name))?;
        out.put("state", state(self))?;
        if let Some(object) = object(&self.wait) {
            let lock = match self.wait.kind() {
                WaitKind::Lock(LockKind::Mutex) => Some("blockedOn"),
                WaitKind::Lock(LockKind::Condvar) => Some("waitingOn"),
                _ => None,
            };
            let known = dump.edition == Edition::Jdk27;
            let owner = self.wait.owner().filter(|_| known).map(Long::Number);
            let object = object.as_str();
            if lock.is_none() || owner.is_some() {
                out.put("parkBlocker", Blocker { object, owner })?;
            }
            if let Some(member) = lock {
                out.put(member, object)?;
            }
        }
        out.put("stack", stack.map_or(&[][..], Vec::as_slice))?;
        out.maybe("carrier", carrier.map(|it| dump.long(it.tid.into())))
    }
}

/// Returns the state's name in Java.
fn state(thread: &Thread) -> &'static str {
    match (thread.state, thread.wait.kind()) {
        (State::New, _) => "NEW",
        (State::Runnable | State::Running, _) => "RUNNABLE",
        (State::Waiting, WaitKind::Lock(LockKind::Mutex)) => "BLOCKED",
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
