//! A request: one line, `pirn 1 COMMAND key=value …`.

use std::fmt;

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// Bytes of the longest request, with the end of its line.
pub(super) const LONGEST: usize = 4096;

/// Why a request is refused, in words.
#[derive(Debug, PartialEq)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for std::io::Error {
    fn from(refusal: Refusal) -> Self {
        std::io::Error::new(std::io::ErrorKind::InvalidInput, refusal)
    }
}

/// See the module's documentation.
#[derive(Debug, PartialEq)]
pub struct Request<'a> {
    pub command: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    /// Parses a line, without its end.
    pub fn parse(line: &'a [u8]) -> Result<Request<'a>, Refusal> {
        let refusal = |text: String| Err(Refusal(text));
        let Ok(line) = core::str::from_utf8(line) else {
            return refusal("the request is not text".into());
        };
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        if words.next() != Some("pirn") {
            return refusal("this is no request of pirn's tools".into());
        }
        let version = words.next().unwrap_or_default();
        if version.parse() != Ok(VERSION) {
            return refusal(format!(
                "this process speaks version {VERSION} of the protocol, the tool version {version:?}"
            ));
        }
        let Some(command) = words.next() else {
            return refusal("the request has no command".into());
        };
        let mut pairs = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some((key, _)) if pairs.iter().any(|(other, _)| *other == key) => {
                    return refusal(format!("{key} is there twice"));
                }
                Some(pair) => pairs.push(pair),
                None => return refusal(format!("{word:?} is not key=value")),
            }
        }
        Ok(Request { command, pairs })
    }

    /// Checks that there are no other keys than these.
    pub(super) fn check_keys(&self, keys: &[&str]) -> Result<(), Refusal> {
        match self.pairs.iter().find(|(key, _)| !keys.contains(key)) {
            None => Ok(()),
            Some((key, _)) => Err(Refusal(format!("{} has no {key}", self.command))),
        }
    }

    /// Returns the value of a key, if it is there.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        let mut pairs = self.pairs.iter();
        pairs.find(|(other, _)| *other == key).map(|pair| pair.1)
    }

    /// Returns the value of a key, if it is there, as a number.
    pub fn number(&self, key: &str) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Some(number)),
            _ => Err(Refusal(format!("{key} is {text:?}, not a number"))),
        }
    }
}

#[cfg(test)]
mod tests;
