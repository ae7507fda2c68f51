//! What a futex belongs to, by the functions that a thread has called to wait.

use crate::model::{Dump, Group, LockKind, WaitKind};
use crate::names::{Names, PATHS};

/// The crates that wait at futexes on behalf of the program; the runtime's are among them.
const LIBRARIES: [&str; 8] = [
    "std::",
    "core::",
    "alloc::",
    "parking_lot",
    "lock_api::",
    "crossbeam_",
    "flume::",
    "once_cell::",
];

/// Parts of paths, and what a function with one waits for. The first counts: a condition variable
/// has a mutex, a channel parks.
const PARTS: [(&str, &str); 10] = [
    ("::mpsc", "channel"),
    ("::mpmc", "channel"),
    ("crossbeam_channel", "channel"),
    ("flume", "channel"),
    ("condvar", "condvar"),
    ("barrier", "barrier"),
    ("rwlock", "rwlock"),
    ("once", "once"),
    ("mutex", "mutex"),
    ("park", "park"),
];

/// Returns what the threads of a group wait for that wait for a futex, in a word, such as `mutex`
/// or `channel`: what the outermost function of a library says that the program has called.
pub(crate) fn of_group(group: &Group, dump: &Dump, names: &Names) -> Option<&'static str> {
    if group.wait != WaitKind::Lock(LockKind::Futex) {
        return None;
    }
    let frames = names.shown(dump.stacks.get(group.stack? as usize)?);
    let functions = frames.iter().map(|frame| frame.function.as_deref());
    of(functions)
}

fn of<'a>(functions: impl Iterator<Item = Option<&'a str>>) -> Option<&'static str> {
    // The path of a type or function, without what it is generic over.
    let path = |name: &'a str| {
        let name = name.trim_start_matches('<');
        name.split(['<', '>', ' ', '{']).next().unwrap_or(name)
    };
    let functions = functions.map(|name| name.map_or("", path));
    let of_library = |path: &&str| {
        !path.contains("::")
            || LIBRARIES
                .iter()
                .chain(&PATHS)
                .any(|library| path.starts_with(library))
    };
    let said = functions.take_while(of_library).filter_map(|path| {
        let path = path.to_ascii_lowercase();
        PARTS.iter().find(|(part, _)| path.contains(part))
    });
    said.last().map(|(_, word)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_function_of_a_library_says_what_it_is() {
        let stack = |functions: &[&'static str]| of(functions.iter().map(|name| Some(*name)));
        let park = [
            "syscall",
            "std::sys::pal::unix::futex::futex_wait",
            "std::sys::sync::thread_parking::futex::Parker::park",
            "std::thread::park",
        ];
        let channel = [
            "<std::sync::mpmc::context::Context>::wait_until",
            "<std::thread::local::LocalKey<core::cell::Cell<u8>>>::try_with",
            "<std::sync::mpsc::Receiver<u8> as shop::Orders>::next",
        ];
        let lock = [
            "syscall",
            "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
            "<std::sync::poison::mutex::Mutex<std::sync::mpsc::Receiver<u8>>>::lock",
            "shop::worker",
            "std::sync::mpsc::outer",
        ];
        let wait = [
            "syscall",
            "<std::sync::poison::condvar::Condvar>::wait::<Mutex>",
            "a::b",
        ];
        assert_eq!(stack(&park), Some("park"));
        assert_eq!(stack(&[&park[..], &channel].concat()), Some("channel"));
        assert_eq!(stack(&lock), Some("mutex"));
        assert_eq!(stack(&wait), Some("condvar"));
        assert_eq!(stack(&["syscall", "shop::main"]), None);
    }
}
