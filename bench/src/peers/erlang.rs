//! The program in Erlang.

use super::{Places, run};
use std::ffi::OsString;
use std::fs;
use std::process::Command;

/// How it is started: with room for more processes than the 262,144 of the default, which the
/// largest sizes need, and without the files of those that crash.
const FLAGS: [&str; 5] = ["+P", "4000000", "-env", "ERL_CRASH_DUMP_SECONDS", "0"];

/// Builds it; gives how to start it, and its flags.
///
/// # Errors
///
/// That Erlang is missing, or what it said.
pub fn build(places: &Places) -> Result<(Vec<OsString>, String), String> {
    let (sources, out) = (places.peers.join("erlang"), places.out.join("erlang"));
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut command = Command::new("erlc");
    command.args(["-Wall", "-Werror", "-o"]).arg(&out);
    command.args(["actors.erl", "actors_workloads.erl"].map(|file| sources.join(file)));
    run(&mut command, "erlc")?;
    let mut command: Vec<OsString> = vec!["erl".into()];
    command.extend(FLAGS.map(OsString::from));
    command.extend(["-noshell".into(), "-pa".into(), out.into()]);
    command.extend(["-s", "actors", "main", "-extra"].map(OsString::from));
    Ok((command, format!("erl {}", FLAGS.join(" "))))
}
