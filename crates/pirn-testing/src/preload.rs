//! `libpirn.so`, which cargo does not build for tests by itself.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds `libpirn.so` into the folder of a target and profile, where the tests' own programs are.
/// Returns its path.
///
/// # Panics
/// If it cannot be built.
pub fn build_library(folder: &Path) -> PathBuf {
    // For another processor cargo adds a folder, and the variable says so.
    let is_cross = usize::from(env::var_os("CARGO_BUILD_TARGET").is_some());
    let target = folder.ancestors().nth(1 + is_cross).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "pirn-preload"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.arg("--target-dir").arg(target);
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success());
    folder.join("libpirn.so")
}
