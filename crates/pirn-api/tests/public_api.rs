//! The public API of pirn is what `crates/pirn/public-api.txt` says, with all features on.
//!
//! A change to it is seen in review, as a change to that file, which this writes anew:
//!
//! ```text
//! PIRN_BLESS=1 cargo test -p pirn-api
//! ```
//!
//! The list is made from rustdoc's JSON, which the pinned compiler gives if it is told to take
//! itself for a nightly one. Derived and blanket implementations are not in it; that types are
//! `Send`, `Sync`, `Unpin` and unwind safe is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Auto traits that are not stable: no part of the API.
const UNSTABLE: [&str; 2] = ["core::marker::Freeze", "core::marker::UnsafeUnpin"];

#[test]
fn the_public_api_is_that_of_the_snapshot() {
    let snapshot = repository().join("crates/pirn/public-api.txt");
    // `pirn` re-exports what `pirn-observe` does not hide: here under the names of `pirn`, where
    // the modules are already.
    let observed = public_api(&rustdoc_json("pirn-observe"));
    let observed = observed
        .lines()
        .filter(|line| !line.starts_with("pub mod "));
    let observed = observed.map(|line| format!("{line}\n"));
    let api = public_api(&rustdoc_json("pirn")) + &observed.collect::<String>();
    let api = api.replace("pirn_observe::", "pirn::");
    if env::var_os("PIRN_BLESS").is_some() {
        fs::write(&snapshot, &api).unwrap();
        return;
    }
    let expected = fs::read_to_string(&snapshot).unwrap_or_default();
    let (gone, new) = (missing(&expected, &api), missing(&api, &expected));
    assert!(
        gone.is_empty() && new.is_empty(),
        "the public API has changed:\n{}{}if it is meant to, run `PIRN_BLESS=1 cargo test -p pirn-api` and \
         tell of it in CHANGELOG.md",
        listed('-', &gone),
        listed('+', &new),
    );
}

/// The lines of `one` that `other` lacks.
fn missing<'a>(one: &'a str, other: &str) -> Vec<&'a str> {
    one.lines()
        .filter(|line| other.lines().all(|theirs| theirs != *line))
        .collect()
}

fn listed(sign: char, lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| format!("{sign} {line}\n"))
        .collect()
}

/// The API as text, one item per line.
fn public_api(json: &Path) -> String {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .expect("public-api reads the JSON of this toolchain's rustdoc");
    api.items()
        .map(|item| format!("{item}\n"))
        .filter(|line| !UNSTABLE.iter().any(|name| line.contains(name)))
        .collect()
}

/// Has rustdoc describe the library of a package as JSON.
fn rustdoc_json(package: &str) -> PathBuf {
    // A folder of its own: the tests' may be locked, and flags for this would invalidate it.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rustdoc");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(repository())
        .args(["rustdoc", "--quiet", "--locked", "--package", package])
        .args(["--lib", "--all-features", "--target-dir"])
        .arg(&target)
        .args(["--", "-Zunstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTDOCFLAGS");
    let status = cargo.status().unwrap();
    assert!(status.success(), "{cargo:?} failed with {status}");
    target.join(format!("doc/{}.json", package.replace('-', "_")))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
