//! Writing protocol buffers: the few kinds of fields that traces need.
//!
//! A message is a row of fields, each with a key, `number << 3 | type`, and a value. Type 0 is a
//! number in groups of seven bits, the lowest first; type 1 is eight bytes; type 2 is a length and
//! that many bytes: a text, or another message.

/// A message, or the part of it that has been written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Returns an empty message.
    pub(crate) fn new() -> Message {
        Message::default()
    }

    /// Adds a number.
    pub(crate) fn number(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field << 3));
        self.varint(value);
        self
    }

    /// Adds a number that may be negative, of type `int32` or `int64`.
    pub(crate) fn signed(self, field: u32, value: i64) -> Message {
        self.number(field, value as u64)
    }

    /// Adds a number of eight bytes.
    pub(crate) fn fixed(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field << 3 | 1));
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds a text.
    pub(crate) fn text(self, field: u32, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    /// Adds a message.
    pub(crate) fn message(self, field: u32, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }

    /// Returns its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Message {
        self.varint(u64::from(field << 3 | 2));
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
