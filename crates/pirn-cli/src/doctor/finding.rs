//! The findings of the doctor: one line per subject.

use std::io::{self, Write};

use serde::Serialize;

/// The state of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Virtual threads run, but not as far or as well as they could.
    Warn,
    /// Virtual threads do not run.
    Bad,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Bad => "bad",
        }
    }
}

/// A finding about one subject, and the change that it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub verdict: Verdict,
    /// The subject, for example `kernel`.
    pub subject: &'static str,
    pub found: String,
    /// The change that is needed, or an empty text.
    pub advice: String,
}

impl Finding {
    /// Returns a finding that is as it should be.
    pub fn ok(subject: &'static str, found: impl Into<String>) -> Finding {
        Finding::new(Verdict::Ok, subject, found, "")
    }

    /// Returns a finding that could be better.
    pub fn warn(subject: &'static str, found: impl Into<String>, advice: &str) -> Finding {
        Finding::new(Verdict::Warn, subject, found, advice)
    }

    /// Returns a finding that keeps virtual threads from running.
    pub fn bad(subject: &'static str, found: impl Into<String>, advice: &str) -> Finding {
        Finding::new(Verdict::Bad, subject, found, advice)
    }

    fn new(
        verdict: Verdict,
        subject: &'static str,
        found: impl Into<String>,
        advice: &str,
    ) -> Finding {
        Finding {
            verdict,
            subject,
            found: found.into(),
            advice: advice.into(),
        }
    }
}

/// Writes the findings for people, and the conclusion in the last line.
pub fn write_text(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let width = findings.iter().map(|f| f.subject.len()).max().unwrap_or(0);
    for finding in findings {
        let (verdict, subject) = (finding.verdict.name(), finding.subject);
        writeln!(out, "{verdict:<4}  {subject:<width$}  {}", finding.found)?;
        if !finding.advice.is_empty() {
            writeln!(out, "      {:<width$}  -> {}", "", finding.advice)?;
        }
    }
    writeln!(out, "\n{}", conclusion(findings))
}

/// Writes the findings as one JSON object.
pub fn write_json(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Report<'a> {
        verdict: Verdict,
        findings: &'a [Finding],
    }
    let verdict = worst(findings);
    serde_json::to_writer_pretty(&mut *out, &Report { verdict, findings })?;
    writeln!(out)
}

fn worst(findings: &[Finding]) -> Verdict {
    let verdicts = findings.iter().map(|finding| finding.verdict);
    verdicts.max().unwrap_or(Verdict::Ok)
}

fn conclusion(findings: &[Finding]) -> &'static str {
    match worst(findings) {
        Verdict::Ok => "Virtual threads run here.",
        Verdict::Warn => "Virtual threads run here, within the limits above.",
        Verdict::Bad => "Virtual threads do not run here.",
    }
}

#[cfg(test)]
mod tests;
