//! Programs in Rust, which are packages of the workspace `bench/peers`: built as this program was.

use super::{Places, run};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

const RELEASE: bool = !cfg!(debug_assertions);

/// Builds packages and gives the paths of their programs.
///
/// # Errors
///
/// What cargo said.
pub fn programs(places: &Places, packages: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg("build").args(RELEASE.then_some("--release"));
    command.args(["--message-format", "json-render-diagnostics", "--quiet"]);
    command.arg("--target-dir").arg(&places.target);
    command.current_dir(&places.peers);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    let messages = run(&mut command, "cargo")?;
    let messages = String::from_utf8_lossy(&messages);
    Ok(messages.lines().filter_map(executable).collect())
}

/// Builds `pirn` and the library that it preloads; gives the path of `pirn`.
///
/// # Errors
///
/// What cargo said.
pub fn pirn(places: &Places) -> Result<PathBuf, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg("build").args(RELEASE.then_some("--release"));
    command.args([
        "--quiet",
        "--package",
        "pirn-preload",
        "--package",
        "pirn-cli",
    ]);
    command.arg("--target-dir").arg(&places.target);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    run(&mut command, "cargo")?;
    let profile = if RELEASE { "release" } else { "debug" };
    // It finds the library beside itself.
    Ok(places.target.join(profile).join("pirn"))
}

/// The program that a message of cargo tells of.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    Some(message["executable"].as_str()?.into())
}

/// How they are built.
pub fn flags() -> &'static str {
    match RELEASE {
        true => "cargo build --release (opt-level 3, no LTO)",
        false => "cargo build (NOT optimised)",
    }
}

#[cfg(test)]
mod tests;
