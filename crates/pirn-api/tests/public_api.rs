//! The public API of each package is what its `public-api.txt` says, with all features on.
//!
//! A change to it is seen in review, as a change to that file, which this writes anew:
//!
//! ```text
//! PIRN_BLESS=1 cargo test -p pirn-api -- --ignored
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

/// The packages whose API is a promise. The others are parts of `pirn`, or of the commands.
const PACKAGES: [&str; 9] = [
    "pirn",
    "pirn-actor",
    "pirn-console",
    "pirn-dump",
    "pirn-events",
    "pirn-flow",
    "pirn-http",
    "pirn-live",
    "pirn-nats",
];

#[test]
#[ignore = "documents ten crates, in minutes where they are not checked yet: `ci/check api` does"]
fn the_public_apis_are_those_of_the_snapshots() {
    let mut changes = String::new();
    for package in PACKAGES {
        let snapshot = repository().join(format!("crates/{package}/public-api.txt"));
        let api = match package {
            "pirn" => api_of_pirn(),
            _ => public_api(&rustdoc_json(package)),
        };
        if env::var_os("PIRN_BLESS").is_some() {
            fs::write(&snapshot, &api).unwrap();
            continue;
        }
        let expected = fs::read_to_string(&snapshot).unwrap_or_default();
        changes += &listed('-', &missing(&expected, &api));
        changes += &listed('+', &missing(&api, &expected));
    }
    assert!(
        changes.is_empty(),
        "the public API has changed:\n{changes}if it is meant to, run `PIRN_BLESS=1 cargo test -p pirn-api -- --ignored` \
         and tell of it in CHANGELOG.md",
    );
}

/// The API of `pirn`, which re-exports what `pirn-observe` does not hide: here under the names of
/// `pirn`, where the modules are already.
fn api_of_pirn() -> String {
    let observed = public_api(&rustdoc_json("pirn-observe"));
    let observed = observed
        .lines()
        .filter(|line| !line.starts_with("pub mod "));
    let observed = observed.map(|line| format!("{line}\n"));
    let api = public_api(&rustdoc_json("pirn")) + &observed.collect::<String>();
    api.replace("pirn_observe::", "pirn::")
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
    // The folder that this test was built in, where Clippy has left what rustdoc needs.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(repository())
        .args(["rustdoc", "--quiet", "--locked", "--package", package])
        .args(["--lib", "--all-features", "--target-dir"])
        .arg(target)
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
