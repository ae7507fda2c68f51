//! The inspection server: how tools ask a running process, and which may.
//!
//! ```text
//!   tool (`pirn dump PID`)             process
//!   looks for the socket: none
//!   SIGURG with a marker, to the
//!   monitor's thread               ->  handler: wakes the starter
//!                                      starter: starts the listener's thread
//!                                      listener: a table of descriptors of its own, the socket
//!   finds the socket, connects,
//!   checks whose it is             ->  listener: checks the user, starts a worker
//!   one line: what it wants        ->  worker: the command's answer, then it hangs up
//! ```
//!
//! A process need not prepare for it, and hardly pays for it: until a tool asks there is one thread
//! that sleeps (the [`starter`], which has the reasons), no descriptor and no file. A listener that
//! a tool has asked for ends when no client has come for a while.
//!
//! **The server's threads have a table of descriptors of their own** (`CLOSE_RANGE_UNSHARE`). So
//! they work when the process has run out of descriptors; the process's children inherit nothing,
//! by `fork` or by `exec`; a program that closes all descriptors does not close the socket; and the
//! program gets the same numbers as without tools.
//!
//! **Who may ask**: processes of the same user and of root, by the kernel's word (`SO_PEERCRED`);
//! only root where the process is not dumpable, which has changed its user, or keeps secrets. The
//! socket is in a folder that only its owner may enter ([`socket_path`]). A program with privileges
//! that its user lacks (setuid) does not listen.
//!
//! **No thread of the program waits**: each client has a worker, a platform thread with all signals
//! blocked; there are [`CLIENTS`](listener::CLIENTS) at most. A request has to come soon, a client
//! that does not read is dropped, and answers have a time limit, unless they are streams. Large
//! answers share a memory [`budget`].
//!
//! * [`listener`]: the listening thread. [`socket_path`]: the folder and the socket in it.
//!   [`connection`]: one client. [`commands`]: what one may ask for. [`request`]: its line.
//! * [`files`], [`sockets`]: system calls. [`helpers`]: platform threads; [`starter`]: the one that
//!   starts them. [`quit`]: the dump that `SIGQUIT` asks for.

pub mod budget;
pub mod commands;
mod connection;
mod files;
mod helpers;
mod listener;
mod metrics;
mod quit;
pub mod request;
pub(super) mod socket_path;
mod sockets;
mod starter;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use listener::Stay;
use pirn_rt::sched::errands;
use pirn_rt::{environment, notices};

/// Whether tools may look inside this process.
static ALLOWED: AtomicBool = AtomicBool::new(false);
/// Whether it listens from the start.
static FOR_GOOD: AtomicBool = AtomicBool::new(false);
/// Whether a listener begins.
static BEGINS: AtomicBool = AtomicBool::new(false);

/// Decides whether tools may look inside, by the setting and by the program's privileges. Makes
/// ready for those that do, and for `SIGQUIT`. For the start of the runtime.
pub fn allow(setting: Option<bool>) -> bool {
    let allowed = setting != Some(false) && environment::is_trusted();
    if let Err(error) = starter::start(run) {
        no_thread(error);
    }
    ALLOWED.store(allowed, Relaxed); // Relaxed: complete in itself.
    allowed
}

/// Forgets the listeners of the parent.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub unsafe fn after_fork() {
    BEGINS.store(false, Relaxed); // Relaxed: there is one thread of ours.
    // SAFETY: the caller's contract.
    unsafe { socket_path::after_fork() };
}

/// Listens until the process ends, if that is allowed.
pub fn open_for_good() {
    FOR_GOOD.store(true, Relaxed); // Relaxed: complete in itself.
    open();
}

/// Does errands. Called by the starter.
fn run(wanted: u32) {
    if wanted & errands::LET_IN != 0 {
        open();
    }
    if wanted & errands::DUMP != 0 {
        quit::start();
    }
}

/// Starts a listener. It ends at once if there is one that answers.
fn open() {
    // Relaxed: complete in themselves.
    let stay = match FOR_GOOD.load(Relaxed) {
        true => Stay::ForGood,
        false => Stay::WhileWanted,
    };
    if !ALLOWED.load(Relaxed) {
        return;
    }
    let Some(beginning) = Beginning::take() else {
        return;
    };
    if let Err(error) = helpers::start("pirn-observe", move || listener::run(stay, beginning)) {
        no_thread(error);
    }
}

/// A listener begins: until this is dropped no other does. It may be blocked, see [`starter`], and
/// tools ask again and again.
struct Beginning(());

impl Beginning {
    fn take() -> Option<Beginning> {
        // Relaxed, here and below: nothing is passed on.
        (!BEGINS.swap(true, Relaxed)).then_some(Beginning(()))
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        BEGINS.store(false, Relaxed);
    }
}

fn no_thread(error: std::io::Error) {
    notices::write(&format!("no thread to answer tools with: {error}"));
}
