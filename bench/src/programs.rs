//! Programs that are not built here, such as `wrk`: what needs one that is not installed is left
//! out, and that is said before the first round.

use crate::catalog::Workload;
use crate::peers::java;
use std::path::PathBuf;

/// Leaves out the cases that need a program which is not installed. Returns the lines to say, one
/// per program.
pub fn leave_out(
    workloads: &mut Vec<Workload>,
    is_installed: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut lacking: Vec<(&str, Vec<String>)> = Vec::new();
    for workload in &mut *workloads {
        let name = workload.name;
        workload.cases.retain(|case| {
            let mut needed = case.needs.iter().copied().chain(case.driver.program());
            let Some(program) = needed.find(|program| !is_installed(program)) else {
                return true;
            };
            let left_out = format!("{name} {}", case.name).trim_end().to_owned();
            match lacking.iter_mut().find(|(lacks, _)| *lacks == program) {
                Some((_, cases)) => cases.push(left_out),
                None => lacking.push((program, vec![left_out])),
            }
            false
        });
    }
    workloads.retain(|workload| !workload.cases.is_empty());
    let line = |(program, cases): (&str, Vec<String>)| {
        let cases = cases.join(", ");
        let remedy = remedy(program);
        format!("{program} is not installed ({remedy}); left out: {cases}")
    };
    lacking.into_iter().map(line).collect()
}

fn remedy(program: &str) -> String {
    let package = match program {
        "JDK 25" => return "set JAVA_HOME to one that is not older".into(),
        "java" => "default-jdk-headless",
        "cc" => "gcc",
        "h2load" => "nghttp2-client",
        "redis-benchmark" => "redis-tools",
        program => program,
    };
    format!("apt-get install {package}")
}

/// Whether a program can be started: it is in one of the folders of `PATH`, or a JDK.
pub fn is_installed(program: &str) -> bool {
    match program {
        "java" => java::plain().is_some(),
        "JDK 25" => java::Jdk::find().is_ok(),
        program => is_in_path(program),
    }
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_in = |folder: PathBuf| folder.join(program).is_file();
    std::env::split_paths(&path).any(is_in)
}

#[cfg(test)]
mod tests;
