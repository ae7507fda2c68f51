//! Our own JSON: everything that a dump has. `schema/dump.schema.json` describes it.
//!
//! Times are text, as 64 bits of nanoseconds are more than JavaScript's numbers hold. Addresses are
//! text in hexadecimal. Members that do not apply are not there.

use super::json::{Json, Value};
use crate::model::{Group, Scope, State, Thread, Wait};
use crate::names::Frame;
use crate::text::words::Time;
use crate::view::Shown;
use std::io::{self, Write};

/// The version of the format: it changes if members change their meaning or go.
const VERSION: u64 = 1;

/// Writes a dump.
pub(crate) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let json = &mut Json::new(out);
    json.object("")?;
    json.string("format", "pirn-dump")?;
    json.number("version", VERSION)?;
    process(shown, json)?;
    totals(shown, json)?;
    carriers(shown, json)?;
    modules(shown, json)?;
    json.array("places")?;
    for place in &shown.dump.places {
        json.object("")?;
        json.string("file", &place.file)?;
        json.number("line", place.line)?;
        json.number("column", place.column)?;
        json.close()?;
    }
    json.close()?;
    stacks(shown, json)?;
    json.array("scopes")?;
    shown
        .dump
        .scopes
        .iter()
        .try_for_each(|it| scope(it, json))?;
    json.close()?;
    json.array("groups")?;
    shown
        .dump
        .groups
        .iter()
        .try_for_each(|it| group(it, json))?;
    json.close()?;
    json.array("threads")?;
    shown
        .dump
        .threads
        .iter()
        .try_for_each(|it| thread(shown, it, json))?;
    json.close()?;
    findings(shown, json)?;
    json.close()?;
    out.write_all(b"\n")
}

fn time(json: &mut Json<'_>, name: &str, nanos: Option<u64>) -> io::Result<()> {
    nanos.map_or(Ok(()), |nanos| json.string(name, Time(nanos).to_string()))
}

fn address(json: &mut Json<'_>, name: &str, address: u64) -> io::Result<()> {
    json.string(name, format!("{address:#x}"))
}

