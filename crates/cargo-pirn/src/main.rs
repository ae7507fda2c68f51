//! `cargo pirn sim test`: `cargo test`, with code that is instrumented for simulations.
//!
//! ```text
//!   cargo pirn sim test …        sets wrapper, target and target folder
//!     cargo test …
//!       cargo-pirn rustc …       the wrapper: adds the flags for what runs in the test
//!         rustc … -C passes=tsan-module,tsan
//! ```
//!
//! LLVM's pass for ThreadSanitizer makes a call of each atomic operation, on the stable compiler as
//! well, and `pirn-sim` defines the functions that are called. Plain loads and stores are only
//! instrumented in functions with an attribute that the stable compiler never sets; the pass for
//! coverage does those.

use core::ffi::{c_int, c_ulong};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Tells the process that it is cargo's wrapper of the compiler: what to instrument.
const WRAPS: &str = "CARGO_PIRN_INSTRUMENT";
/// Where the archive is for programs without `pirn-sim`.
const PLAIN: &str = "CARGO_PIRN_PLAIN";

const USAGE: &str = "\
Runs tests whose code is instrumented for simulations (the crate `pirn-sim`).

usage: cargo pirn sim test [--instrument all] [--places] [ARGUMENTS OF CARGO TEST]

  --instrument all   the dependencies as well, not the workspace's crates only
  --places           loads, stores and edges as well, not atomic operations only

The results are in target/sim, apart from other builds, in a folder for each of these ways.";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let result = match env::var(WRAPS) {
        Ok(what) => compile(&what, &arguments),
        Err(_) => test(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("cargo pirn: {error}");
        ExitCode::from(2)
    })
}

/// `cargo pirn sim test`.
fn test(arguments: &[OsString]) -> Result<ExitCode, String> {
    // Cargo passes the name of the subcommand.
    let words = match arguments {
        [first, rest @ ..] if first == "pirn" => rest,
        all => all,
    };
    let [sim, verb, rest @ ..] = words else {
        return Err(USAGE.to_owned());
    };
    if sim != "sim" || verb != "test" {
        return Err(USAGE.to_owned());
    }
    let (mut all, mut places, mut passed) = (false, false, Vec::new());
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.to_str() {
            Some("--places") => places = true,
            Some("--instrument") => match rest.next().and_then(|what| what.to_str()) {
                Some("all") => all = true,
                Some("workspace") => all = false,
                _ => return Err("--instrument takes `all` or `workspace`".to_owned()),
            },
            Some("--") => {
                passed.push(word.clone());
                passed.extend(rest.by_ref().cloned());
            }
            Some("--help" | "-h") => return Err(USAGE.to_owned()),
            _ => passed.push(word.clone()),
        }
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let what = if places { "places" } else { "atomics" };
    let which = if all { "all" } else { "workspace" };
    // Cargo does not see what the wrapper adds, and would take crates of one kind for another's.
    let folder = folder(&cargo)?.join(format!("{which}-{what}"));
    let own = env::current_exe().map_err(|error| format!("cannot find itself: {error}"))?;
    let wrapper = match all {
        true => "RUSTC_WRAPPER",
        false => "RUSTC_WORKSPACE_WRAPPER",
    };
    keep_addresses();
    let status = Command::new(&cargo)
        .arg("test")
        .args(passed)
        .env(wrapper, own)
        .env(WRAPS, what)
        .env(PLAIN, plain(&rustc, &folder)?)
        // Cargo says which crates are for the target, and which are macros and build scripts, if
        // the target is named.
        .env("CARGO_BUILD_TARGET", host(&rustc)?)
        .env("CARGO_TARGET_DIR", &folder)
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}

/// Makes the kernel give this process's children the same addresses each time: programs may order
/// or hash by them. Best effort: containers may forbid it.
fn keep_addresses() {
    unsafe extern "C" {
        safe fn personality(persona: c_ulong) -> c_int;
    }
    const ADDR_NO_RANDOMIZE: c_ulong = 0x004_0000; // include/uapi/linux/personality.h
    personality(ADDR_NO_RANDOMIZE);
}

/// Returns where the results go: `sim` in the workspace's folder for results.
fn folder(cargo: &OsString) -> Result<PathBuf, String> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let text = output(Command::new(cargo).args(arguments))?;
    let key = "\"target_directory\":\"";
    let found = text
        .split_once(key)
        .and_then(|(_, rest)| rest.split_once('"'));
    match found {
        Some((path, _)) => Ok(Path::new(path).join("sim")),
        None => Err("cargo does not say where its results are".to_owned()),
    }
}

