//! The last samples.

use std::collections::VecDeque;
use std::sync::Arc;

use super::sample::Sample;

/// The last samples, of which the oldest makes room for the newest.
#[derive(Debug)]
pub(super) struct History {
    samples: VecDeque<Arc<Sample>>,
    most: usize,
}

impl History {
    pub fn new(most: usize) -> History {
        History {
            samples: VecDeque::new(),
            most: most.max(1),
        }
    }

    pub fn add(&mut self, sample: Sample) {
        if self.samples.len() == self.most {
            self.samples.pop_front();
        }
        self.samples.push_back(Arc::new(sample));
    }

    /// Returns all, oldest first.
    pub fn all(&self) -> Vec<Arc<Sample>> {
        self.samples.iter().cloned().collect()
    }

    pub fn last(&self) -> Option<Arc<Sample>> {
        self.samples.back().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut history = History::new(2);
        assert!(history.last().is_none());
        for time in 1..=3 {
            history.add(Sample {
                time,
                ..Sample::default()
            });
        }
        let times: Vec<u64> = history.all().iter().map(|sample| sample.time).collect();
        assert_eq!(times, [2, 3]);
        assert_eq!(history.last().unwrap().time, 3);
    }
}
