//! The peers: which there are, how each is found, built and started.

mod cargo;
mod erlang;
mod go;
pub mod java;
mod run;

use crate::catalog::Program;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A peer that can be started.
#[derive(Clone)]
pub struct Peer {
    pub name: &'static str,
    /// The program and what comes before the workload's name.
    own: Vec<OsString>,
    /// The same for other programs.
    others: Vec<(Program, Vec<OsString>)>,
    /// How it was built and is started, for the report.
    pub flags: String,
    pub kind: Kind,
}

impl Peer {
    /// The words that start one of its programs, and its own where it has no such one.
    pub fn command(&self, program: Program) -> &[OsString] {
        let mut others = self.others.iter();
        let found = others.find(|(other, _)| *other == program);
        found.map_or(&self.own, |(_, command)| command)
    }
}

/// What the harness must know of a peer's kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Its threads are the operating system's.
    pub os_threads: bool,
    /// It has a compiler at run time, which must warm up.
    pub jit: bool,
    /// It has few of the workloads: it does only cases that name it.
    pub partial: bool,
}

/// A peer that might be there.
pub struct Known {
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    pub kind: Kind,
    source: Source,
}

#[derive(Clone, Copy)]
enum Source {
    /// A package of the workspace `bench/peers`.
    Cargo(&'static str),
    Go,
    /// The program in Java, with this kind of thread.
    Java(&'static str),
    /// A project of Maven, in this folder, with this class that has `main`.
    Maven(&'static str, &'static str),
    Erlang,
    /// Programs that know nothing of Pirn: under `pirn run`, or natively.
    Run {
        virtually: bool,
    },
}

const NATIVE: Kind = Kind {
    os_threads: false,
    jit: false,
    partial: false,
};
const JAVA: Kind = Kind {
    jit: true,
    ..NATIVE
};
/// It has few of the workloads.
const PARTIAL: Kind = Kind {
    partial: true,
    ..NATIVE
};
/// The same, in Java.
const PARTIAL_JAVA: Kind = Kind {
    partial: true,
    ..JAVA
};

/// All of them, in the order of the reports.
pub const KNOWN: &[Known] = &[
    known("pirn", "Pirn", NATIVE, Source::Cargo("peer-pirn")),
    known(
        "jdk-virtual",
        "JDK virtual threads",
        JAVA,
        Source::Java("virtual"),
    ),
    known("go", "Go", NATIVE, Source::Go),
    known("tokio", "tokio", NATIVE, Source::Cargo("peer-tokio")),
    known("may", "may", NATIVE, Source::Cargo("peer-may")),
    known(
        "jdk-platform",
        "JDK platform threads",
        Kind {
            os_threads: true,
            ..JAVA
        },
        Source::Java("platform"),
    ),
    known(
        "os-threads",
        "OS threads (Rust)",
        Kind {
            os_threads: true,
            ..NATIVE
        },
        Source::Cargo("peer-os-threads"),
    ),
    known(
        "helidon",
        "Helidon (JDK virtual)",
        PARTIAL_JAVA,
        Source::Maven("helidon", "peer.helidon.Main"),
    ),
    known("rayon", "rayon", PARTIAL, Source::Cargo("peer-rayon")),
    known(
        "pirn-process",
        "Pirn (processes)",
        PARTIAL,
        Source::Cargo("peer-pirn-process"),
    ),
    known(
        "pirn-http",
        "pirn-http",
        PARTIAL,
        Source::Cargo("peer-pirn-http"),
    ),
    known(
        "pirn-textbook",
        "Pirn (textbook server)",
        PARTIAL,
        Source::Cargo("peer-pirn"),
    ),
    known("ractor", "ractor", PARTIAL, Source::Cargo("peer-ractor")),
    known("kameo", "kameo", PARTIAL, Source::Cargo("peer-kameo")),
    known(
        "actix",
        "actix (one thread)",
        PARTIAL,
        Source::Cargo("peer-actix"),
    ),
    known(
        "erlang",
        "Erlang",
        // It compiles to machine code when it loads, not while it runs.
        PARTIAL,
        Source::Erlang,
    ),
    known(
        "fibry",
        "Fibry (JDK virtual)",
        PARTIAL_JAVA,
        Source::Maven("fibry", "peer.fibry.Main"),
    ),
    known(
        "native",
        "Native (OS threads)",
        Kind {
            os_threads: true,
            ..PARTIAL
        },
        Source::Run { virtually: false },
    ),
    known(
        "pirn-run",
        "pirn run",
        PARTIAL,
        Source::Run { virtually: true },
    ),
];

const fn known(name: &'static str, title: &'static str, kind: Kind, source: Source) -> Known {
    Known {
        name,
        title,
        kind,
        source,
    }
}

/// The peers of these names, or all.
///
/// # Errors
///
/// If there is none of such a name.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Known>> {
    if let Some(unknown) = names
        .iter()
        .find(|name| KNOWN.iter().all(|k| k.name != **name))
    {
        let known: Vec<&str> = KNOWN.iter().map(|k| k.name).collect();
        bail!(
            "there is no peer {unknown:?}; there are {}",
            known.join(", ")
        );
    }
    let is_chosen = |k: &&Known| names.is_empty() || names.iter().any(|name| name == k.name);
    Ok(KNOWN.iter().filter(is_chosen).collect())
}

/// Builds what is not built, from all that is known at once where that is quicker.
pub struct Builder {
    places: Places,
    /// The JDK, or why there is none.
    jdk: Result<java::Jdk, String>,
    /// The Java program built, or why not. None before the first try.
    java: Option<Result<(), String>>,
}

impl Builder {
    /// # Errors
    ///
    /// If it cannot be found out where this program and its sources are.
    pub fn new() -> Result<Builder> {
        Ok(Builder {
            places: Places::find()?,
            jdk: java::Jdk::find(),
            java: None,
        })
    }

