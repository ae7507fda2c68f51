//! ids
pub(crate) fn started() {}
