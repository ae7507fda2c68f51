//! `pirn ps`: the running processes with virtual threads. They are not asked, only looked at.

use std::fs;
use std::io::{self, Write};

use indicatif::BinaryBytes;
use rustix::process::geteuid;

use pirn_live::attach;

/// Writes a line per process that this user may look into.
pub fn run(out: &mut dyn Write) -> io::Result<()> {
    let user = geteuid();
    writeln!(
        out,
        "{:>8} {:>10} {:>12}  command",
        "pid", "OS threads", "resident"
    )?;
    for process in attach::all() {
        if !user.is_root() && user.as_raw() != process.user {
            continue;
        }
        let pid = process.pid;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let number = |name: &str| -> u64 {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            let value = value.and_then(|value| value.split_whitespace().next());
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        let resident = BinaryBytes(number("VmRSS:") * 1024).to_string();
        let command = command(pid).unwrap_or(process.name);
        writeln!(
            out,
            "{pid:>8} {:>10} {resident:>12}  {command}",
            number("Threads:")
        )?;
    }
    out.flush()
}

/// Returns a process's command line, fit for a terminal; `None` if it has overwritten it.
fn command(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = String::from_utf8_lossy(&line)
        .trim_end_matches('\0')
        .replace('\0', " ");
    let plain = words.replace(char::is_control, "?");
    (!plain.is_empty()).then_some(plain)
}
