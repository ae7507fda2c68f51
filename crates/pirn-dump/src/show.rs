//! Pieces of text, for programs that show dumps in a way of their own.
//!
//! What comes out of here has no effect on a terminal: names are data.

use crate::model::{Dump, Group, Wait, WaitKind};
use crate::names::{Frame, Names};
use crate::text::escape::{Plain, Quoted};
use crate::text::{futex, stack, words};

/// Returns text that stays on its line, such as a path or the name of a function: control
/// characters, and those that change the direction of writing or have no width, are escaped.
///
/// # Examples
/// ```
/// assert_eq!(pirn_dump::show::plain(b"a\x1b[2J\n"), r"a\x1b[2J\n");
/// ```
pub fn plain(text: &[u8]) -> String {
    Plain(text).to_string()
}

/// Returns text in quotation marks, escaped as by [`plain`].
///
/// # Examples
/// ```
/// assert_eq!(pirn_dump::show::quoted(b"conn \"7\""), r#""conn \"7\"""#);
/// ```
pub fn quoted(text: &[u8]) -> String {
    Quoted(text).to_string()
}

/// Returns a number with commas.
///
/// # Examples
/// ```
/// assert_eq!(pirn_dump::show::count(1_000_000), "1,000,000");
/// ```
pub fn count(number: u64) -> String {
    words::Count(number).to_string()
}

/// Returns a number and what it is the number of.
///
/// # Examples
/// ```
/// use pirn_dump::show::counted;
/// assert_eq!((counted(1, "thread"), counted(2_000, "thread")), ("1 thread".into(), "2,000 threads".into()));
/// ```
pub fn counted(number: u64, what: &str) -> String {
    words::counted(number, what)
}

/// Returns a duration in nanoseconds, in two units at most.
///
/// # Examples
/// ```
/// use pirn_dump::show::duration;
/// assert_eq!((duration(400_000_000), duration(185_000_000_000)), ("0.4 s".into(), "3 min 5 s".into()));
/// ```
pub fn duration(nanos: u64) -> String {
    words::Duration(nanos).to_string()
}

/// Returns a number of bytes with a unit.
///
/// # Examples
/// ```
/// assert_eq!(pirn_dump::show::bytes(1536), "1.5 KiB");
/// ```
pub fn bytes(number: u64) -> String {
    words::Bytes(number).to_string()
}

/// Returns a frame with its place in the source; paths are shortened to what is of interest.
///
/// # Examples
/// ```
/// use pirn_dump::{Frame, show};
/// let frame = Frame { function: Some("server::handle".into()), file: Some("src/main.rs".into()), line: Some(7), ..Frame::default() };
/// assert_eq!(show::frame(&frame), "server::handle at src/main.rs:7");
/// ```
pub fn frame(frame: &Frame) -> String {
    stack::line(frame)
}

/// Returns what is of interest of the path of a source file, escaped as by [`plain`].
///
/// # Examples
/// ```
/// let path = "/root/.cargo/registry/src/some-index/tokio-1.0.0/src/lib.rs";
/// assert_eq!(pirn_dump::show::path(path), "tokio-1.0.0/src/lib.rs");
/// ```
pub fn path(path: &str) -> String {
    plain(stack::short(path).as_bytes())
}

/// Returns what a group waits for; empty if it does not wait.
///
/// # Examples
/// ```
/// assert_eq!(pirn_dump::show::kind(pirn_dump::WaitKind::Read), "to read from a descriptor");
/// ```
pub fn kind(wait: WaitKind) -> &'static str {
    words::kind(wait)
}

/// Returns what the threads of a group wait for at a futex, in a word, if their stacks tell:
/// `mutex`, `channel`.
///
/// # Examples
/// ```
/// use pirn_dump::{Dump, Group, Names, show};
/// assert_eq!(show::futex(&Group::default(), &Dump::default(), &Names::default()), None);
/// ```
pub fn futex(group: &Group, dump: &Dump, names: &Names) -> Option<&'static str> {
    futex::of_group(group, dump, names)
}

/// Returns what one thread waits for; empty if it does not wait. `called` says how to call a thread
/// by its id, and must escape its name.
///
/// # Examples
/// ```
/// use pirn_dump::{Names, Wait, show};
/// let wait = Wait::Join { thread: 7 };
/// assert_eq!(show::wait(&wait, &Names::default(), &|id| format!("#{id}")), "join #7");
/// ```
pub fn wait(wait: &Wait, names: &Names, called: &dyn Fn(u64) -> String) -> String {
    words::wait(wait, called, names)
}
