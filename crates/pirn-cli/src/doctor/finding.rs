//! What the doctor says: one line per matter.

use std::fmt::Write as _;
use std::io::{self, Write};

/// How it stands with one matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What was found in one matter, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    /// The matter, for example `kernel`.
    pub subject: &'static str,
    pub found: String,
    /// What to change; empty if there is nothing.
    pub advice: String,
}

impl Finding {
    /// All is well.
    pub fn ok(subject: &'static str, found: impl Into<String>) -> Finding {
        Finding::new(Verdict::Ok, subject, found, "")
    }

    /// It could be better.
    pub fn warn(subject: &'static str, found: impl Into<String>, advice: &str) -> Finding {
        Finding::new(Verdict::Warn, subject, found, advice)
    }

    /// It will not do.
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

/// Writes the findings for people, and in the last line what follows from them.
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
    writeln!(out, "{{")?;
    writeln!(out, "  \"verdict\": {},", quoted(worst(findings).name()))?;
    writeln!(out, "  \"findings\": [")?;
    for (i, finding) in findings.iter().enumerate() {
        let comma = if i + 1 < findings.len() { "," } else { "" };
        writeln!(
            out,
            "    {{\"verdict\": {}, \"subject\": {}, \"found\": {}, \"advice\": {}}}{comma}",
            quoted(finding.verdict.name()),
            quoted(finding.subject),
            quoted(&finding.found),
            quoted(&finding.advice),
        )?;
    }
    writeln!(out, "  ]\n}}")
}

fn worst(findings: &[Finding]) -> Verdict {
    let has = |verdict| findings.iter().any(|f| f.verdict == verdict);
    match () {
        () if has(Verdict::Bad) => Verdict::Bad,
        () if has(Verdict::Warn) => Verdict::Warn,
        () => Verdict::Ok,
    }
}

fn conclusion(findings: &[Finding]) -> &'static str {
    match worst(findings) {
        Verdict::Ok => "Virtual threads run here.",
        Verdict::Warn => "Virtual threads run here, within the limits above.",
        Verdict::Bad => "Virtual threads do not run here.",
    }
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\u{20}'.. => quoted.push(c),
            // Writing to a string does not fail.
            _ => drop(write!(quoted, "\\u{:04x}", c as u32)),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> [Finding; 2] {
        [
            Finding::ok("kernel", "Linux 6.18"),
            Finding::warn("mappings", "65530", "raise \"it\""),
        ]
    }

    #[test]
    fn text_has_a_line_per_matter_and_one_for_advice() {
        let mut out = Vec::new();
        write_text(&findings(), &mut out).unwrap();
        let expected = "ok    kernel    Linux 6.18\n\
                        warn  mappings  65530\n                \
                        -> raise \"it\"\n\n\
                        Virtual threads run here, within the limits above.\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn json_is_quoted() {
        let mut out = Vec::new();
        write_json(&findings(), &mut out).unwrap();
        let expected = r#"{
  "verdict": "warn",
  "findings": [
    {"verdict": "ok", "subject": "kernel", "found": "Linux 6.18", "advice": ""},
    {"verdict": "warn", "subject": "mappings", "found": "65530", "advice": "raise \"it\""}
  ]
}
"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(quoted("a\\\n\u{1}é"), r#""a\\\u000a\u0001é""#);
    }

    #[test]
    fn the_worst_decides() {
        let [ok, warn] = findings();
        let bad = Finding::bad("processor", "", "");
        assert_eq!(worst(&[]), Verdict::Ok);
        assert_eq!(worst(std::slice::from_ref(&ok)), Verdict::Ok);
        assert_eq!(worst(&[ok.clone(), warn.clone()]), Verdict::Warn);
        assert_eq!(worst(&[bad, warn, ok]), Verdict::Bad);
    }
}
