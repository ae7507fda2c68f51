//! Fields of records, written and read.

use super::{DecodeError, LONGEST_LIST, LONGEST_TEXT};

/// Appends fields to a record.
pub(super) struct Fields<'a>(pub(super) &'a mut Vec<u8>);

impl Fields<'_> {
    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes bytes and their number. What is longer than [`LONGEST_TEXT`] is cut off.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(LONGEST_TEXT)];
        self.u32(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// Writes numbers and how many they are. Those beyond [`LONGEST_LIST`] are left out.
    pub(super) fn list<T: Copy>(&mut self, list: &[T], write: impl Fn(&mut Self, T)) {
        let list = &list[..list.len().min(LONGEST_LIST)];
        self.u32(list.len() as u32);
        list.iter().for_each(|item| write(self, *item));
    }

    /// Writes texts and how many they are. Those beyond [`LONGEST_LIST`] are left out.
    pub(super) fn texts(&mut self, texts: &[String]) {
        let texts = &texts[..texts.len().min(LONGEST_LIST)];
        self.u32(texts.len() as u32);
        texts.iter().for_each(|text| self.bytes(text.as_bytes()));
    }

    /// Writes a length and then what it is the length of.
    pub(super) fn framed(&mut self, write: impl FnOnce(&mut Fields<'_>)) {
        let start = self.0.len();
        self.u32(0);
        write(&mut Fields(self.0));
        let length = (self.0.len() - start - 4) as u32;
        self.0[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// The fields of a record that have not been read.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

type Field<T> = Result<T, DecodeError>;

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Field<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| DecodeError::new("a record is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Field<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Field<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn bool(&mut self) -> Field<bool> {
        Ok(self.u8()? != 0)
    }

    pub(super) fn u32(&mut self) -> Field<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Field<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Field<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Field<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    /// Reads text. What is not UTF-8 is replaced.
    pub(super) fn text(&mut self) -> Field<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub(super) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Field<T>,
    ) -> Field<Option<T>> {
        if self.bool()? {
            read(self).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Reads what [`Fields::texts`] has written. A number that is a lie ends with the record.
    pub(super) fn texts(&mut self) -> Field<Vec<String>> {
        (0..self.u32()?).map(|_| self.text()).collect()
    }

    /// Reads a field that was added later: records of earlier versions end before it.
    pub(super) fn later<T: Default>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Field<T>,
    ) -> Field<T> {
        match self.0 {
            [] => Ok(T::default()),
            _ => read(self),
        }
    }

    /// Reads a list whose items have `size` bytes each, so that its length cannot be a lie.
    pub(super) fn list<T>(
        &mut self,
        size: usize,
        read: impl Fn(&mut Rest<'a>) -> Field<T>,
    ) -> Field<Vec<T>> {
        let length = self.u32()? as usize;
        let mut items = Rest(self.take(length.saturating_mul(size))?);
        (0..length).map(|_| read(&mut items)).collect()
    }

    /// Reads what [`Fields::framed`] has written.
    pub(super) fn framed(&mut self) -> Field<Rest<'a>> {
        self.bytes().map(Rest)
    }

    /// Reads the number of a variant.
    pub(super) fn variant<T: Copy>(&mut self, what: &str, all: &[T]) -> Field<T> {
        let number = self.u8()?;
        all.get(usize::from(number))
            .copied()
            .ok_or_else(|| DecodeError::new(format!("there is no {what} {number}")))
    }
}