    /// Makes a peer ready to be started.
    ///
    /// # Errors
    ///
    /// If it cannot be: the reason for the report.
    pub fn build(&mut self, known: &Known) -> Result<Peer, String> {
        let mut others = Vec::new();
        let (own, flags) = match known.source {
            Source::Cargo(package) => self.cargo(package)?,
            Source::Go => go::build(&self.places)?,
            Source::Java(threads) => self.java(threads)?,
            Source::Maven(folder, main) => {
                java::maven(&self.jdk.clone()?, &self.places, folder, main)?
            }
            Source::Erlang => erlang::build(&self.places)?,
            Source::Run { virtually } => {
                let java_server = match &self.jdk {
                    Ok(_) => Some(self.java("platform")?.0),
                    Err(_) => None,
                };
                let programs = run::build(&self.places, virtually, java_server)?;
                others = programs.others;
                (programs.own, programs.flags)
            }
        };
        Ok(Peer {
            name: known.name,
            own,
            others,
            flags,
            kind: known.kind,
        })
    }

    /// How to start the program in Java with this kind of thread, and its flags.
    fn java(&mut self, threads: &str) -> Result<(Vec<OsString>, String), String> {
        let jdk = self.jdk.clone()?;
        let build = || java::build(&jdk, &self.places);
        self.java.get_or_insert_with(build).clone()?;
        Ok(java::command(&jdk, &self.places, threads))
    }

    /// A JDK that was passed over, and why.
    pub fn refused(&self) -> Option<String> {
        self.jdk.as_ref().ok()?.refused.clone()
    }

    /// The program that makes the load for the workloads of servers.
    ///
    /// # Errors
    ///
    /// If it cannot be built.
    pub fn load(&self) -> Result<PathBuf, String> {
        let mut built = cargo::programs(&self.places, &["bench-load"])?;
        built
            .pop()
            .ok_or_else(|| "cargo made no bench-load".to_owned())
    }

    fn cargo(&self, package: &str) -> Result<(Vec<OsString>, String), String> {
        let mut built = cargo::programs(&self.places, &[package])?;
        let program = built
            .pop()
            .ok_or_else(|| format!("cargo made no {package}"))?;
        Ok((vec![program.into()], cargo::flags().into()))
    }
}

/// Where things are.
pub struct Places {
    /// The sources of the peers.
    peers: PathBuf,
    /// Where cargo puts what it makes.
    target: PathBuf,
    /// Where the others put what they make.
    out: PathBuf,
}

impl Places {
    fn find() -> Result<Places> {
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

/// Runs a tool; the error is the end of what it said.
fn run(command: &mut Command, tool: &str) -> Result<Vec<u8>, String> {
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
mod tests;
