//! The parameters of a workload, from the command line.

use anyhow::{Context, Result};
use std::collections::HashMap;

/// The `key=value` arguments.
#[derive(Debug)]
pub struct Params(HashMap<String, u64>);

impl Params {
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Params> {
        let pair = |arg: String| {
            let (key, value) = arg.split_once('=')?;
            Some((key.to_owned(), value.parse().ok()?))
        };
        args.map(|arg| pair(arg.clone()).with_context(|| format!("{arg:?} is not key=number")))
            .collect::<Result<_>>()
            .map(Params)
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// If it is missing.
    pub fn get(&self, key: &str) -> Result<u64> {
        let value = self.0.get(key).copied();
        value.with_context(|| format!("the parameter {key} is missing"))
    }

    /// The value of a key that says how many there are of something.
    ///
    /// # Errors
    ///
    /// If it is missing.
    pub fn count(&self, key: &str) -> Result<usize> {
        Ok(self.get(key)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(args: &[&str]) -> Result<Params> {
        Params::parse(args.iter().map(|&arg| arg.to_owned()))
    }

    #[test]
    fn values_are_found_by_key() {
        let params = params(&["a=1", "b=22"]).unwrap();
        assert_eq!(
            (params.get("a").unwrap(), params.count("b").unwrap()),
            (1, 22)
        );
        assert!(
            params
                .get("c")
                .unwrap_err()
                .to_string()
                .contains("c is missing")
        );
    }

    #[test]
    fn what_is_no_pair_is_named() {
        for bad in ["a", "a=", "a=b", "a=-1"] {
            assert!(params(&[bad]).unwrap_err().to_string().contains(bad));
        }
    }
}
