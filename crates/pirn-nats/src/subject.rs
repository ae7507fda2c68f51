//! Where messages go: subjects made of a system's name and one's own.
//!
//! ```text
//!   pirn.<system>.actor.<name>    one actor                 pirn.<system>.node.<id>   heartbeats
//!   pirn.<system>.group.<name>    one member of a group     pirn.<system>.work.<name> durable queues
//!   pirn.<system>.topic.<name>    all subscribers           pirn.<system>.dead.<name> their dead letters
//! ```
//!
//! Any text is a name: what a subject or a key cannot hold is written as `=` and two digits a byte.

use core::fmt::Write;

/// What a subject names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Actor,
    Group,
    Topic,
    Node,
    Work,
    Dead,
}

impl Place {
    fn token(self) -> &'static str {
        match self {
            Place::Actor => "actor",
            Place::Group => "group",
            Place::Topic => "topic",
            Place::Node => "node",
            Place::Work => "work",
            Place::Dead => "dead",
        }
    }
}

/// Returns the subject of a name.
pub(crate) fn subject(system: &str, place: Place, name: &str) -> String {
    format!("pirn.{system}.{}.{}", place.token(), key(name))
}

/// Returns the subject that matches all names.
pub(crate) fn all(system: &str, place: Place) -> String {
    format!("pirn.{system}.{}.*", place.token())
}

/// Returns a name as it is written in subjects, and in keys of the registry. Dots divide it into
/// tokens, none of which is empty.
pub(crate) fn key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    let bytes = name.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let divides = at > 0 && bytes[at - 1] != b'.' && at + 1 < bytes.len();
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte == b'.' && divides {
            key.push(char::from(byte));
        } else {
            write!(key, "={byte:02x}").expect("a string takes everything");
        }
    }
    if key.is_empty() {
        key.push('=');
    }
    key
}

/// Returns a name as it is written in the name of a stream: without dots.
pub(crate) fn token(name: &str) -> String {
    key(name).replace('.', "=2e")
}

/// Returns true if this can be the name of a system: letters, digits, `-` and `_`.
pub(crate) fn is_system(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !name.is_empty() && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_name_and_no_two_are_the_same() {
        assert_eq!(key("account.7"), "account.7");
        let strange = [
            "", ".", "..", "a..b", "a.", ".a", "a b", "*", "a.>", "=", "=2e", "ä", "a.b",
        ];
        let keys: std::collections::HashSet<_> = strange.iter().map(|name| key(name)).collect();
        assert_eq!(keys.len(), strange.len(), "{keys:?}");
        for key in keys {
            assert!(key.split('.').all(|token| !token.is_empty()), "{key}");
            assert!(!key.contains(['*', '>', ' ']), "{key}");
        }
        assert_ne!(token("a.b"), token("a=2eb"));
        assert!(is_system("bank-2") && !is_system("a.b") && !is_system(""));
    }
}
