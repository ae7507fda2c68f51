//! The thread that listens.

use super::connection;
use super::files::{self, Fd};
use super::socket_path::{self, SocketFile};
use super::{Beginning, helpers, sockets};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use pirn_rt::blocking::fds::other_table;
use pirn_rt::runtime::{self, Runtime};
use pirn_rt::sys::{self, Errno, call};

/// How many clients are served at the same time. Each has a thread.
pub(super) const CLIENTS: usize = 4;

/// The listener looks this often whether its socket is still in its place, and whether it is still
/// wanted.
const LOOK_NS: u64 = 60_000_000_000;
/// A pause after an error that is likely to come again.
const PAUSE_NS: u64 = 100_000_000;

/// How long the process listens.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Stay {
    /// Until nobody has come for [`LOOK_NS`].
    WhileWanted,
    ForGood,
}

/// The number of clients that are being served.
static SERVED: AtomicUsize = AtomicUsize::new(0);

/// One client is being served, until this is dropped.
struct Permit(());

impl Permit {
    /// Takes one if there is any left.
    fn take() -> Option<Permit> {
        // Relaxed, here and below: only the number counts.
        let more = |served: usize| (served < CLIENTS).then_some(served + 1);
        SERVED.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Permit(()))
    }

    /// Takes one that is left within a moment: most clients stay for less.
    fn take_soon() -> Option<Permit> {
        const LOOKS: u32 = 50;
        (0..LOOKS).find_map(|look| {
            if look > 0 {
                sys::nap(PAUSE_NS / u64::from(LOOKS));
            }
            Permit::take()
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        SERVED.fetch_sub(1, Relaxed);
    }
}

/// Listens and serves, on a thread of its own.
pub(super) fn run(stay: Stay, beginning: Beginning) {
    let mut beginning = Some(beginning);
    let Some(runtime) = published() else {
        return;
    };
    if let Err(error) = have_own_table(runtime) {
        return complain(&format!("no table of descriptors of its own: {error}"));
    }
    loop {
        let taken = socket_path::take();
        drop(beginning.take());
        match taken {
            Ok(Some(place)) => serve(place, stay),
            Ok(None) => return, // Another listener of this process answers.
            Err(reason) => {
                complain(&reason);
                if stay == Stay::WhileWanted {
                    return; // Whoever wants to know asks again.
                }
                sys::nap(LOOK_NS);
            }
        }
        if stay == Stay::WhileWanted {
            return;
        }
    }
}

/// Returns the runtime, once it is published: the monitor, which has this thread started, runs a
/// moment earlier. `None`: the start seems to have failed.
fn published() -> Option<&'static Runtime> {
    const LOOKS: u32 = 1000;
    (0..LOOKS).find_map(|_| {
        let runtime = runtime::get();
        if runtime.is_none() {
            sys::nap(PAUSE_NS / 100);
        }
        runtime
    })
}

/// Gives this thread a table of descriptors of its own: nothing of the program's is in it, and
/// standard input and output are there but lead nowhere: nobody's messages go to a client.
fn have_own_table(runtime: &Runtime) -> Result<(), Errno> {
    other_table::make(&runtime.poller)?;
    for _ in 0..3 {
        let null = files::open(files::HERE, c"/dev/null", libc::O_RDWR)?;
        core::mem::forget(null);
    }
    Ok(())
}

/// Serves clients as long as the place is current, and wanted.
fn serve(place: SocketFile, stay: Stay) {
    let mut quiet = true;
    loop {
        if sockets::is_readable_within(&place.socket, LOOK_NS) {
            match sockets::accept(&place.socket) {
                Ok(client) => admit(client),
                Err(Errno(libc::EAGAIN | libc::ECONNABORTED)) => {}
                Err(_) => sys::nap(PAUSE_NS), // No memory, no descriptors in the whole system.
            }
            quiet = false;
            continue;
        }
        let idle = quiet && SERVED.load(Relaxed) == 0; // Relaxed: as in `Permit`.
        if !place.is_current() || (idle && stay == Stay::WhileWanted) {
            return place.leave();
        }
        quiet = true;
    }
}

/// Gives a client a thread, or tells it that there is none.
fn admit(client: Fd) {
    let peer = match sockets::peer(&client) {
        // Another listener of this process looks whether there is one.
        Ok(peer) if u32::try_from(peer.pid) == Ok(std::process::id()) => return,
        Ok(peer) => peer,
        Err(_) => return,
    };
    if let Err(reason) = may_ask(peer.uid) {
        return connection::refuse(&client, &reason);
    }
    let Some(permit) = Permit::take_soon() else {
        let reason = format!("{CLIENTS} clients are being served already");
        return connection::refuse(&client, &reason);
    };
    let number = client.0;
    core::mem::forget(client); // It is the new thread's, if there is one.
    let started = helpers::start("pirn-observe", move || {
        other_table::join();
        let client = Fd(number);
        connection::serve(&client);
        // The client may come again as soon as it hears that this is over: then there is a permit.
        drop(permit);
        drop(client);
    });
    if started.is_err() {
        connection::serve(&Fd(number)); // The others wait: there is no memory for a thread.
    }
}

/// Returns whether a user may ask: this process's own, or root.
///
/// # Errors
/// Who may.
fn may_ask(peer: libc::uid_t) -> Result<(), String> {
    // SAFETY: no pointers.
    let (user, dumpable) = unsafe {
        (
            libc::geteuid(),
            call!(libc::SYS_prctl, libc::PR_GET_DUMPABLE),
        )
    };
    match peer {
        0 => Ok(()),
        _ if dumpable != Ok(1) => Err("this process keeps secrets, or has changed its user: \
                                       it answers root only"
            .into()),
        peer if peer == user => Ok(()),
        peer => Err(format!(
            "this process answers its own user ({user}) and root only, and you are user {peer}"
        )),
    }
}

/// Writes a line to the standard error of the process, which is not in this thread's table.
fn complain(text: &str) {
    if pirn_rt::notices::are_off() {
        return;
    }
    let line = format!("pirn: tools cannot look inside this process: {text}\n");
    // SAFETY: the line is readable for its length; the other calls have no pointers.
    unsafe {
        let own = match call!(libc::SYS_pidfd_open, libc::getpid(), 0) {
            Ok(own) => Fd(own as i32),
            Err(_) => return,
        };
        if let Ok(stderr) = call!(libc::SYS_pidfd_getfd, own.0, 2, 0) {
            let stderr = Fd(stderr as i32);
            let _ = call!(libc::SYS_write, stderr.0, line.as_ptr(), line.len());
        }
    }
}
