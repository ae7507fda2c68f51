//! What a workload is, and what it gives.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Something to be measured. One file of `workloads/` each; the list is in `workloads/mod.rs`.
pub trait Workload: Sync {
    /// Its name on the command line and in the table.
    fn name(&self) -> &'static str;

    /// One line on what it does.
    fn about(&self) -> &'static str;

    /// Environment variables for its process.
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Bytes of memory to touch and free before the first round. The first touch of memory that a
    /// virtual machine has not been given yet costs ten times a page fault.
    fn warm_bytes(&self) -> usize {
        0
    }

    /// Does the work once, verifies that it was done, and tells what it took. Runs on the main
    /// thread of the workload's process, a platform thread. Each round gives the same metrics.
    ///
    /// # Errors
    ///
    /// When the work was not done, or not as it should be: there is no number then.
    fn round(&self, size: Size) -> Result<Vec<Sample>>;

    /// The work of its helper process, for workloads that need a fresh process for every round.
    ///
    /// # Errors
    ///
    /// As for [`round`](Workload::round).
    fn helper(&self, _count: usize) -> Result<()> {
        bail!("{} has no helper process", self.name())
    }
}

/// How much work to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Enough for numbers that mean something.
    Full,
    /// Just enough to see that the workload works.
    Quick,
}

impl Size {
    /// One of the two.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Size::Full => full,
            Size::Quick => quick,
        }
    }
}

/// One number of one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What was measured; a workload may measure several things.
    pub metric: String,
    pub value: f64,
    /// The unit in words: `ns/spawn`.
    pub unit: String,
    /// The value should be at most this; a second goal is a later, stricter one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<f64>,
}

impl Sample {
    pub fn new(metric: impl Into<String>, value: f64, unit: &str) -> Sample {
        Sample {
            metric: metric.into(),
            value,
            unit: unit.into(),
            goals: Vec::new(),
        }
    }

    /// Nanoseconds for each of `count` equal pieces of work, the `unit`.
    pub fn nanos(metric: &str, elapsed: Duration, count: usize, unit: &str) -> Sample {
        Sample::new(metric, per(elapsed, count), &format!("ns/{unit}"))
    }

    /// With these goals.
    pub fn goals(self, goals: &[f64]) -> Sample {
        Sample {
            goals: goals.to_vec(),
            ..self
        }
    }
}

/// Nanoseconds for each of `count` equal pieces of work.
pub fn per(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}
