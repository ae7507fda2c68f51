//! Lets many clients arrive evenly spread over a time, and waits for them all.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

/// What is added to the longest that a load may take before it is given up as a whole, which
/// happens only if the client itself is stuck: each request has a time limit of its own.
const GRACE: Duration = Duration::from_secs(10);

/// How clients arrive.
pub struct Crowd {
    /// How many they are.
    pub count: u32,
    /// When the first arrives.
    pub begin: Instant,
    /// How long the others take to follow.
    pub ramp: Duration,
    /// When all must be gone, measured from `begin`.
    pub limit: Duration,
}

impl Crowd {
    /// Starts a client for each number at its time, and waits until all are done. Returns how late
    /// the latest was started. A client's error is one that leaves nothing to measure.
    pub async fn gather<C>(&self, client: impl Fn(u32) -> C) -> Result<Duration>
    where
        C: Future<Output = Result<()>> + Send + 'static,
    {
        let limit = self.limit.saturating_add(GRACE);
        timeout_at(self.begin + limit, self.run(client))
            .await
            .with_context(|| format!("the load was not done after {limit:?}"))?
    }

    async fn run<C>(&self, client: impl Fn(u32) -> C) -> Result<Duration>
    where
        C: Future<Output = Result<()>> + Send + 'static,
    {
        let mut clients = JoinSet::new();
        for number in 0..self.count {
            let due = self.begin + self.ramp.mul_f64(f64::from(number) / f64::from(self.count));
            sleep_until(due).await;
            let client = client(number);
            clients.spawn(async move {
                let late = due.elapsed();
                client.await?;
                anyhow::Ok(late)
            });
        }
        let mut latest = Duration::ZERO;
        while let Some(late) = clients.join_next().await {
            latest = latest.max(late.context("a client panicked")??);
        }
        Ok(latest)
    }
}
