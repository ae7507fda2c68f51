//! The program in Go.

use super::{Places, run};
use std::ffi::OsString;
use std::process::Command;

/// Builds it; gives how to start it, and how it was built.
///
/// # Errors
///
/// That Go is missing, or what it said.
pub fn build(places: &Places) -> Result<(Vec<OsString>, String), String> {
    let program = places.out.join("go").join("peer");
    let mut command = Command::new("go");
    command.current_dir(places.peers.join("go"));
    command.args(["build", "-o"]).arg(&program).arg(".");
    run(&mut command, "go")?;
    Ok((vec![program.into()], "go build".into()))
}
