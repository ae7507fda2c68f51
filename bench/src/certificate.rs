//! A certificate for the servers that speak TLS: made anew for each run, signed by itself, for
//! 127.0.0.1.

use anyhow::Result;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::fs;
use std::path::{Path, PathBuf};

/// The files with a certificate and its key, in PEM.
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificate {
    /// Returns the one in this folder, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// If it cannot be made or written.
    pub fn in_folder(folder: &Path) -> Result<Certificate> {
        let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
        if !certificate.exists() {
            let CertifiedKey { cert, signing_key } =
                generate_simple_self_signed(["127.0.0.1".to_owned()])?;
            fs::write(&key, signing_key.serialize_pem())?;
            fs::write(&certificate, cert.pem())?;
        }
        Ok(Certificate { certificate, key })
    }

    /// Returns the environment variables by which the peers find it.
    pub fn environment(self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("BENCH_CERTIFICATE", self.certificate),
            ("BENCH_KEY", self.key),
        ]
    }
}

#[cfg(test)]
mod tests;
