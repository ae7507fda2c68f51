//! Reading a recording. `crates/pirn-observe/src/events/stream.rs` writes it, and says how.

use crate::recording::{Carrier, Clocks, Place, Recording, Scope, Segment};
use std::fmt;
use std::io::{self, Read};

const MAGIC: &[u8; 8] = b"PIRNEVTS";
const VERSION: u32 = 1;
/// No section is longer: the writer copies 64 KiB of slots at once.
const LONGEST: u32 = 16 << 20;

/// Why a recording could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// It could not be read at all.
    Io(io::Error),
    /// It is something else.
    NotARecording,
    /// It has another version than 1.
    Version(u32),
    /// A section is malformed; its tag.
    Malformed(u32),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => error.fmt(f),
            ReadError::NotARecording => f.write_str("this is not a recording of events"),
            ReadError::Version(version) => write!(
                f,
                "the recording has version {version}, and this program reads version {VERSION}"
            ),
            ReadError::Malformed(tag) => write!(f, "the recording's section {tag} is malformed"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

impl Recording {
    /// Reads a recording to its end. One that breaks off is read as far as it goes.
    ///
    /// # Errors
    /// See [`ReadError`].
    ///
    /// # Examples
    /// ```
    /// let mut bytes = b"PIRNEVTS".to_vec();
    /// bytes.extend(1u32.to_le_bytes());
    /// let recording = pirn_events::Recording::read(&mut bytes.as_slice())?;
    /// assert!(!recording.complete);
    /// # Ok::<(), pirn_events::ReadError>(())
    /// ```
    pub fn read(from: &mut impl Read) -> Result<Recording, ReadError> {
        let mut head = [0; 12];
        if fill(from, &mut head)? < head.len() || head[..8] != *MAGIC {
            return Err(ReadError::NotARecording);
        }
        let version = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if version != VERSION {
            return Err(ReadError::Version(version));
        }
        let mut recording = Recording::default();
        let mut bytes = Vec::new();
        loop {
            let mut head = [0; 8];
            if fill(from, &mut head)? < head.len() {
                return Ok(recording);
            }
            let mut fields = Fields(&head);
            let (Some(tag), Some(length)) = (fields.u32(), fields.u32()) else {
                return Ok(recording);
            };
            if length > LONGEST {
                return Err(ReadError::Malformed(tag));
            }
            bytes.clear();
            // Not more memory than there are bytes.
            if from.take(length.into()).read_to_end(&mut bytes)? < length as usize {
                return Ok(recording);
            }
            recording
                .add(tag, Fields(&bytes))
                .ok_or(ReadError::Malformed(tag))?;
        }
    }

    /// Adds a section. Returns `None` if it is malformed.
    fn add(&mut self, tag: u32, mut fields: Fields<'_>) -> Option<()> {
        match tag {
            1 => {
                self.pid = fields.u32()?;
                let _carriers = fields.u32()?;
                self.counter = fields.u32()? != 0;
                let length = fields.u32()?;
                self.program = fields.take(length as usize)?.to_vec();
                self.reason = fields.text();
            }
            2 => self.clocks.push(Clocks {
                stamp: fields.u64()?,
                monotonic: fields.u64()?,
                real: fields.u64()?,
            }),
            3 => self.add_slots(fields)?,
            4 => {
                self.lost += fields.u64()?;
                let events = fields.0.chunks_exact(40);
                self.outside.extend(events.map(words::<5>));
            }
            5 => {
                let address = fields.u64()?;
                let (line, column) = (fields.u32()?, fields.u32()?);
                let file = fields.text();
                self.places.insert(address, Place { file, line, column });
            }
            6 => self.scopes.push(Scope {
                id: fields.u64()?,
                parent: fields.u64()?,
                owner: fields.u64()?,
                name: fields.text(),
            }),
            7 => self.complete = true,
            8 => {
                let id = fields.u64()?;
                self.names.insert(id, fields.text());
            }
            9 => {
                let carrier = fields.u32()?;
                self.mounted.insert(carrier, fields.u64()?);
            }
            _ => {}
        }
        Some(())
    }

    fn add_slots(&mut self, mut fields: Fields<'_>) -> Option<()> {
        let (number, tid) = (fields.u32()?, fields.u32()?);
        let (first, lost) = (fields.u64()?, fields.u64()?);
        self.lost = self.lost.saturating_add(lost);
        let slots = fields.0.chunks_exact(16).map(words::<2>).collect();
        let carrier: &mut Carrier = self.carriers.entry(number).or_default();
        carrier.tid = tid;
        match carrier.segments.last_mut() {
            // An event may be in both.
            Some(last)
                if lost == 0 && last.first.checked_add(last.slots.len() as u64) == Some(first) =>
            {
                last.slots.extend::<Vec<_>>(slots);
            }
            _ => carrier.segments.push(Segment { first, lost, slots }),
        }
        Some(())
    }
}

/// Reads until `place` is full or there is no more. Returns the number of bytes.
fn fill(from: &mut impl Read, place: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < place.len() {
        match from.read(&mut place[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    std::array::from_fn(|i| Fields(&bytes[8 * i..]).u64().unwrap_or(0))
}

/// What is left of a section.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Returns the rest.
    fn text(&self) -> String {
        String::from_utf8_lossy(self.0).into_owned()
    }
}

#[cfg(test)]
mod tests;
