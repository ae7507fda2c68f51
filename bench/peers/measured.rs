//! The build script of the peers for a library: finds out what is measured, the version of the
//! library from the workspace's `Cargo.lock`, and the compiler's. The libraries themselves have no
//! constant that says it. The peer for the library `may` is the package `peer-may`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let package = env::var("CARGO_PKG_NAME").unwrap();
    let library = package.strip_prefix("peer-").expect("a peer's name");
    let lock = lock_file();
    println!("cargo::rerun-if-changed={}", lock.display());
    let version = locked_version(&fs::read_to_string(lock).unwrap(), library);
    println!(
        "cargo::rustc-env=MEASURED={library} {version}, {}",
        compiler()
    );
}

fn lock_file() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let mut folders = Path::new(&package).ancestors();
    let locks = folders.find_map(|folder| Some(folder.join("Cargo.lock")).filter(|l| l.exists()));
    locks.expect("no Cargo.lock above the package")
}

fn locked_version(lock: &str, package: &str) -> String {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|&line| line != name);
    let version = lines.nth(1).and_then(|line| line.split('"').nth(1));
    version.expect("the package is not locked").to_owned()
}

/// Such as `rustc 1.95.0`, without commit and date.
fn compiler() -> String {
    let output = Command::new(env::var_os("RUSTC").unwrap())
        .arg("--version")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<_> = text.split_whitespace().take(2).collect();
    words.join(" ")
}
