//! Certificates from files, and which of them a client gets.

use super::Pair;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The certificates of a file, in its order.
pub(super) struct Certificates(pub(super) Vec<CertificateDer<'static>>);

impl Certificates {
    /// Reads the certificates of a file in PEM.
    ///
    /// # Errors
    /// If the file cannot be read, or has none.
    pub(super) fn read(path: &Path) -> io::Result<Certificates> {
        let all =
            CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        match all {
            Ok(all) if all.is_empty() => Err(bad(path, "there is no certificate in it")),
            Ok(all) => Ok(Certificates(all)),
            Err(error) => Err(unreadable(path, error)),
        }
    }
}

/// Reads a certificate and its key.
///
/// # Errors
/// If a file cannot be read, or they do not belong together.
pub(super) fn read(pair: &Pair, provider: &CryptoProvider) -> io::Result<Arc<CertifiedKey>> {
    let certificates = Certificates::read(&pair.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&pair.key);
    let key = key.map_err(|error| unreadable(&pair.key, error))?;
    let both = CertifiedKey::from_der(certificates.0, key, provider);
    both.map(Arc::new).map_err(|error| bad(&pair.key, error))
}

fn unreadable(path: &Path, error: pem::Error) -> io::Error {
    match error {
        pem::Error::Io(error) => {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        }
        error => bad(path, error),
    }
}

/// Returns the error about a file that has something wrong in it.
pub(super) fn bad(path: &Path, why: impl Display) -> io::Error {
    let text = format!("{}: {why}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Certificates by the names that clients ask for.
#[derive(Debug, Default)]
pub(super) struct ByName {
    pub(super) default: Option<Arc<CertifiedKey>>,
    exact: HashMap<String, Arc<CertifiedKey>>,
    /// By what follows the first label.
    wildcards: HashMap<String, Arc<CertifiedKey>>,
}

impl ByName {
    pub(super) fn insert(&mut self, name: &str, key: Arc<CertifiedKey>) {
        match name.strip_prefix("*.") {
            Some(rest) => self.wildcards.insert(rest.to_owned(), key),
            None => self.exact.insert(name.to_owned(), key),
        };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.default.is_none() && self.exact.is_empty() && self.wildcards.is_empty()
    }

    fn find(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        let wildcard = || self.wildcards.get(name.split_once('.')?.1);
        self.exact.get(&name).or_else(wildcard)
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello.server_name().and_then(|name| self.find(name));
        named.or(self.default.as_ref()).cloned()
    }
}
