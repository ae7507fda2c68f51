//! What the workloads share: joining tasks.

use tokio::task::{JoinError, JoinHandle};

/// Joins the tasks one after the other. Gives the wrapping sum of what they returned.
pub async fn joined_sum(handles: Vec<JoinHandle<u64>>) -> Result<u64, JoinError> {
    let mut sum = 0u64;
    for handle in handles {
        sum = sum.wrapping_add(handle.await?);
    }
    Ok(sum)
}

/// The sum of 0 … n−1.
pub fn sum_below(n: u64) -> u64 {
    n * n.saturating_sub(1) / 2
}
