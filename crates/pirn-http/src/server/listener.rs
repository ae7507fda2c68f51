//! Where clients come from.

use crate::socket::Socket;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of connections that may wait to be accepted: as many as the system allows by default
/// (`net.core.somaxconn`). `std` asks for 128; a client that comes while that many wait gets no
/// answer for a second.
const BACKLOG: i32 = 4096;

/// A socket that clients connect to, and what is spoken there.
///
/// # Examples
/// ```
/// use pirn_http::{Listener, Request, Server};
/// # fn main() -> std::io::Result<()> {
/// # let folder = std::env::temp_dir();
/// # let path = folder.join(format!("pirn-http-{}", std::process::id()));
/// let server = Server::new()
///     .get("/", || "Hello, World!")
///     .listen(Listener::tcp("127.0.0.1:0")?)
///     .and(Listener::unix(&path)?);
/// drop(server);
/// assert!(!path.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
    /// The file of a Unix socket that [`Listener::unix`] has made.
    #[expect(dead_code, reason = "it is removed when it is dropped")]
    file: Option<SocketFile>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A client that has come.
pub(crate) struct Arrival {
    pub(crate) socket: Socket,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

impl Arrival {
    /// Returns a client that is in this process.
    pub(crate) fn plain(socket: Socket) -> Arrival {
        Arrival {
            socket,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl Listener {
    /// Listens on an address of TCP.
    ///
    /// # Errors
    /// If the address is not available.
    pub fn tcp(address: impl ToSocketAddrs) -> io::Result<Listener> {
        let listener = TcpListener::bind(address)?;
        rustix::net::listen(&listener, BACKLOG)?; // It listens already: this changes the number.
        Ok(listener.into())
    }

    /// Listens on a Unix socket, which it makes. Its file is removed when the listener is closed.
    ///
    /// # Errors
    /// If there is a file of this name, or it cannot be made.
    pub fn unix(path: impl AsRef<Path>) -> io::Result<Listener> {
        let path = std::path::absolute(path)?;
        let listener = UnixListener::bind(&path)?;
        rustix::net::listen(&listener, BACKLOG)?; // Changes the number.
        let id = id_of(&path)?;
        Ok(Listener {
            file: Some(SocketFile { path, id }),
            ..listener.into()
        })
    }

    /// Returns the listeners that the process was started with, as systemd hands them over
    /// (`LISTEN_FDS`, `LISTEN_PID`): so a service may be restarted without refusing a client.
    ///
    /// # Errors
    /// If one of them is not a listener of TCP or a Unix socket.
    pub fn from_environment() -> io::Result<Vec<Listener>> {
        let mut given = listenfd::ListenFd::from_env();
        let count = given.len();
        let mut take = |index| -> io::Result<Option<Listener>> {
            let tcp = given.take_tcp_listener(index);
            if let Ok(listener) = tcp {
                return Ok(listener.map(Listener::from));
            }
            Ok(given.take_unix_listener(index)?.map(Listener::from))
        };
        let all = (0..count).map(|index| take(index).transpose());
        all.flatten().collect()
    }

    /// Has clients speak TLS here.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(self, tls: &Tls) -> Listener {
        Listener {
            tls: Some(tls.clone()),
            ..self
        }
    }

    fn new(kind: Kind) -> Listener {
        Listener {
            kind,
            file: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Returns the queue, which tells whether a client waits.
    pub(super) fn queue(&self) -> io::Result<Queue> {
        let set = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        match &self.kind {
            Kind::Tcp(listener) => set.add(listener, event)?,
            Kind::Unix(listener) => set.add(listener, event)?,
        }
        Ok(Queue(set))
    }

    /// Returns the address, if it is one of TCP.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Tcp(listener) => listener.local_addr().ok(),
            Kind::Unix(_) => None,
        }
    }

    /// Waits for a client.
    pub(super) fn accept(&self) -> io::Result<Arrival> {
        let socket = match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            Kind::Unix(listener) => Socket::Unix(listener.accept()?.0),
        };
        Ok(Arrival {
            socket,
            #[cfg(feature = "tls")]
            tls: self.tls.clone(),
        })
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Listener {
        Listener::new(Kind::Tcp(listener))
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Listener {
        Listener::new(Kind::Unix(listener))
    }
}

/// The clients that wait to be accepted.
pub(super) struct Queue(Epoll);

impl Queue {
    /// Waits for a client. Returns whether there is one.
    pub(super) fn has_client(&self, most: Duration) -> bool {
        let mut events = [EpollEvent::empty()];
        let most = EpollTimeout::try_from(most).unwrap_or(EpollTimeout::MAX);
        matches!(self.0.wait(&mut events, most), Ok(1)) // Failure: an interrupt.
    }
}

/// The file of a Unix socket, which is removed with the listener.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode: another process may have put its own in the place.
    id: (u64, u64),
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if id_of(&self.path).is_ok_and(|id| id == self.id) {
            let _ = std::fs::remove_file(&self.path); // The folder may be read-only by now.
        }
    }
}
