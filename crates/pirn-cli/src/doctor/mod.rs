//! `pirn doctor`: whether and to what extent this machine can run virtual threads, and what a
//! program lacks for them.
//!
//! The facts ([`machine`], [`program`]) are separate from the conclusions ([`examine_machine`],
//! [`examine_program`]), so that the tests can invent machines.

mod examine_machine;
mod examine_program;
mod finding;
mod machine;
mod program;
mod trial;

use std::error::Error;
use std::io::Write;
use std::path::Path;

use crate::run::obstacle::{self, Caller};
use finding::Verdict;
use machine::Machine;
use program::Program;

/// Runs `pirn doctor`. Returns whether virtual threads can run.
pub fn run(
    program: Option<&Path>,
    json: bool,
    out: &mut dyn Write,
) -> Result<bool, Box<dyn Error>> {
    let mut findings = examine_machine::examine(&Machine::read(Path::new("/")));
    findings.push(examine_machine::trial(trial::run()));
    if let Some(path) = program {
        let failed = |error| format!("cannot read '{}': {error}", path.display());
        let program = Program::read(path).map_err(failed)?;
        let obstacle = obstacle::of(path, &Caller::this()).map_err(failed)?;
        findings.extend(examine_program::examine(&program, obstacle.as_ref()));
    }
    if json {
        finding::write_json(&findings, out)?;
    } else {
        finding::write_text(&findings, out)?;
    }
    Ok(!findings.iter().any(|f| f.verdict == Verdict::Bad))
}
