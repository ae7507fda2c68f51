//! The peers: which there are, how each is found, built and started.

mod cargo;
pub mod java;
mod run;
mod tools;

use crate::catalog::Program;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tools::{Places, run};

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
    /// Returns the command that starts one of its programs, and its own where it has no such one.
    pub fn command(&self, program: Program) -> Command {
        let mut others = self.others.iter();
        let found = others.find(|(other, _)| *other == program);
        let words = found.map_or(&self.own, |(_, command)| command);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
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
    /// The package of the peer `pirn`, with its other form of actors.
    Processes,
    Go,
    /// The program in Java, with this kind of thread.
    Java(&'static str),
    /// A project of Maven, in this folder, with this class that has `main`.
    Maven(&'static str, &'static str),
    /// It compiles to machine code when it loads, not while it runs.
    Erlang,
    /// Programs that know nothing of Pirn: under `pirn run`, or natively.
    Run {
        virtually: bool,
    },
}

/// All of them, in the order of the reports.
pub const KNOWN: &[Known] = &[
    known("pirn", "Pirn", Source::Cargo("peer-pirn")),
    known(
        "jdk-virtual",
        "JDK virtual threads",
        Source::Java("virtual"),
    ),
    known("go", "Go", Source::Go),
    known("tokio", "tokio", Source::Cargo("peer-tokio")),
    known("may", "may", Source::Cargo("peer-may")),
    known(
        "jdk-platform",
        "JDK platform threads",
        Source::Java("platform"),
    )
    .of_the_system(),
    known(
        "os-threads",
        "OS threads (Rust)",
        Source::Cargo("peer-os-threads"),
    )
    .of_the_system(),
    known(
        "helidon",
        "Helidon (JDK virtual)",
        Source::Maven("helidon", "peer.helidon.Main"),
    )
    .partial(),
    known("rayon", "rayon", Source::Cargo("peer-rayon")).partial(),
    known("pirn-process", "Pirn (processes)", Source::Processes).partial(),
    known("pirn-http", "pirn-http", Source::Cargo("peer-pirn-http")).partial(),
    known(
        "pirn-textbook",
        "Pirn (textbook server)",
        Source::Cargo("peer-pirn"),
    )
    .partial(),
    known("ractor", "ractor", Source::Cargo("peer-ractor")).partial(),
    known("kameo", "kameo", Source::Cargo("peer-kameo")).partial(),
    known("actix", "actix (one thread)", Source::Cargo("peer-actix")).partial(),
    known("erlang", "Erlang", Source::Erlang).partial(),
    known(
        "fibry",
        "Fibry (JDK virtual)",
        Source::Maven("fibry", "peer.fibry.Main"),
    )
    .partial(),
    known(
        "native",
        "Native (OS threads)",
        Source::Run { virtually: false },
    )
    .partial()
    .of_the_system(),
    known("pirn-run", "pirn run", Source::Run { virtually: true }).partial(),
];

const fn known(name: &'static str, title: &'static str, source: Source) -> Known {
    let kind = Kind {
        os_threads: false,
        jit: matches!(source, Source::Java(_) | Source::Maven(..)),
        partial: false,
    };
    Known {
        name,
        title,
        kind,
        source,
    }
}

impl Known {
    const fn partial(mut self) -> Known {
        self.kind.partial = true;
        self
    }

    const fn of_the_system(mut self) -> Known {
        self.kind.os_threads = true;
        self
    }
}

/// The peers of these names, or all.
///
/// # Errors
///
/// If no peer has such a name.
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
    /// The JDK, or why it is missing.
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
            Source::Processes => {
                let (program, flags) = self.cargo("peer-pirn")?;
                ([program, vec!["processes".into()]].concat(), flags)
            }
            Source::Go => go(&self.places)?,
            Source::Java(threads) => self.java(threads)?,
            Source::Maven(folder, main) => {
                java::maven(&self.jdk.clone()?, &self.places, folder, main)?
            }
            Source::Erlang => erlang(&self.places)?,
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
        cargo::program(&self.places, "bench-load")
    }

    fn cargo(&self, package: &str) -> Result<(Vec<OsString>, String), String> {
        let program = cargo::program(&self.places, package)?;
        Ok((vec![program.into()], cargo::flags().into()))
    }
}

/// Whether a program can be started: it is in one of the folders of `PATH`, or a JDK.
pub fn is_installed(program: &str) -> bool {
    match program {
        "java" => java::plain().is_some(),
        "JDK 25" => java::Jdk::find().is_ok(),
        _ => tools::is_in_path(program),
    }
}

/// Builds the program in Go; gives how to start it, and how it was built.
fn go(places: &Places) -> Result<(Vec<OsString>, String), String> {
    let program = places.out.join("go").join("peer");
    let mut command = Command::new("go");
    command.current_dir(places.peers.join("go"));
    command.args(["build", "-o"]).arg(&program).arg(".");
    run(&mut command, "go")?;
    Ok((vec![program.into()], "go build".into()))
}

/// Builds the program in Erlang; gives how to start it, and its flags: with room for more processes
/// than the 262,144 of the default, which the largest sizes need, and without the files of those
/// that crash.
fn erlang(places: &Places) -> Result<(Vec<OsString>, String), String> {
    const FLAGS: [&str; 5] = ["+P", "4000000", "-env", "ERL_CRASH_DUMP_SECONDS", "0"];
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
