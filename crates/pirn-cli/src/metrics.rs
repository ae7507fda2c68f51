//! `pirn metrics`: the metrics of a running process, as Prometheus reads them.

use std::error::Error;
use std::io::{BufRead, Read, Write};
use std::time::Duration;

use clap::Args;

use pirn_live::attach;

/// How long the process may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// The command line of `pirn metrics`.
#[derive(Args)]
pub struct MetricsArgs {
    /// The process: its number or its name.
    #[arg(value_name = "PID|NAME")]
    process: String,
    /// Writes a line of JSON per interval, until Ctrl-C: counters, rates, and what each carrier
    /// does.
    #[arg(long)]
    watch: bool,
    /// The interval of --watch, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000, requires = "watch")]
    #[arg(value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    interval_ms: u64,
}

/// Runs `pirn metrics`.
pub fn run(args: &MetricsArgs, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let connection = attach::connect(attach::find(&args.process)?)?;
    if !args.watch {
        let mut text = String::new();
        let mut answer = connection.ask("metrics", &[], PATIENCE)?;
        answer.read_to_string(&mut text)?;
        return Ok(out.write_all(text.as_bytes())?);
    }
    let interval = args.interval_ms.to_string();
    let patience = PATIENCE + Duration::from_millis(args.interval_ms);
    let answer = connection.ask("watch", &[("interval-ms", &interval)], patience)?;
    for line in answer.lines() {
        writeln!(out, "{}", line?)?;
        out.flush()?;
    }
    Ok(())
}
