//! The lint for descriptors: nearly as many are open as there may be.

use super::report::Report;
use super::{Context, Look};
use crate::config::lints::Lint;
use pirn_rt::sys;

/// See the module's documentation.
pub(super) struct Descriptors {
    percent: u64,
    /// It was so at the last look.
    known: bool,
}

impl Descriptors {
    pub(super) fn new(percent: u64) -> Descriptors {
        Descriptors {
            percent,
            known: false,
        }
    }

    /// Returns whether `open` descriptors of at most `most` are many.
    fn are_many(&self, open: u64, most: u64) -> bool {
        u128::from(open) * 100 >= u128::from(most) * u128::from(self.percent)
    }
}

impl Look for Descriptors {
    fn look(&mut self, context: &mut Context<'_>) {
        let (most, hard) = limits();
        let many = match sys::open_descriptors() {
            Some(open) if most != libc::RLIM_INFINITY => self.are_many(open, most).then_some(open),
            _ => None,
        };
        if let Some(open) = many
            && !self.known
        {
            let text = format!(
                "{open} descriptors are open, and there may be {most}; then accept, open and socket \
                 fail. Raise `ulimit -n` (up to {hard} without privileges), or close what is not \
                 needed: `ls -l /proc/{}/fd` lists them",
                std::process::id()
            );
            context
                .reporter
                .report(Report::new(Lint::FewDescriptors, (), text));
        }
        self.known = many.is_some();
    }
}

/// Returns the soft and the hard limit.
fn limits() -> (u64, u64) {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (limit.rlim_cur, limit.rlim_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_nearly_all() {
        let descriptors = Descriptors::new(90);
        assert!(!descriptors.are_many(921, 1024));
        assert!(descriptors.are_many(922, 1024));
        assert!(!descriptors.are_many(u64::MAX / 2, u64::MAX));
    }

    #[test]
    fn a_new_descriptor_counts() {
        let before = sys::open_descriptors().unwrap();
        let more: Vec<_> = (0..100)
            .map(|_| std::fs::File::open("/").unwrap())
            .collect();
        // Tests that run at the same time open and close some, too.
        assert!(sys::open_descriptors().unwrap() > before + 50);
        drop(more);
    }
}
