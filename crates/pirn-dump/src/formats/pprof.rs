//! A profile for `pprof`: how many threads have a stack, and, if the dump says it of each thread,
//! for how long they have waited.
//!
//! The numbers of fields come from `profile.proto` of github.com/google/pprof.

use crate::model::{Group, Module, State, WaitKind};
use crate::names::Frame;
use crate::view::Shown;
use flate2::Compression;
use flate2::write::GzEncoder;
use pirn_events::proto::Message;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

/// Things that are written once and have a number from then on.
struct Table<K> {
    numbers: HashMap<K, u64>,
}

impl<K: Hash + Eq> Table<K> {
    /// Returns the number of a thing, and whether it is new. Numbers begin at 1.
    fn number(&mut self, key: K) -> (u64, bool) {
        let next = self.numbers.len() as u64 + 1;
        let number = *self.numbers.entry(key).or_insert(next);
        (number, number == next)
    }
}

impl<K> Default for Table<K> {
    fn default() -> Table<K> {
        Table {
            numbers: HashMap::new(),
        }
    }
}

#[derive(Default)]
struct Profile {
    bytes: Vec<u8>,
    /// Texts by number: 0 is the empty one.
    texts: Vec<String>,
    text_numbers: Table<String>,
    functions: Table<(u64, u64)>,
    /// A location is an address with the calls that are shown of it: function and line.
    locations: Table<(u64, Vec<(u64, u64)>)>,
}

/// What groups of threads are told apart by.
type Kind = (Option<u32>, State, WaitKind, bool, Option<u32>);

/// Writes a dump.
pub(crate) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut profile = Profile::default();
    let waited = waited(shown);
    profile.value_type(1, "threads", "count");
    if waited.is_some() {
        profile.value_type(1, "waiting", "nanoseconds");
    }
    for (module, number) in shown.dump.modules.iter().zip(1..) {
        profile.mapping(module, number);
    }
    for group in &shown.dump.groups {
        let waited = waited
            .as_ref()
            .map(|waited| waited.get(&kind(group)).copied().unwrap_or(0));
        profile.sample(shown, group, waited);
    }
    let process = &shown.dump.process;
    let times = Message::new()
        .nonzero(9, process.end)
        .nonzero(10, process.end.saturating_sub(process.begin));
    profile.add(times);
    profile.value_type(11, "threads", "count");
    let threads = profile.text("threads");
    profile.add(Message::new().number(12, 1).number(14, threads));
    for text in std::iter::once(String::new()).chain(std::mem::take(&mut profile.texts)) {
        profile.add(Message::new().text(6, &text));
    }
    let mut compressed = GzEncoder::new(out, Compression::default());
    compressed.write_all(&profile.bytes)?;
    compressed.finish().map(|_| ())
}

fn kind(group: &Group) -> Kind {
    (
        group.stack,
        group.state,
        group.wait,
        group.timed,
        group.place,
    )
}

/// Returns how long the threads of each group have waited, together; None if the dump does not say
/// it, as it does from the second on.
fn waited(shown: &Shown<'_>) -> Option<HashMap<Kind, u64>> {
    let dump = shown.dump;
    if !dump.lists_all()
        || dump
            .threads
            .iter()
            .all(|thread| thread.unmoved_since.is_none())
    {
        return None;
    }
    let mut waited: HashMap<Kind, u64> = HashMap::new();
    for thread in &dump.threads {
        let timed = thread.until.is_some();
        let kind = (
            thread.stack,
            thread.state,
            thread.wait.kind(),
            timed,
            thread.place,
        );
        let nanos = thread
            .unmoved_since
            .map_or(0, |since| dump.process.end.saturating_sub(since));
        let sum = waited.entry(kind).or_default();
        // Readers take it for a signed number.
        *sum = sum.saturating_add(nanos).min(i64::MAX as u64);
    }
    Some(waited)
}

impl Profile {
    fn add(&mut self, fields: Message) {
        self.bytes.extend(fields.as_bytes());
    }

    fn text(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let (number, new) = self.text_numbers.number(text.to_string());
        if new {
            self.texts.push(text.to_string());
        }
        number
    }

