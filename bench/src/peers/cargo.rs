//! Programs in Rust, which are packages of the workspace `bench/peers`: built as this program was.

use super::tools::{Places, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const RELEASE: bool = !cfg!(debug_assertions);
const PROFILE: &str = if RELEASE { "release" } else { "debug" };

/// Builds a package and gives the path of its program.
///
/// # Errors
///
/// What cargo said.
pub fn program(places: &Places, package: &str) -> Result<PathBuf, String> {
    build(places, &places.peers, &[package])?;
    Ok(places.target.join(PROFILE).join(package))
}

/// Builds `pirn` and the library that it preloads, which it finds beside itself; gives the path of
/// `pirn`.
///
/// # Errors
///
/// What cargo said.
pub fn pirn(places: &Places) -> Result<PathBuf, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    build(places, here, &["pirn-preload", "pirn-cli"])?;
    Ok(places.target.join(PROFILE).join("pirn"))
}

fn build(places: &Places, folder: &Path, packages: &[&str]) -> Result<(), String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--quiet"])
        .args(RELEASE.then_some("--release"));
    command
        .arg("--target-dir")
        .arg(&places.target)
        .current_dir(folder);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    run(&mut command, "cargo").map(drop)
}

/// How they are built.
pub fn flags() -> &'static str {
    match RELEASE {
        true => "cargo build --release (opt-level 3, no LTO)",
        false => "cargo build (NOT optimised)",
    }
}
