//! Writing protocol buffers: the few kinds of fields that traces, and the profiles of `pirn-dump`,
//! need. It is no part of this crate's API.
//!
//! A message is a row of fields, each with a key, `number << 3 | type`, and a value. Type 0 is a
//! number in groups of seven bits, the lowest first; type 1 is eight bytes; type 2 is a length and
//! that many bytes: a text, or another message.

/// A message, or the part of it that has been written.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Returns an empty message.
    pub fn new() -> Message {
        Message::default()
    }

    /// Adds a number.
    pub fn number(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field << 3));
        self.varint(value);
        self
    }

    /// Adds a number, unless it is 0, which a reader takes a missing field for.
    pub fn nonzero(self, field: u32, value: u64) -> Message {
        match value {
            0 => self,
            _ => self.number(field, value),
        }
    }

    /// Adds numbers, in one piece.
    pub fn numbers(self, field: u32, values: impl IntoIterator<Item = u64>) -> Message {
        let mut packed = Message::new();
        values.into_iter().for_each(|value| packed.varint(value));
        self.message(field, &packed)
    }

    /// Adds a number that may be negative, of type `int32` or `int64`.
    pub fn signed(self, field: u32, value: i64) -> Message {
        self.number(field, value as u64)
    }

    /// Adds a number of eight bytes.
    pub fn fixed(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field << 3 | 1));
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds a text.
    pub fn text(self, field: u32, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    /// Adds a message.
    pub fn message(self, field: u32, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8] {
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