    fn value_type(&mut self, field: u32, kind: &str, unit: &str) {
        let (kind, unit) = (self.text(kind), self.text(unit));
        let value_type = Message::new().nonzero(1, kind).nonzero(2, unit);
        self.add(Message::new().message(field, &value_type));
    }

    fn mapping(&mut self, module: &Module, number: u64) {
        let name = self.text(&String::from_utf8_lossy(&module.path));
        let id: String = module
            .build_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let id = self.text(&id);
        let mapping = Message::new()
            .nonzero(1, number)
            .nonzero(2, module.start)
            .nonzero(3, module.end)
            .nonzero(4, module.offset)
            .nonzero(5, name)
            .nonzero(6, id);
        // Names, files, lines and calls in calls are there: pprof need not look for them.
        let mapping = (7..=10).fold(mapping, |mapping, field| mapping.number(field, 1));
        self.add(Message::new().message(3, &mapping));
    }

    fn sample(&mut self, shown: &Shown<'_>, group: &Group, waited: Option<u64>) {
        let frames = shown
            .stack(group.stack)
            .map_or_else(Vec::new, |(_, frames)| frames);
        // A call and those that the compiler put into it are one location.
        let mut locations: Vec<u64> = frames
            .chunk_by(|inner, outer| inner.inlined && inner.address == outer.address)
            .map(|calls| self.location(shown, calls))
            .collect();
        if locations.is_empty() {
            let unknown = Frame {
                function: Some("(no stack)".into()),
                ..Frame::default()
            };
            locations.push(self.location(shown, &[&unknown]));
        }
        let place = group
            .place
            .and_then(|index| shown.dump.places.get(index as usize));
        let place = place.map(|place| format!("{}:{}", place.file, place.line));
        let name = common_name(shown, group);
        let labels: Vec<(u64, u64)> = [
            ("state", Some(group.state.word())),
            (
                "wait",
                (group.wait != WaitKind::None).then(|| group.wait.word()),
            ),
            ("name", name.as_deref()),
            ("spawned", place.as_deref()),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((self.text(key), self.text(value?))))
        .collect();
        let sample = Message::new()
            .numbers(1, locations)
            .numbers(2, std::iter::once(group.count).chain(waited));
        let sample = labels.into_iter().fold(sample, |sample, (key, value)| {
            sample.message(3, &Message::new().nonzero(1, key).nonzero(2, value))
        });
        self.add(Message::new().message(2, &sample));
    }

    /// Returns the number of a location, whose calls are innermost first.
    fn location(&mut self, shown: &Shown<'_>, calls: &[&Frame]) -> u64 {
        let lines: Vec<(u64, u64)> = calls
            .iter()
            .map(|call| (self.function(call), u64::from(call.line.unwrap_or(0))))
            .collect();
        let address = calls[0].address;
        let (number, new) = self.locations.number((address, lines.clone()));
        if new {
            let modules = &shown.dump.modules;
            let mapping = modules
                .iter()
                .position(|it| (it.start..it.end).contains(&address));
            let location = Message::new()
                .nonzero(1, number)
                .nonzero(2, mapping.map_or(0, |index| index as u64 + 1))
                .nonzero(3, address);
            let location = lines.iter().fold(location, |location, (function, line)| {
                let line = Message::new().nonzero(1, *function).nonzero(2, *line);
                location.message(4, &line)
            });
            self.add(Message::new().message(4, &location));
        }
        number
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let name = self.text(&frame.name());
        let file = self.text(frame.file.as_deref().unwrap_or(""));
        let (number, new) = self.functions.number((name, file));
        if new {
            // Without a system's name (3) pprof takes the name as it is. With the same one it
            // removes what is between < and >.
            let function = Message::new()
                .nonzero(1, number)
                .nonzero(2, name)
                .nonzero(4, file);
            self.add(Message::new().message(5, &function));
        }
        number
    }
}

/// Returns the name of a group's threads, if the dump has them all and they have the same.
fn common_name(shown: &Shown<'_>, group: &Group) -> Option<String> {
    let mut members = group
        .examples
        .iter()
        .filter_map(|index| shown.dump.threads.get(*index as usize));
    let first = members.next()?.name.as_deref()?;
    let all = group.count == group.examples.len() as u64;
    let same = all && members.all(|thread| thread.name.as_deref() == Some(first));
    same.then(|| String::from_utf8_lossy(first).into_owned())
}
