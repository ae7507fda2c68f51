//! How many descriptors this process may have open.

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors beside the connections': standard streams, and what tokio needs.
const OTHERS: u64 = 32;

/// Raises the soft limit to the hard one, which it returns.
pub fn raise() -> Result<u64> {
    let (_, hard) =
        getrlimit(Resource::RLIMIT_NOFILE).context("cannot read the limit of descriptors")?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
        .context("cannot raise the limit of descriptors")?;
    Ok(hard)
}

/// Makes room for this many connections at once, or says what is missing.
pub fn make_room(connections: u32) -> Result<()> {
    let limit = raise()?;
    let needed = descriptors(connections);
    ensure!(needed <= limit, "{}", shortage(connections, limit));
    Ok(())
}

/// What is missing for this many connections at once.
pub fn shortage(connections: u32, limit: u64) -> String {
    let needed = descriptors(connections);
    format!(
        "{connections} connections at once need {needed} file descriptors, but the limit is {limit} \
         (`ulimit -n {needed}` raises it, if the hard limit allows)"
    )
}

fn descriptors(connections: u32) -> u64 {
    u64::from(connections) + OTHERS
}
