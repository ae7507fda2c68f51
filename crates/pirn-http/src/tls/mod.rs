//! TLS: certificates by name, certificates of clients, both read again while the server serves.

mod certificates;
mod stream;

use certificates::{ByName, Certificates};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
pub(crate) use stream::{Farewell, TlsStream};

/// The protocols that a client may choose from, the best first.
#[cfg(feature = "http2")]
const PROTOCOLS: [&[u8]; 2] = [HTTP_2, b"http/1.1"];
#[cfg(not(feature = "http2"))]
const PROTOCOLS: [&[u8]; 1] = [b"http/1.1"];

/// The name of HTTP/2 in TLS.
pub(crate) const HTTP_2: &[u8] = b"h2";

/// The server's side of TLS 1.2 and 1.3: with it, a [`Listener`](crate::Listener) speaks HTTPS.
///
/// Clones share their certificates: [`reload`](Self::reload) changes them for connections to come.
///
/// # Examples
/// ```no_run
/// use pirn_http::{Request, Server, Tls};
/// #[pirn::main]
/// fn main() -> std::io::Result<()> {
///     let tls = Tls::builder()
///         .certificate("example.org.pem", "example.org.key")
///         .certificate_for("*.example.net", "example.net.pem", "example.net.key")
///         .build()?;
///     Server::new()
///         .get("/", || "Hello, World!")
///         .bind_tls("0.0.0.0:443", &tls)?
///         .serve()
/// }
/// ```
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    /// `None` if the configuration comes from elsewhere.
    files: Option<TlsBuilder>,
    current: RwLock<Configs>,
}

/// A configuration, and the same with fewer protocols.
struct Configs {
    all: Arc<ServerConfig>,
    http1: Arc<ServerConfig>,
    no_http: Arc<ServerConfig>,
}

/// Which of a configuration's protocols clients may choose from.
#[derive(Clone, Copy)]
pub(crate) enum Offered {
    All,
    /// All but HTTP/2.
    Http1,
    /// None of HTTP.
    NoHttp,
}

impl From<Arc<ServerConfig>> for Configs {
    fn from(all: Arc<ServerConfig>) -> Configs {
        let without = |left_out: &[&[u8]]| {
            let mut config = Arc::clone(&all);
            let is_left_out = |name: &Vec<u8>| left_out.contains(&name.as_slice());
            if all.alpn_protocols.iter().any(is_left_out) {
                let config = Arc::make_mut(&mut config);
                config.alpn_protocols.retain(|name| !is_left_out(name));
            }
            config
        };
        let (http1, no_http) = (without(&[HTTP_2]), without(&[HTTP_2, b"http/1.1"]));
        Configs {
            all,
            http1,
            no_http,
        }
    }
}

impl Tls {
    /// Returns a builder without certificates.
    pub fn builder() -> TlsBuilder {
        TlsBuilder::default()
    }

