//! Programs that know nothing of Pirn, which are started natively or under `pirn run`.

use super::tools::{Places, is_in_path, run};
use super::{cargo, java};
use crate::catalog::Program;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `Source::Run` is made of.
pub struct Programs {
    /// The peer itself, which starts whole programs.
    pub own: Vec<OsString>,
    /// Those that speak the protocol themselves.
    pub others: Vec<(Program, Vec<OsString>)>,
    pub flags: String,
}

/// Builds those whose tools are there; the cases of the others are left out.
///
/// # Errors
///
/// What a tool said.
pub fn build(
    places: &Places,
    virtually: bool,
    java_server: Option<Vec<OsString>>,
) -> Result<Programs, String> {
    let pirn = virtually.then(|| cargo::pirn(places)).transpose()?;
    let mut prefix: Vec<OsString> = Vec::new();
    if let Some(pirn) = &pirn {
        prefix.push(pirn.into());
        prefix.extend(["run", "--strict", "--"].map(OsString::from));
    }
    let mut flags = match virtually {
        true => vec![format!("pirn run --strict; {}", cargo::flags())],
        false => Vec::new(),
    };
    let mut others = Vec::new();
    let mut add = |program, command: Vec<OsString>| {
        others.push((program, [prefix.clone(), command].concat()));
    };
    if is_in_path("cc") {
        add(Program::C, c(places)?);
        flags.push("cc -O2".into());
    }
    let python = python();
    if let Some(python) = &python {
        let folder = places.peers.join("run/python");
        add(
            Program::Python,
            vec![python.into(), "-B".into(), folder.into()],
        );
        flags.push(python.display().to_string());
    }
    if let Some(jdk) = java::plain() {
        add(Program::Java, java::threads(&jdk, places)?);
        flags.push(format!("JDK {}", jdk.version()));
    }
    if let Some(command) = java_server {
        add(Program::JavaServer, command);
    }
    let launcher = cargo::program(places, "peer-run")?;
    let how = pirn.map_or_else(|| "native".into(), PathBuf::into_os_string);
    let python = python.map_or_else(OsString::new, PathBuf::into_os_string);
    Ok(Programs {
        own: vec![launcher.into(), how, python],
        others,
        flags: flags.join("; "),
    })
}

/// Compiles the program in C.
fn c(places: &Places) -> Result<Vec<OsString>, String> {
    let (sources, out) = (places.peers.join("run/c"), places.out.join("run"));
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let program = out.join("run-c");
    let files = ["main.c", "protocol.c", "spawn.c", "parked.c", "echo.c"];
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread", "-o"]);
    command.arg(&program);
    command.args(files.map(|file| sources.join(file)));
    run(&mut command, "cc")?;
    Ok(vec![program.into()])
}

/// The system's Python, or else the one of `PATH`, which may be a script that finds the real one.
fn python() -> Option<PathBuf> {
    let system = Path::new("/usr/bin/python3");
    if system.is_file() {
        return Some(system.into());
    }
    let mut command = Command::new("python3");
    command.args(["-c", "import sys; print(sys.executable)"]);
    let printed = run(&mut command, "python3").ok()?;
    let path = String::from_utf8(printed).ok()?;
    Some(path.trim().into())
}
