//! The codings.

use crate::outgoing::{Encoder, Then};
use std::io::{self, Write};

/// The names of the codings, in the order of preference.
pub(crate) const CODINGS: &[&str] = &[
    #[cfg(feature = "brotli")]
    "br",
    #[cfg(feature = "zstd")]
    "zstd",
    #[cfg(feature = "gzip")]
    "gzip",
];

/// Returns an encoder, at a level that a server can afford for each response.
pub(crate) fn of(coding: &str) -> Option<Box<dyn Encoder>> {
    match coding {
        #[cfg(feature = "brotli")]
        "br" => {
            // Quality 4, a window of 1 MiB: as fast as gzip, and shorter.
            let encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 4, 20);
            Some(Box::new(Brotli(Some(encoder))))
        }
        #[cfg(feature = "gzip")]
        "gzip" => {
            let level = flate2::Compression::new(5);
            Some(Box::new(flate2::write::GzEncoder::new(Vec::new(), level)))
        }
        #[cfg(feature = "zstd")]
        "zstd" => {
            let encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).ok()?;
            Some(Box::new(encoder))
        }
        _ => None,
    }
}

/// Writes bytes to an encoder.
fn put(encoder: &mut impl Write, bytes: &[u8], then: Then) -> io::Result<()> {
    encoder.write_all(bytes)?;
    match then {
        Then::Flush => encoder.flush(),
        Then::More | Then::End => Ok(()),
    }
}

#[cfg(feature = "gzip")]
impl Encoder for flate2::write::GzEncoder<Vec<u8>> {
    fn encode(&mut self, bytes: &[u8], then: Then, out: &mut Vec<u8>) -> io::Result<()> {
        put(self, bytes, then)?;
        if then == Then::End {
            self.try_finish()?;
        }
        out.append(self.get_mut());
        Ok(())
    }
}

/// `None`: it has ended.
#[cfg(feature = "brotli")]
struct Brotli(Option<brotli::CompressorWriter<Vec<u8>>>);

#[cfg(feature = "brotli")]
impl Encoder for Brotli {
    fn encode(&mut self, bytes: &[u8], then: Then, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(encoder) = &mut self.0 else {
            return Ok(());
        };
        put(encoder, bytes, then)?;
        match then {
            Then::End => out.extend(
                self.0
                    .take()
                    .map(|encoder| encoder.into_inner())
                    .unwrap_or_default(),
            ),
            _ => out.append(encoder.get_mut()),
        }
        Ok(())
    }
}

#[cfg(feature = "zstd")]
impl Encoder for zstd::stream::write::Encoder<'static, Vec<u8>> {
    fn encode(&mut self, bytes: &[u8], then: Then, out: &mut Vec<u8>) -> io::Result<()> {
        put(self, bytes, then)?;
        if then == Then::End {
            self.do_finish()?;
        }
        out.append(self.get_mut());
        Ok(())
    }
}