    /// Reads a certificate, with its issuers' certificates behind it, and its key, from files in
    /// PEM.
    ///
    /// # Errors
    /// If a file cannot be read, has no certificate or key, or they do not belong together.
    pub fn from_files(certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> io::Result<Tls> {
        Tls::builder().certificate(certificate, key).build()
    }

    /// Uses a configuration of rustls as it is. It should offer `h2` and `http/1.1` by ALPN.
    /// Servers [without HTTP/2](crate::Server::http2) leave out `h2`.
    pub fn from_config(config: impl Into<Arc<ServerConfig>>) -> Tls {
        Tls(Arc::new(Shared {
            files: None,
            current: RwLock::new(config.into().into()),
        }))
    }

    /// Reads the files again, for connections to come. The present connections go on.
    ///
    /// # Errors
    /// As [`from_files`](Self::from_files). Then the certificates stay as they are.
    pub fn reload(&self) -> io::Result<()> {
        if let Some(files) = &self.0.files {
            let config = files.read()?;
            *self
                .0
                .current
                .write()
                .unwrap_or_else(PoisonError::into_inner) = config.into();
        }
        Ok(())
    }

    /// Returns the configuration for a new connection.
    pub(crate) fn config(&self, offered: Offered) -> Arc<ServerConfig> {
        let current = self.0.current.read();
        let current = current.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(match offered {
            Offered::All => &current.all,
            Offered::Http1 => &current.http1,
            Offered::NoHttp => &current.no_http,
        })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("files", &self.0.files)
            .finish_non_exhaustive()
    }
}

/// Describes a [`Tls`]: which files it reads.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing before `build`"]
pub struct TlsBuilder {
    default: Option<Pair>,
    by_name: Vec<(String, Pair)>,
    clients: Option<Clients>,
}

/// The files of a certificate.
#[derive(Clone, Debug)]
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

impl Pair {
    fn new(certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Pair {
        Pair {
            certificate: certificate.as_ref().to_owned(),
            key: key.as_ref().to_owned(),
        }
    }
}

/// Which certificates of clients are accepted.
#[derive(Clone, Debug)]
struct Clients {
    roots: PathBuf,
    required: bool,
}

impl TlsBuilder {
    /// Sets the certificate for clients that ask for no name, or for one that has no certificate of
    /// its own.
    pub fn certificate(self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> TlsBuilder {
        TlsBuilder {
            default: Some(Pair::new(certificate, key)),
            ..self
        }
    }

    /// Adds the certificate for clients that ask for this name (SNI). `*.example.org` stands for
    /// all names with one more label.
    pub fn certificate_for(
        mut self,
        name: &str,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> TlsBuilder {
        let pair = Pair::new(certificate, key);
        self.by_name.push((name.to_ascii_lowercase(), pair));
        self
    }

    /// Refuses clients without a certificate that one of these has issued.
    pub fn require_client_certificates(self, roots: impl AsRef<Path>) -> TlsBuilder {
        self.clients(roots, true)
    }

    /// Asks clients for a certificate that one of these has issued; those without one are served
    /// too: see [`Request::client_certificate`](crate::Request::client_certificate).
    pub fn ask_for_client_certificates(self, roots: impl AsRef<Path>) -> TlsBuilder {
        self.clients(roots, false)
    }

    fn clients(self, roots: impl AsRef<Path>, required: bool) -> TlsBuilder {
        let roots = roots.as_ref().to_owned();
        TlsBuilder {
            clients: Some(Clients { roots, required }),
            ..self
        }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// If there is no certificate, and as [`Tls::from_files`].
    pub fn build(self) -> io::Result<Tls> {
        let config = self.read()?;
        Ok(Tls(Arc::new(Shared {
            files: Some(self),
            current: RwLock::new(config.into()),
        })))
    }

    fn read(&self) -> io::Result<Arc<ServerConfig>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut by_name = ByName::default();
        if let Some(pair) = &self.default {
            by_name.default = Some(certificates::read(pair, &provider)?);
        }
        for (name, pair) in &self.by_name {
            by_name.insert(name, certificates::read(pair, &provider)?);
        }
        if by_name.is_empty() {
            let why = "TLS needs a certificate: TlsBuilder::certificate, or certificate_for";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let config = match &self.clients {
            None => config.with_no_client_auth(),
            Some(clients) => config.with_client_cert_verifier(clients.verifier(provider)?),
        };
        let mut config = config.with_cert_resolver(Arc::new(by_name));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Arc::new(config))
    }
}

impl Clients {
    fn verifier(&self, provider: Arc<CryptoProvider>) -> io::Result<Arc<dyn ClientCertVerifier>> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in Certificates::read(&self.roots)?.0 {
            let added = roots.add(certificate);
            added.map_err(|error| certificates::bad(&self.roots, error))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = match self.required {
            true => verifier,
            false => verifier.allow_unauthenticated(),
        };
        let verifier = verifier.build();
        verifier.map_err(|error| certificates::bad(&self.roots, error))
    }
}
