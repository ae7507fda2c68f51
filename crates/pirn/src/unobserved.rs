//! What the start calls in place of `observe` in a program without the feature `dump`.

use crate::config::{ConfigError, Settings};
use pirn_rt::sched::runtime::Runtime;
use std::io;

/// No events are kept.
pub(crate) struct Keep;

pub(crate) fn events_to_keep() -> Result<Keep, ConfigError> {
    Ok(Keep)
}

pub(crate) fn install() {}

pub(crate) fn allow(_: Option<bool>) -> bool {
    false
}

pub(crate) fn keep_events(_: &'static Runtime, _: Keep) -> io::Result<()> {
    Ok(())
}

pub(crate) fn start(_: &'static Runtime, _: &Settings) {}

pub(crate) fn serve(_: &Settings, _: fn()) {}

/// # Safety
/// None is needed: nothing is forgotten.
pub(crate) unsafe fn after_fork() {}