/// Returns the compiler's own target.
fn host(rustc: &OsString) -> Result<String, String> {
    let text = output(Command::new(rustc).arg("-vV"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned)
        .ok_or_else(|| "rustc does not name its host".to_owned())
}

/// Makes the archive for programs without `pirn-sim`. Returns its path.
fn plain(rustc: &OsString, folder: &Path) -> Result<PathBuf, String> {
    let said = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    fs::create_dir_all(folder).map_err(|error| said(folder, error))?;
    let [source, object, archive] = ["rs", "o", "a"].map(|it| folder.join(format!("plain.{it}")));
    fs::write(&source, include_str!("plain.rs")).map_err(|error| said(&source, error))?;
    output(
        Command::new(rustc)
            .args([
                "--edition=2024",
                "--crate-type=lib",
                "--emit=obj",
                "-Copt-level=2",
            ])
            .args(["-Cpanic=abort", "-Ccodegen-units=1", "-o"])
            .args([&object, &source]),
    )?;
    let _ = fs::remove_file(&archive);
    output(Command::new("ar").arg("rcs").args([&archive, &object]))?;
    Ok(archive)
}

/// Returns what a command prints.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// As the wrapper of the compiler: compiles one crate.
fn compile(what: &str, arguments: &[OsString]) -> Result<ExitCode, String> {
    let [rustc, rest @ ..] = arguments else {
        return Err(USAGE.to_owned());
    };
    let mut command = Command::new(rustc);
    command.args(rest);
    if is_for_target(rest) {
        if is_instrumented(rest) {
            command.args(flags(what, rest));
        }
        if let Some(archive) = env::var_os(PLAIN) {
            command.arg("-C").arg({
                let mut argument = OsString::from("link-arg=");
                argument.push(archive);
                argument
            });
        }
    }
    let status = command
        .status()
        .map_err(|error| format!("cannot start rustc: {error}"))?;
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}

/// Returns whether this crate runs in the test: macros and build scripts run in the compiler.
fn is_for_target(rustc: &[OsString]) -> bool {
    rustc
        .iter()
        .any(|it| it == "--target" || it.to_string_lossy().starts_with("--target="))
}

/// The runtime's crates, which are the simulation: the scheduler would be a thread of its own.
const RUNTIME: [&str; 7] = [
    "pirn",
    "pirn_dump",
    "pirn_libc",
    "pirn_observe",
    "pirn_posix",
    "pirn_rt",
    "pirn_sim",
];

/// Returns whether there are to be points in this crate: in none of the runtime's.
fn is_instrumented(rustc: &[OsString]) -> bool {
    let after = |it: &OsString| it == "--crate-name";
    let name = rustc
        .iter()
        .position(after)
        .and_then(|place| rustc.get(place + 1));
    name.is_some_and(|name| !RUNTIME.iter().any(|it| name == it))
}

/// Returns the compiler's flags, beside those that Cargo gives it.
fn flags(what: &str, rustc: &[OsString]) -> Vec<String> {
    let mut passes = "tsan-module,tsan".to_owned();
    let mut flags = Vec::new();
    if what == "places" {
        passes.push_str(",sancov-module");
        let options = ["level=3", "trace-pc-guard", "trace-loads", "trace-stores"];
        flags.extend(options.map(|it| format!("-Cllvm-args=-sanitizer-coverage-{it}")));
    }
    flags.push(format!("-Cpasses={passes}"));
    // Below 2, the compiler takes generic functions from the compiled `std`, where nothing is
    // instrumented.
    flags.push("-Copt-level=2".to_owned());
    // Without optimisation, of which Cargo says nothing, assertions and checks of overflows are on;
    // the flag above would switch them off.
    let says = |what| rustc.iter().any(|it| it.to_string_lossy().contains(what));
    if !says("opt-level=") && !says("debug-assertions=") {
        flags.push("-Cdebug-assertions=on".to_owned());
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_stay_as_cargo_has_them() {
        let has = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
            flags("atomics", &arguments).contains(&"-Cdebug-assertions=on".to_owned())
        };
        assert!(has(&["--crate-name", "a", "-C", "debuginfo=1"]));
        assert!(!has(&["-C", "opt-level=3", "-C", "embed-bitcode=no"]));
        assert!(!has(&["-C", "debug-assertions=off"]));
    }
}