/// Writes text that need not be UTF-8, and the bytes in hexadecimal if it is not.
fn bytes(json: &mut Json<'_>, name: &str, bytes: &[u8]) -> io::Result<()> {
    json.value(name, Value::Bytes(bytes))?;
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(_) => json.string(&format!("{name}Bytes"), hex(bytes)),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn process(shown: &Shown<'_>, json: &mut Json<'_>) -> io::Result<()> {
    let process = &shown.dump.process;
    json.object("process")?;
    json.number("pid", process.pid)?;
    json.number("startedTicks", process.started)?;
    json.string("program", &process.program)?;
    json.string("runtime", &process.version)?;
    time(json, "begin", Some(process.begin))?;
    time(json, "end", Some(process.end))?;
    json.number("parallelism", process.parallelism)?;
    json.close()
}

fn totals(shown: &Shown<'_>, json: &mut Json<'_>) -> io::Result<()> {
    let totals = &shown.dump.totals;
    json.object("totals")?;
    json.number("started", totals.started)?;
    json.number("ended", totals.ended)?;
    json.number("listed", totals.listed)?;
    json.object("states")?;
    for (state, count) in State::ALL.into_iter().zip(totals.by_state) {
        json.number(state.word(), count)?;
    }
    json.close()?;
    json.number("notRunYet", totals.unlisted_new)?;
    json.number("unclaimed", totals.unclaimed)?;
    json.number("leftOut", totals.cut)?;
    json.close()
}

fn carriers(shown: &Shown<'_>, json: &mut Json<'_>) -> io::Result<()> {
    json.array("carriers")?;
    for carrier in &shown.dump.carriers {
        json.object("")?;
        json.number("number", carrier.number)?;
        json.number("tid", carrier.tid)?;
        json.string("state", carrier.state.word())?;
        json.maybe("thread", carrier.thread)?;
        json.value("spare", Value::Bool(carrier.spare))?;
        json.close()?;
    }
    json.close()
}

fn modules(shown: &Shown<'_>, json: &mut Json<'_>) -> io::Result<()> {
    json.array("modules")?;
    for module in &shown.dump.modules {
        json.object("")?;
        bytes(json, "path", &module.path)?;
        json.string("buildId", hex(&module.build_id))?;
        address(json, "bias", module.bias)?;
        address(json, "start", module.start)?;
        address(json, "end", module.end)?;
        json.close()?;
    }
    json.close()
}

fn stacks(shown: &Shown<'_>, json: &mut Json<'_>) -> io::Result<()> {
    json.array("stacks")?;
    for index in 0..shown.dump.stacks.len() {
        let Some((stack, frames)) = shown.stack(u32::try_from(index).ok()) else {
            continue;
        };
        json.object("")?;
        json.string("end", stack.end.word())?;
        json.array("frames")?;
        frames.iter().try_for_each(|it| frame(it, json))?;
        json.close()?;
        json.close()?;
    }
    json.close()
}

fn frame(frame: &Frame, json: &mut Json<'_>) -> io::Result<()> {
    json.object("")?;
    address(json, "address", frame.address)?;
    frame
        .function
        .iter()
        .try_for_each(|function| json.string("function", function))?;
    json.maybe("offset", frame.offset)?;
    frame
        .file
        .iter()
        .try_for_each(|file| json.string("file", file))?;
    json.maybe("line", frame.line)?;
    json.maybe("column", frame.column)?;
    if frame.inlined {
        json.value("inlined", Value::Bool(true))?;
    }
    if let Some(module) = &frame.module {
        json.string("module", module)?;
        address(json, "moduleOffset", frame.module_offset)?;
    }
    json.close()
}

fn scope(scope: &Scope, json: &mut Json<'_>) -> io::Result<()> {
    json.object("")?;
    json.number("id", scope.id)?;
    scope
        .name
        .iter()
        .try_for_each(|name| json.string("name", name))?;
    json.maybe("parent", scope.parent)?;
    json.maybe("owner", scope.owner)?;
    json.value("cancelled", Value::Bool(scope.cancelled))?;
    json.number("subtasks", scope.members)?;
    json.close()
}

fn group(group: &Group, json: &mut Json<'_>) -> io::Result<()> {
    json.object("")?;
    json.number("count", group.count)?;
    json.string("state", group.state.word())?;
    json.string("wait", group.wait.word())?;
    json.value("timed", Value::Bool(group.timed))?;
    json.maybe("stack", group.stack)?;
    json.maybe("place", group.place)?;
    group
        .object
        .map_or(Ok(()), |object| address(json, "object", object))?;
    time(json, "oldest", group.oldest)?;
    json.array("examples")?;
    group
        .examples
        .iter()
        .try_for_each(|index| json.number("", *index))?;
    json.close()?;
    json.close()
}

fn thread(shown: &Shown<'_>, thread: &Thread, json: &mut Json<'_>) -> io::Result<()> {
    json.object("")?;
    json.number("id", thread.id)?;
    thread
        .name
        .iter()
        .try_for_each(|name| bytes(json, "name", name))?;
    json.string("state", thread.state.word())?;
    wait(shown, &thread.wait, json)?;
    time(json, "until", thread.until)?;
    json.maybe("stack", thread.stack)?;
    json.maybe("place", thread.place)?;
    json.maybe("scope", thread.scope)?;
    json.maybe("carrier", thread.carrier)?;
    json.number("mounts", thread.mounts)?;
    time(json, "unmovedSince", thread.unmoved_since)?;
    json.value("interrupted", Value::Bool(thread.interrupted))?;
    json.value("virtual", Value::Bool(thread.is_virtual))?;
    json.maybe("stackBytes", thread.stack_bytes)?;
    if !thread.works_for.is_empty() {
        json.array("worksFor")?;
        let mut names = thread.works_for.iter();
        names.try_for_each(|name| json.string("", name))?;
        json.close()?;
    }
    json.close()
}

fn wait(shown: &Shown<'_>, wait: &Wait, json: &mut Json<'_>) -> io::Result<()> {
    if *wait == Wait::None {
        return Ok(());
    }
    json.object("wait")?;
    json.string("kind", wait.kind().word())?;
    match wait {
        Wait::Lock {
            address: at,
            owner,
            waiters,
            what: _,
        } => {
            address(json, "address", *at)?;
            shown
                .names
                .variable(*at)
                .map_or(Ok(()), |name| json.string("variable", name))?;
            json.maybe("owner", *owner)?;
            json.maybe("waiters", *waiters)?;
        }
        Wait::Descriptor { fd, ends, write: _ } => {
            json.value("fd", Value::Signed(i64::from(*fd)))?;
            if let Some(ends) = ends {
                json.string("local", &ends.local)?;
                json.string("peer", &ends.peer)?;
            }
        }
        Wait::Poll { fds } => json.number("fds", *fds)?,
        Wait::Join { thread } => json.number("thread", *thread)?,
        Wait::Scope { id } => json.number("scope", *id)?,
        Wait::Child { pid } => json.value("pid", Value::Signed(i64::from(*pid)))?,
        Wait::Call { name } => json.string("function", name)?,
        Wait::None | Wait::Sleep | Wait::Park | Wait::Signal | Wait::Other => {}
    }
    json.close()
}

fn findings(shown: &Shown<'_>, json: &mut Json<'_>) -> io::Result<()> {
    json.array("findings")?;
    for finding in &shown.dump.findings {
        json.object("")?;
        json.string("kind", &finding.kind)?;
        json.string("text", &finding.text)?;
        json.array("threads")?;
        finding
            .threads
            .iter()
            .try_for_each(|id| json.number("", *id))?;
        json.close()?;
        json.close()?;
    }
    json.close()?;
    json.array("memory")?;
    for memory in &shown.dump.memory {
        json.object("")?;
        json.string("name", &memory.name)?;
        json.number("bytes", memory.bytes)?;
        json.close()?;
    }
    json.close()
}
