//! Runs in a fresh process: a copy of this test program, which runs this test only.
//!
//! ```text
//!   the test                             a fresh process
//!     Runner::run(options) --- PIRN_SIM_RUN --->  next(): runs, writes the report, exits
//!            report <------------- a file -------------------+
//! ```
//!
//! There, no static has been used, and no thread of another run is left. Addresses are the same in
//! each, as the kernel does not choose them at random (`ADDR_NO_RANDOMIZE`).

use crate::run::{self, Report, Test};
use crate::world::Options;
use core::cell::Cell;
use serde::{Deserialize, Serialize};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs, io, thread};

/// Where the options of the run are.
const VARIABLE: &str = "PIRN_SIM_RUN";

/// Which simulation of the program it is: the test's name, and how many the test has had before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Name {
    test: String,
    count: u32,
}

/// What a fresh process is to do.
#[derive(Serialize, Deserialize)]
struct Order {
    name: Name,
    /// Runs before, for what is made lazily.
    before: Vec<Options>,
    run: Options,
}

/// Runs a test.
pub(crate) struct Runner<'a> {
    pub(crate) test: &'a Test,
    /// `None`: the test's name is not known, so no other process could run it.
    pub(crate) name: Option<Name>,
    /// Each run has a process of its own.
    pub(crate) is_fresh: bool,
}

impl Runner<'_> {
    /// Runs the test once.
    ///
    /// # Panics
    /// If that is not possible.
    pub(crate) fn run(&self, options: &Options) -> Report {
        match &self.name {
            Some(name) if self.is_fresh => match elsewhere(name, &[], options) {
                Ok(report) => report,
                Err(error) => panic!("pirn: no run in a process of its own: {error}"),
            },
            _ => must(options, self.test),
        }
    }

    /// Returns a runner whose runs have processes of their own; `None`: this one's have, or cannot.
    pub(crate) fn fresh(&self) -> Option<Runner<'_>> {
        let can = !self.is_fresh && self.name.is_some() && env::var_os(VARIABLE).is_none();
        can.then(|| Runner {
            test: self.test,
            name: self.name.clone(),
            is_fresh: true,
        })
    }

    /// Runs a seed that has failed in a fresh process, after a run of the first seed. Returns what
    /// a person is told of it.
    pub(crate) fn confirmed(&self, first: &Options, options: &Options, seen: &Report) -> String {
        if self.is_fresh {
            return "each run had a process of its own: runs in one process differ".to_owned();
        }
        let Some(name) = &self.name else {
            return "not run in a fresh process: the test's name is not known".to_owned();
        };
        // Each of several simulations of a test would start processes for all before it, which do
        // as well.
        if env::var_os(VARIABLE).is_some() {
            return "in a fresh process, for a later simulation of the test".to_owned();
        }
        match elsewhere(name, core::slice::from_ref(first), options) {
            Ok(report) if report.hash == seen.hash => {
                format!("in a fresh process: the same {} points", report.points)
            }
            Ok(report) if report.outcome == seen.outcome => {
                "in a fresh process: the same failure, by other steps".to_owned()
            }
            Ok(report) => format!(
                "in a fresh process it does otherwise ({:?}): it depends on earlier runs, or on \
                 what is not simulated",
                report.outcome
            ),
            Err(error) => format!("not run in a fresh process: {error}"),
        }
    }
}

/// Runs the test in this process.
///
/// # Panics
/// If there can be no simulation.
pub(crate) fn must(options: &Options, test: &Test) -> Report {
    match run::run(options, test) {
        Ok(report) => report,
        Err(error) => panic!("pirn: no simulation: {error}"),
    }
}

/// Counts a simulation of the calling test, and returns its name if it has one. In a fresh process
/// that is to run this very simulation, runs it and ends the process.
pub(crate) fn next(test: &Test) -> Option<Name> {
    thread_local! {
        static COUNT: Cell<u32> = const { Cell::new(0) };
    }
    let count = COUNT.replace(COUNT.get() + 1);
    // The test harness names a test's thread by the test.
    let name = thread::current()
        .name()
        .filter(|it| *it != "main")
        .map(|it| Name {
            test: it.to_owned(),
            count,
        });
    if let Some(path) = env::var_os(VARIABLE) {
        let order = fs::read(&path).ok();
        let order: Option<Order> = order.and_then(|it| serde_json::from_slice(&it).ok());
        if let Some(order) = order.filter(|it| Some(&it.name) == name.as_ref()) {
            for options in &order.before {
                must(options, test);
            }
            let report = must(&order.run, test);
            let text = serde_json::to_vec(&report).unwrap_or_default();
            let written = fs::write(&path, text);
            std::process::exit(if written.is_ok() { 0 } else { 1 });
        }
    }
    name
}

/// Runs a simulation in a fresh process.
fn elsewhere(name: &Name, before: &[Options], options: &Options) -> Result<Report, String> {
    let file = File::new()?;
    let order = Order {
        name: name.clone(),
        before: before.to_vec(),
        run: options.clone(),
    };
    let said = |what: &str, error: &dyn core::fmt::Display| format!("{what}: {error}");
    let text = serde_json::to_vec(&order).map_err(|error| said("options", &error))?;
    fs::write(&file.0, text).map_err(|error| said("a file for the options", &error))?;
    let own = env::current_exe().map_err(|error| said("this program", &error))?;
    let mut command = Command::new(own);
    command.args([
        &name.test,
        "--exact",
        "--include-ignored",
        "--test-threads=2",
    ]);
    command.env(VARIABLE, &file.0).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    // SAFETY: a system call.
    unsafe {
        command.pre_exec(|| {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
    let status = command
        .status()
        .map_err(|error| said("a process", &error))?;
    let text = fs::read(&file.0).map_err(|error| said("the report", &error))?;
    serde_json::from_slice(&text).map_err(|_| {
        format!(
            "it ended without a report ({status}): is {} its name?",
            name.test
        )
    })
}

/// A file for options and report, which goes with this.
struct File(PathBuf);

impl File {
    fn new() -> Result<File, String> {
        let mut path = env::temp_dir().into_os_string().into_encoded_bytes();
        path.extend(b"/pirn-sim-XXXXXX\0");
        // SAFETY: a C string that ends with six X, which the call may change.
        let fd = unsafe { libc::mkstemp(path.as_mut_ptr().cast()) };
        if fd < 0 {
            return Err(format!("a file: {}", io::Error::last_os_error()));
        }
        // SAFETY: just opened, and no other code knows it.
        unsafe { libc::close(fd) };
        path.pop();
        Ok(File(PathBuf::from(
            String::from_utf8_lossy(&path).into_owned(),
        )))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
