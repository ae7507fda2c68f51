//! How a thread is started: the only difference between the two runs of the demo.

use std::io;
use std::thread;

use pirn_http::Server;

/// A kind of thread. Everything else in the server and its users is the same code.
pub trait Threads: Copy + Send + Sync + 'static {
    /// The name of the kind in reports.
    const NAME: &'static str;

    /// The option of `pirn demo server` for them.
    const OPTION: Option<&'static str>;

    /// A started thread that can be joined.
    type Handle;

    /// Starts a thread that runs `body`.
    ///
    /// # Errors
    /// If the operating system (or the runtime) has no room for another thread.
    fn spawn(self, body: impl FnOnce() + Send + 'static) -> io::Result<Self::Handle>;

    /// Gives the connections of a server threads of this kind.
    fn serve(self, server: Server) -> Server;

    /// Waits for the thread to end; the error is the payload of its panic.
    fn join(handle: Self::Handle) -> thread::Result<()>;
}

/// Virtual threads: `pirn::thread`.
#[derive(Clone, Copy)]
pub struct Virtual;

impl Threads for Virtual {
    const NAME: &'static str = "virtual threads";
    const OPTION: Option<&'static str> = None;
    type Handle = pirn::thread::JoinHandle<()>;

    fn spawn(self, body: impl FnOnce() + Send + 'static) -> io::Result<Self::Handle> {
        pirn::thread::Builder::new().spawn(body)
    }

    fn serve(self, server: Server) -> Server {
        server
    }

    fn join(handle: Self::Handle) -> thread::Result<()> {
        handle.join()
    }
}

/// Platform threads: `std::thread`, with stacks as small as is prudent.
#[derive(Clone, Copy)]
pub struct Platform;

impl Platform {
    /// Bytes of stack of each thread: several times as much as server and client use, even in a
    /// debug build, and far below the usual 2 MiB.
    const STACK_SIZE: usize = 256 * 1024;
}

impl Threads for Platform {
    const NAME: &'static str = "platform threads";
    const OPTION: Option<&'static str> = Some("--platform-threads");
    type Handle = thread::JoinHandle<()>;

    fn spawn(self, body: impl FnOnce() + Send + 'static) -> io::Result<Self::Handle> {
        thread::Builder::new()
            .stack_size(Self::STACK_SIZE)
            .spawn(body)
    }

    fn serve(self, server: Server) -> Server {
        server.platform_threads(|| thread::Builder::new().stack_size(Self::STACK_SIZE))
    }

    fn join(handle: Self::Handle) -> thread::Result<()> {
        handle.join()
    }
}
