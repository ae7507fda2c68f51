//! The few kinds of protocol buffers' fields that a profile needs.

/// A message that is being written.
#[derive(Default)]
pub(super) struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Writes a number. 0 is what a reader takes for a field that is not there.
    pub fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
    }

    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Writes numbers, in one piece.
    pub fn numbers(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }

    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }
}
