//! What all kinds of peers are built with: the folders, and the tools.

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where things are.
pub struct Places {
    /// The sources of the peers.
    pub peers: PathBuf,
    /// Where cargo puts what it makes.
    pub target: PathBuf,
    /// Where the others put what they make.
    pub out: PathBuf,
}

impl Places {
    /// # Errors
    ///
    /// If this program is not in a folder of cargo's.
    pub fn find() -> Result<Places> {
        let program = std::env::current_exe()?;
        // target/release/bench, or target/release/deps/bench-0123 where it is a test.
        let is_profile = |folder: &Path| folder.ends_with("release") || folder.ends_with("debug");
        let Some(profile) = program.ancestors().find(|folder| is_profile(folder)) else {
            bail!(
                "{} is not where cargo puts programs; run it with `cargo run -p bench`",
                program.display()
            );
        };
        let target = profile.parent().unwrap_or(profile).to_owned();
        Ok(Places {
            peers: Path::new(env!("CARGO_MANIFEST_DIR")).join("peers"),
            out: target.join("bench-peers"),
            target,
        })
    }
}

/// Whether a program is in one of the folders of `PATH`.
pub fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a tool; gives what it printed.
///
/// # Errors
///
/// The end of what it said.
pub fn run(command: &mut Command, tool: &str) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{tool} is not installed"),
        _ => format!("cannot start {tool}: {error}"),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    let end = lines[lines.len().saturating_sub(12)..].join("\n");
    Err(format!("{tool} failed with {}: {end}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_and_one_that_fails_is_quoted() {
        let error = run(&mut Command::new("no-such-tool-anywhere"), "nst").unwrap_err();
        assert_eq!(error, "nst is not installed");
        let mut command = Command::new("sh");
        let error = run(command.args(["-c", "echo why >&2; exit 3"]), "sh").unwrap_err();
        assert!(
            error.contains("exit status: 3") && error.contains("why"),
            "{error}"
        );
    }
}
