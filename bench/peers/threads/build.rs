//! Tells the peers what compiles them.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = env::var_os("RUSTC").expect("cargo sets it");
    let output = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("the compiler runs");
    let version = String::from_utf8(output.stdout).expect("a version is text");
    // "rustc 1.95.0 (59807616e 2026-04-14)"
    let words: Vec<_> = version.split_whitespace().take(2).collect();
    println!("cargo::rustc-env=RUSTC_VERSION={}", words.join(" "));
}
