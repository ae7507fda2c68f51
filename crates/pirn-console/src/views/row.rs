//! One thread in a list, and its stack.

use pirn_dump::{Dump, End, Frame, Names, State, Thread, Wait, show};
use serde::Serialize;

use pirn_live::Snapshot;

/// Names and waits in lists are cut to this length, in characters.
const LENGTH: usize = 160;

/// Threads and waits of a dump in words.
pub struct Words<'a>(pub &'a Snapshot);

impl Words<'_> {
    /// A thread's name, without effect on a terminal or a page.
    pub fn name(&self, id: u64) -> Option<String> {
        let name = self.0.thread(id)?.name.as_deref()?;
        Some(cut(&show::plain(name)))
    }

    /// What a thread waits for.
    pub fn wait(&self, wait: &Wait) -> String {
        let called = |id| match self.name(id) {
            Some(name) => format!("#{id} {name}"),
            None => format!("#{id}"),
        };
        show::wait(wait, &self.0.names, &called)
    }
}

/// A thread in a list.
#[derive(Serialize)]
pub struct Row {
    pub id: u64,
    pub name: Option<String>,
    pub state: &'static str,
    /// What it waits for, in words.
    pub waits: String,
    /// How long it has not moved, at least, in seconds.
    pub age: Option<f64>,
    /// How long it will wait at most, in seconds.
    pub left: Option<f64>,
    pub scope: Option<u64>,
    pub carrier: Option<u32>,
    pub interrupted: bool,
    /// The thread that has to do something for the wait to end.
    pub owner: Option<u64>,
}

impl Row {
    pub fn of(thread: &Thread, dump: &Dump, words: &Words<'_>) -> Row {
        let end = dump.process.end;
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let since = thread.unmoved_since;
        Row {
            id: thread.id,
            name: thread.name.as_deref().map(|name| cut(&show::plain(name))),
            state: thread.state.word(),
            waits: match thread.state {
                State::Waiting => cut(&words.wait(&thread.wait)),
                _ => String::new(),
            },
            age: since.map(|since| seconds(end.saturating_sub(since))),
            left: thread.until.map(|until| seconds(until.saturating_sub(end))),
            scope: thread.scope,
            carrier: thread.carrier,
            interrupted: thread.interrupted,
            owner: thread.wait.owner(),
        }
    }
}

/// Cuts a text that is too long for a list.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// A frame of a stack.
#[derive(Serialize)]
pub struct Line {
    text: String,
    /// Whether the function is the program's own.
    own: bool,
}

/// A stack.
#[derive(Serialize)]
pub struct StackView {
    pub frames: Vec<Line>,
    /// What is to be said about its end, if anything.
    end: Option<&'static str>,
    /// The first frame of the program's own, or the first one.
    pub inside: String,
}

impl StackView {
    /// Returns a stack of a dump, without the runtime's frames.
    pub fn of(index: Option<u32>, dump: &Dump, names: &Names) -> Option<StackView> {
        let stack = dump.stacks.get(index? as usize)?;
        let frames = names.shown(stack);
        let own = frames.iter().find(|frame| is_own(frame));
        let inside = own
            .or(frames.first())
            .map_or_else(String::new, |frame| cut(&short(frame)));
        let line = |frame: &&Frame| Line {
            text: show::frame(frame),
            own: is_own(frame),
        };
        Some(StackView {
            frames: frames.iter().map(line).collect(),
            end: match stack.end {
                End::Complete => None,
                End::TooDeep => Some("and deeper"),
                End::Lost => Some("what called it is not known"),
                End::Unsure => Some("read while it ran: frames may be wrong"),
                End::Switching => Some("in the middle of a switch"),
            },
            inside,
        })
    }
}

/// Whether a function is the program's own, as far as files tell: not of the standard library, of a
/// crate from a registry, or of the runtime, which has functions of C, too.
fn is_own(frame: &Frame) -> bool {
    let Some(file) = frame.file.as_deref() else {
        return false;
    };
    let shortened = show::path(file) != show::plain(file.as_bytes());
    // libc's functions: their debug information names sources that are not there.
    let of_c = file.ends_with(".c") || file.ends_with(".S");
    !shortened && !of_c && !file.starts_with("library/") && !frame.is_of_runtime()
}

/// Returns a frame without its folders: `server::handle (main.rs:12)`.
fn short(frame: &Frame) -> String {
    let name = show::plain(frame.name().as_bytes());
    match (frame.file_name(), frame.line) {
        (Some(file), Some(line)) => format!("{name} ({}:{line})", show::plain(file.as_bytes())),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_program_are_known_by_their_files() {
        let own = |file: &str| {
            is_own(&Frame {
                file: Some(file.into()),
                ..Frame::default()
            })
        };
        assert!(own("src/main.rs") && own("/x/crates/pirn-cli/src/main.rs"));
        assert!(!own("/rustc/0123/library/std/src/thread/mod.rs"));
        assert!(!own(
            "/x/.cargo/registry/src/index-1/pirn-0.1.0/src/scope.rs"
        ));
        assert!(!own("/x/crates/pirn-libc/src/time.rs"));
        assert!(!own("/x/crates/pirn-rt/src/vthread/mount.rs"));
        assert!(!is_own(&Frame::default()));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("é"), "é");
        let long = cut(&"é".repeat(LENGTH + 1));
        assert_eq!(long, format!("{}…", "é".repeat(LENGTH)));
        assert_eq!(cut(&"é".repeat(LENGTH)), "é".repeat(LENGTH));
    }
}
