//! Our own JSON: everything that a dump has. `schema/dump.schema.json` describes it.
//!
//! Times are text, as 64 bits of nanoseconds are more than JavaScript's numbers hold. Addresses are
//! text in hexadecimal. Members that do not apply are not there.

use super::json::{self, All, Done, In, Members, Object};
use crate::model::*;
use crate::names::Frame;
use crate::text::words::Time;
use crate::view::Shown;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::io::{self, Write};

/// The version of the format: it changes if members change their meaning or go.
const VERSION: u64 = 1;

/// Writes a dump.
pub(crate) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    json::write(&In(shown, shown.dump), out)?;
    out.write_all(b"\n")
}

fn time(nanos: u64) -> String {
    Time(nanos).to_string()
}

fn address(address: u64) -> String {
    format!("{address:#x}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes in hexadecimal if they are not UTF-8.
fn raw(bytes: &[u8]) -> Option<String> {
    str::from_utf8(bytes).is_err().then(|| hex(bytes))
}

impl Object<Shown<'_>> for Dump {
    fn members<M: SerializeMap>(&self, shown: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("format", "pirn-dump")?;
        out.put("version", VERSION)?;
        out.put("process", In(shown, &self.process))?;
        out.put("totals", In(shown, &self.totals))?;
        out.put("carriers", All(shown, self.carriers.iter()))?;
        out.put("modules", All(shown, self.modules.iter()))?;
        out.put("places", All(shown, self.places.iter()))?;
        out.put("stacks", All(shown, self.stacks.iter()))?;
        out.put("scopes", All(shown, self.scopes.iter()))?;
        out.put("groups", All(shown, self.groups.iter()))?;
        out.put("threads", All(shown, self.threads.iter()))?;
        out.put("findings", All(shown, self.findings.iter()))?;
        out.put("memory", All(shown, self.memory.iter()))
    }
}

impl Object<Shown<'_>> for Process {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("pid", self.pid)?;
        out.put("startedTicks", self.started)?;
        out.put("program", &self.program)?;
        out.put("runtime", &self.version)?;
        out.put("begin", time(self.begin))?;
        out.put("end", time(self.end))?;
        out.put("parallelism", self.parallelism)
    }
}

impl Object<Shown<'_>> for Totals {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("started", self.started)?;
        out.put("ended", self.ended)?;
        out.put("listed", self.listed)?;
        out.put("states", States(self.by_state))?;
        out.put("notRunYet", self.unlisted_new)?;
        out.put("unclaimed", self.unclaimed)?;
        out.put("leftOut", self.cut)
    }
}

struct States([u64; 5]);

impl Serialize for States {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(State::ALL.map(State::word).into_iter().zip(self.0))
    }
}

impl Object<Shown<'_>> for Carrier {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("number", self.number)?;
        out.put("tid", self.tid)?;
        out.put("state", self.state.word())?;
        out.maybe("thread", self.thread)?;
        out.put("spare", self.spare)
    }
}

impl Object<Shown<'_>> for Module {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("path", String::from_utf8_lossy(&self.path))?;
        out.maybe("pathBytes", raw(&self.path))?;
        out.put("buildId", hex(&self.build_id))?;
        out.put("bias", address(self.bias))?;
        out.put("start", address(self.start))?;
        out.put("end", address(self.end))
    }
}

impl Object<Shown<'_>> for Place {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("file", &self.file)?;
        out.put("line", self.line)?;
        out.put("column", self.column)
    }
}

impl Object<Shown<'_>> for Stack {
    fn members<M: SerializeMap>(&self, shown: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("end", self.end.word())?;
        out.put("frames", All(shown, shown.frames(self).into_iter()))
    }
}

impl Object<Shown<'_>> for Frame {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("address", address(self.address))?;
        out.maybe("function", self.function.as_ref())?;
        out.maybe("offset", self.offset)?;
        out.maybe("file", self.file.as_ref())?;
        out.maybe("line", self.line)?;
        out.maybe("column", self.column)?;
        out.maybe("inlined", self.inlined.then_some(true))?;
        out.maybe("module", self.module.as_ref())?;
        let module = self.module.as_ref();
        out.maybe("moduleOffset", module.map(|_| address(self.module_offset)))
    }
}

impl Object<Shown<'_>> for Scope {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("id", self.id)?;
        out.maybe("name", self.name.as_ref())?;
        out.maybe("parent", self.parent)?;
        out.maybe("owner", self.owner)?;
        out.put("cancelled", self.cancelled)?;
        out.put("subtasks", self.members)
    }
}

impl Object<Shown<'_>> for Group {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("count", self.count)?;
        out.put("state", self.state.word())?;
        out.put("wait", self.wait.word())?;
        out.put("timed", self.timed)?;
        out.maybe("stack", self.stack)?;
        out.maybe("place", self.place)?;
        out.maybe("object", self.object.map(address))?;
        out.maybe("oldest", self.oldest.map(time))?;
        out.put("examples", &self.examples)
    }
}

impl Object<Shown<'_>> for Thread {
    fn members<M: SerializeMap>(&self, shown: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        let name = self.name.as_deref();
        out.put("id", self.id)?;
        out.maybe("name", name.map(String::from_utf8_lossy))?;
        out.maybe("nameBytes", name.and_then(raw))?;
        out.put("state", self.state.word())?;
        let waits = self.wait != Wait::None;
        out.maybe("wait", waits.then_some(In(shown, &self.wait)))?;
        out.maybe("until", self.until.map(time))?;
        out.maybe("stack", self.stack)?;
        out.maybe("place", self.place)?;
        out.maybe("scope", self.scope)?;
        out.maybe("carrier", self.carrier)?;
        out.put("mounts", self.mounts)?;
        out.maybe("unmovedSince", self.unmoved_since.map(time))?;
        out.put("interrupted", self.interrupted)?;
        out.put("virtual", self.is_virtual)?;
        out.maybe("stackBytes", self.stack_bytes)?;
        let works_for = Some(&self.works_for);
        out.maybe("worksFor", works_for.filter(|names| !names.is_empty()))
    }
}

impl Object<Shown<'_>> for Wait {
    fn members<M: SerializeMap>(&self, shown: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("kind", self.kind().word())?;
        match self {
            Wait::Lock {
                address: at,
                owner,
                waiters,
                what: _,
            } => {
                out.put("address", address(*at))?;
                out.maybe("variable", shown.names.variable(*at))?;
                out.maybe("owner", *owner)?;
                out.maybe("waiters", *waiters)
            }
            Wait::Descriptor { fd, ends, write: _ } => {
                out.put("fd", fd)?;
                out.maybe("local", ends.as_ref().map(|ends| &ends.local))?;
                out.maybe("peer", ends.as_ref().map(|ends| &ends.peer))
            }
            Wait::Poll { fds } => out.put("fds", fds),
            Wait::Join { thread } => out.put("thread", thread),
            Wait::Scope { id } => out.put("scope", id),
            Wait::Child { pid } => out.put("pid", pid),
            Wait::Call { name } => out.put("function", name),
            Wait::None | Wait::Sleep | Wait::Park | Wait::Signal | Wait::Other => Ok(()),
        }
    }
}

impl Object<Shown<'_>> for Finding {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("kind", &self.kind)?;
        out.put("text", &self.text)?;
        out.put("threads", &self.threads)
    }
}

impl Object<Shown<'_>> for Memory {
    fn members<M: SerializeMap>(&self, _: &Shown<'_>, out: &mut Members<M>) -> Done<M> {
        out.put("name", &self.name)?;
        out.put("bytes", self.bytes)
    }
}
