//! Saying which virtual thread panicked.

use super::current;
use crate::vthread;
use std::io::{self, Write};
use std::panic;

/// Puts a line with the virtual thread's id and name before the message of a panic. Once, at start.
///
/// `std` takes the name in its message from a place that only its own threads can fill in, and so
/// calls every virtual thread `<unnamed>`. The hook that is in place, default or the program's own,
/// runs as before; one that is set later replaces this line.
pub(crate) fn name_them() {
    if std::thread::panicking() {
        return; // The hook cannot be changed now, and is not worth failing for.
    }
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if vthread::current().is_some() {
            // Not `eprintln!`: it panics when standard error cannot be written.
            let _ = writeln!(io::stderr(), "\nin {:?}:", current());
        }
        previous(info);
    }));
}
