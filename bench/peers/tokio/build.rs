//! Finds out what is measured, for the peer to say: the versions of tokio and of the compiler.

use std::env;
use std::fs;
use std::process::Command;

const LOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../Cargo.lock");

fn main() {
    println!("cargo::rerun-if-changed={LOCK}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=MEASURED=tokio {}, {}", tokio(), rustc());
}

/// A package's version is in the line after its name.
fn tokio() -> String {
    let lock = fs::read_to_string(LOCK).expect("the workspace has a lock file");
    let mut lines = lock.lines();
    lines.find(|&line| line == r#"name = "tokio""#);
    let version = lines.next().and_then(|line| line.split('"').nth(1));
    version.expect("the lock file has tokio").to_owned()
}

/// The first two words of `rustc 1.95.0 (59807616e 2026-04-14)`.
fn rustc() -> String {
    let compiler = env::var_os("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler).arg("--version").output();
    let version = String::from_utf8(output.expect("the compiler runs").stdout);
    let version = version.expect("a version is text");
    version.split(' ').take(2).collect::<Vec<_>>().join(" ")
}
