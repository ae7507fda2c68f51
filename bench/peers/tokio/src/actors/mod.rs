//! `actors`: tasks with a channel each. tokio has no actors; this is how they are written by hand.

mod asks;
mod counter;
mod lives;
mod messages;
mod rows;

pub use asks::asks;
pub use lives::{create, idle};
pub use messages::messages;
pub use rows::{chain, skynet};

use anyhow::Result;
use std::future::Future;
use tokio::runtime::Runtime;
use tokio::task::{JoinError, JoinHandle};

/// The room of a channel, which must be given: as much as that of Pirn's mailboxes.
const ROOM: usize = 1024;

/// Gives what `work` returns when a task does it.
fn inside<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    runtime.block_on(runtime.spawn(work))?
}

/// Waits for tasks whose channels have been closed.
async fn ended(tasks: Vec<JoinHandle<()>>) -> Result<(), JoinError> {
    for task in tasks {
        task.await?;
    }
    Ok(())
}
