//! `pirn doctor`: whether this machine can run virtual threads, and how far; and what a program
//! lacks for them.
//!
//! What is found out ([`machine`], [`program`]) is separate from what is said about it
//! ([`examine_machine`], [`examine_program`]): the tests feed machines that nobody has.

mod examine_machine;
mod examine_program;
mod finding;
mod machine;
mod program;
mod trial;

use std::error::Error;
use std::io::Write;
use std::path::Path;

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
        let program = Program::read(path)
            .map_err(|error| format!("cannot read '{}': {error}", path.display()))?;
        findings.extend(examine_program::examine(&program));
    }
    if json {
        finding::write_json(&findings, out)?;
    } else {
        finding::write_text(&findings, out)?;
    }
    Ok(!findings.iter().any(|f| f.verdict == Verdict::Bad))
}
