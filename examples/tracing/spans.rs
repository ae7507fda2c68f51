//! A small subscriber for `tracing`: writes a line per event, with the spans that it is in.
//!
//! * Which spans a thread has entered is in a thread-local: a stack, which belongs to the thread,
//!   virtual or platform, and not to the carrier. It costs a thread one small allocation.
//! * Name, fields and parent of a span are in a map, since it may be entered, cloned and closed on
//!   other threads than the one that made it. The map is in parts, each with its lock, so that
//!   threads seldom meet. No line is written under a lock.
//!
//! Filters, layers and timestamps are left out; `enabled` is the place for a filter.
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

thread_local! {
    /// The spans that this thread has entered, the innermost last.
    static ENTERED: RefCell<Vec<Id>> = const { RefCell::new(Vec::new()) };
}

/// Parts of the map.
const PARTS: u64 = 64;

/// See the head of this file.
pub struct Spans<W> {
    write: W,
    next: AtomicU64,
    parts: [Mutex<HashMap<u64, Span>>; PARTS as usize],
}

/// A span that has not been closed.
struct Span {
    metadata: &'static Metadata<'static>,
    fields: String,
    parent: Option<Id>,
    /// The handles of the program, and the spans in this one.
    references: usize,
}

impl<W: Fn(&str)> Spans<W> {
    /// Returns a subscriber that calls `write` with each line.
    pub fn new(write: W) -> Spans<W> {
        Spans {
            write,
            next: AtomicU64::new(1),
            parts: std::array::from_fn(|_| Mutex::default()),
        }
    }

    fn part(&self, span: &Id) -> MutexGuard<'_, HashMap<u64, Span>> {
        let part = &self.parts[(span.into_u64() % PARTS) as usize];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` with a span, under a lock.
    fn with<R>(&self, span: &Id, f: impl FnOnce(&mut Span) -> R) -> Option<R> {
        self.part(span).get_mut(&span.into_u64()).map(f)
    }

    /// Returns the text of a span and those around it, the outermost first.
    fn path(&self, innermost: Option<Id>) -> String {
        let mut names = Vec::new();
        let mut next = innermost;
        while let Some(id) = next.take() {
            self.with(&id, |span| {
                names.push(format!("{}{{{}}}: ", span.metadata.name(), span.fields));
                next = span.parent.clone();
            });
        }
        names.into_iter().rev().collect()
    }
}

/// Returns the innermost span that the running thread has entered.
fn innermost() -> Option<Id> {
    // At the very end of a thread, in a destructor of another thread-local, `ENTERED` is gone.
    let last = ENTERED.try_with(|entered| entered.borrow().last().cloned());
    last.ok().flatten()
}

impl<W: Fn(&str) + Send + Sync + 'static> Subscriber for Spans<W> {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, new: &Attributes<'_>) -> Id {
        let id = Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed));
        let contextual = || new.is_contextual().then(innermost).flatten();
        let parent = new.parent().cloned().or_else(contextual);
        if let Some(parent) = &parent {
            self.clone_span(parent);
        }
        let mut fields = Fields::default();
        new.record(&mut fields);
        let span = Span {
            metadata: new.metadata(),
            fields: fields.text,
            parent,
            references: 1,
        };
        self.part(&id).insert(id.into_u64(), span);
        id
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.with(span, |span| fields.append_to(&mut span.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let contextual = || event.is_contextual().then(innermost).flatten();
        let path = self.path(event.parent().cloned().or_else(contextual));
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level();
        let (message, text) = (&fields.message, &fields.text);
        let blank = if message.is_empty() || text.is_empty() {
            ""
        } else {
            " "
        };
        (self.write)(&format!("{level} {path}{message}{blank}{text}"));
    }

    fn enter(&self, span: &Id) {
        let _ = ENTERED.try_with(|entered| entered.borrow_mut().push(span.clone()));
    }

    fn exit(&self, span: &Id) {
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            // Mostly the last; guards may be dropped in another order.
            if let Some(at) = entered.iter().rposition(|id| id == span) {
                entered.remove(at);
            }
        });
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.with(span, |span| span.references += 1);
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut part = self.part(&span);
        let Some(known) = part.get_mut(&span.into_u64()) else {
            return false;
        };
        known.references -= 1;
        if known.references > 0 {
            return false;
        }
        let closed = part.remove(&span.into_u64());
        drop(part);
        if let Some(parent) = closed.and_then(|span| span.parent) {
            self.try_close(parent);
        }
        true
    }

    fn current_span(&self) -> Current {
        let known = innermost().and_then(|id| Some((self.with(&id, |s| s.metadata)?, id)));
        known.map_or_else(Current::none, |(metadata, id)| Current::new(id, metadata))
    }
}

/// The fields of a span or an event as text: `a=1 b="x"`. The message is apart.
#[derive(Default)]
struct Fields {
    message: String,
    text: String,
}

impl Fields {
    /// Adds the text to another.
    fn append_to(self, text: &mut String) {
        if !text.is_empty() && !self.text.is_empty() {
            text.push(' ');
        }
        text.push_str(&self.text);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a `String` does not fail.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            let blank = if self.text.is_empty() { "" } else { " " };
            write!(self.text, "{blank}{}={value:?}", field.name())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tracing::{Dispatch, dispatcher, info, info_span};

    type Lines = Arc<Mutex<Vec<String>>>;

    /// Calls `f` with a subscriber that keeps lines. Returns them, and the number of spans left.
    fn lines(f: impl FnOnce()) -> (Vec<String>, usize) {
        fn keep(lines: Lines) -> Spans<impl Fn(&str) + Send + Sync> {
            Spans::new(move |line: &str| lines.lock().unwrap().push(line.to_owned()))
        }
        fn left<W: Fn(&str) + Send + Sync + 'static>(
            dispatch: &Dispatch,
            _: fn(Lines) -> Spans<W>,
        ) -> usize {
            let spans = dispatch.downcast_ref::<Spans<W>>().unwrap();
            spans
                .parts
                .iter()
                .map(|part| part.lock().unwrap().len())
                .sum()
        }
        let lines = Lines::default();
        let dispatch = Dispatch::new(keep(Arc::clone(&lines)));
        dispatcher::with_default(&dispatch, f);
        let left = left(&dispatch, keep);
        (lines.lock().unwrap().clone(), left)
    }

    #[test]
    fn spans_nest_and_end() {
        let (lines, left) = lines(|| {
            info!("outside");
            let outer = info_span!("outer", a = 1, late = tracing::field::Empty);
            let guard = outer.clone().entered();
            outer.record("late", "x");
            info_span!("inner").in_scope(|| info!(b = 2, "deep"));
            info!(parent: None, "root");
            drop(guard);
            info!(parent: &outer, "explicit");
            info!("after");
        });
        let expected = [
            "INFO outside",
            "INFO outer{a=1 late=\"x\"}: inner{}: deep b=2",
            "INFO root",
            "INFO outer{a=1 late=\"x\"}: explicit",
            "INFO after",
        ];
        assert_eq!(lines, expected);
        assert_eq!(left, 0, "spans without a reference");
    }
}
