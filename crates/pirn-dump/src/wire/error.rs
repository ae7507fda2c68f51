//! Why bytes are no dump.

use std::{error, fmt, io};

/// Why bytes could not be read as a dump.
///
/// # Examples
/// ```
/// let error = pirn_dump::Dump::read_from(&b"GET / HTTP/1.1"[..]).unwrap_err();
/// assert_eq!(error.to_string(), "not a dump: it begins with other bytes than PIRNDUMP");
/// ```
#[derive(Debug)]
pub struct DecodeError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    /// The block and the offset of its first byte, if it was in one.
    block: Option<(&'static str, u64)>,
    message: String,
    source: Option<io::Error>,
}

impl DecodeError {
    pub(super) fn new(message: impl Into<String>) -> DecodeError {
        DecodeError(Box::new(Inner {
            block: None,
            message: message.into(),
            source: None,
        }))
    }

    /// Says in which block it happened.
    pub(super) fn within(mut self, block: &'static str, offset: u64) -> DecodeError {
        self.0.block.get_or_insert((block, offset));
        self
    }

    /// Returns the reader's error, if it was one.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

impl From<io::Error> for DecodeError {
    fn from(error: io::Error) -> DecodeError {
        let message = if error.kind() == io::ErrorKind::UnexpectedEof {
            "the dump is incomplete: it stops before its end block".to_string()
        } else {
            format!("the dump could not be read: {error}")
        };
        DecodeError(Box::new(Inner {
            block: None,
            message,
            source: Some(error),
        }))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match self.0.block {
            Some((block, offset)) => write!(f, " (in the block `{block}` at byte {offset})"),
            None => Ok(()),
        }
    }
}

impl error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.0.source.as_ref().map(|error| error as _)
    }
}
