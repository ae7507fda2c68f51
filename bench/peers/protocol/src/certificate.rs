//! The certificate of a server that speaks TLS, which the harness makes.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// Where the certificate of a server and its key are, both in PEM.
#[derive(Debug)]
pub struct Certificate {
    /// The file with the certificate.
    pub chain: PathBuf,
    /// The file with its key.
    pub key: PathBuf,
}

impl Certificate {
    /// Finds it by the environment variables `BENCH_CERTIFICATE` and `BENCH_KEY`.
    ///
    /// # Errors
    ///
    /// If one of them is missing.
    pub fn from_environment() -> Result<Certificate> {
        let path = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.with_context(|| format!("the environment variable {name} is missing"))
        };
        Ok(Certificate {
            chain: path("BENCH_CERTIFICATE")?,
            key: path("BENCH_KEY")?,
        })
    }
}
