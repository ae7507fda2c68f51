//! Traces in Chrome's JSON format, for viewers that do not read Perfetto's own.
//!
//! Each carrier is a row, with a slice for each turn of a virtual thread; arrows lead from wakers
//! to the woken. It is several times larger than a trace for Perfetto, and lacks states of threads.

use crate::timeline::{Event, Timeline, What};
use std::collections::HashMap;
use std::io::{self, Write};

/// Writes a trace.
///
/// # Errors
/// Those of `out`.
///
/// # Examples
/// ```
/// let mut trace = Vec::new();
/// pirn_events::json::write(&pirn_events::Timeline::default(), &mut trace)?;
/// assert!(trace.starts_with(b"{\"traceEvents\":["));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"traceEvents\":[\n")?;
    let mut json = Json {
        timeline,
        current: vec![None; timeline.rows.len()],
        arrows: HashMap::new(),
        out,
    };
    for row in 0..timeline.rows.len() {
        let name = quoted(&timeline.row_title(row));
        let name = format!(r#""name":"thread_name","args":{{"name":{name}}}"#);
        json.element("M", row, &name)?;
    }
    for event in &timeline.events {
        json.add(event)?;
    }
    for row in 0..timeline.rows.len() {
        json.end_turn(row, timeline.end, "goes on")?;
    }
    let (pid, program) = (timeline.pid, quoted(&timeline.program));
    // The last element, so that the others can all end with a comma.
    let last = format!(r#""ph":"M","pid":{pid},"tid":0,"name":"process_name""#);
    writeln!(json.out, r#"{{{last},"args":{{"name":{program}}}}}]}}"#)
}

struct Json<'a, W> {
    timeline: &'a Timeline,
    /// The thread on each row, and since when.
    current: Vec<Option<(u64, u64)>>,
    arrows: HashMap<u64, u64>,
    out: &'a mut W,
}

impl<W: Write> Json<'_, W> {
    /// Writes an element: its kind, its row, and the rest.
    fn element(&mut self, kind: &str, row: usize, rest: &str) -> io::Result<()> {
        let pid = self.timeline.pid;
        writeln!(
            self.out,
            r#"{{"ph":"{kind}","pid":{pid},"tid":{row},{rest}}},"#
        )
    }

    fn add(&mut self, event: &Event) -> io::Result<()> {
        let (row, time) = (event.row, self.micros(event.time));
        let arrow = |id: u64| format!(r#""name":"wake","cat":"wake","id":{id},"ts":{time}"#);
        match event.what {
            What::Switch { why, next } => {
                self.end_turn(row, event.time, &why.to_string())?;
                self.current[row] = (next != 0).then_some((next, event.time));
                match self.arrows.remove(&next) {
                    Some(id) => self.element("f", row, &format!(r#"{},"bp":"e""#, arrow(id))),
                    None => Ok(()),
                }
            }
            What::Wake(thread) | What::Spawn { thread, .. } => {
                let id = event.time ^ thread << 20;
                self.arrows.insert(thread, id);
                self.element("s", row, &arrow(id))
            }
            other => {
                let name = quoted(&format!("{other:?}"));
                self.element("i", row, &format!(r#""s":"t","name":{name},"ts":{time}"#))
            }
        }
    }

    /// Writes the turn of the thread that leaves a row.
    fn end_turn(&mut self, row: usize, time: u64, why: &str) -> io::Result<()> {
        let Some((thread, since)) = self.current[row].take() else {
            return Ok(());
        };
        let begin = self.micros(since);
        let length = (time - since) as f64 / 1000.0;
        let (name, why) = (quoted(&self.timeline.title(thread)), quoted(why));
        let turn = format!(r#""name":{name},"ts":{begin},"dur":{length:.3}"#);
        let args = format!(r#""args":{{"thread":{thread},"end":{why}}}"#);
        self.element("X", row, &format!("{turn},{args}"))
    }

    fn micros(&self, time: u64) -> String {
        let nanos = time.saturating_sub(self.timeline.begin);
        format!("{}.{:03}", nanos / 1000, nanos % 1000)
    }
}

/// Returns a text as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
