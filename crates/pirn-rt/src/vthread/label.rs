//! A thread's id and name, copied without allocating: for messages about threads that are looked at
//! under a lock or a claim.

use super::platform::Platform;
use super::record::Core;
use core::fmt;

/// The bytes of a name that are kept.
const MOST: usize = 47;

/// See the module's documentation.
#[derive(Clone, Copy)]
pub struct Label {
    pub id: u64,
    name: [u8; MOST],
    len: u8,
}

impl Label {
    /// Returns the label of a virtual thread.
    #[inline]
    pub fn of(core: &Core) -> Label {
        core.with_name(|name| Label::new(core.id(), name))
    }

    /// Returns the label of a platform thread.
    #[inline]
    pub fn of_platform(platform: &Platform) -> Label {
        Label::new(platform.id, platform.thread.name())
    }

    pub fn new(id: u64, name: Option<&str>) -> Label {
        let name = name.unwrap_or_default();
        let mut bytes = [0; MOST];
        let len = name.floor_char_boundary(MOST);
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        Label {
            id,
            name: bytes,
            len: len as u8,
        }
    }

    /// Returns the name, as far as it is kept; empty if the thread has none.
    #[inline]
    pub(crate) fn name(&self) -> &str {
        core::str::from_utf8(&self.name[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// `#7 "name"`, with special characters escaped.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.id)?;
        match self.name() {
            "" => Ok(()),
            name => write!(f, " {name:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Label;

    #[test]
    fn names_are_cut_at_letters_and_escaped() {
        assert_eq!(Label::new(7, None).to_string(), "#7");
        assert_eq!(
            Label::new(7, Some("a\n\u{1b}")).to_string(),
            "#7 \"a\\n\\u{1b}\""
        );
        let long = "é".repeat(40);
        assert_eq!(Label::new(7, Some(&long)).name(), "é".repeat(23));
    }
}
