//! Queries, and forms, which are written alike.

/// Returns the decoded pairs.
pub(crate) fn pairs(bytes: &[u8]) -> impl Iterator<Item = (String, String)> + '_ {
    form_urlencoded::parse(bytes).into_owned()
}
