//! `pirn events`: what the virtual threads of a running process do, as a trace.

mod output;

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pirn_events::{Recording, Timeline, perfetto};

use output::Output;
use pirn_live::attach;

/// How long the process may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// The command line of `pirn events`.
#[derive(Args)]
pub struct EventsArgs {
    /// The process: its number or its name; or a file of events.
    #[arg(value_name = "PID|NAME|FILE")]
    target: String,
    /// How long to record.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 5,
        conflicts_with = "kept"
    )]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Instead of recording, takes what the process has kept so far: it needs PIRN_EVENTS, or a
    /// recorder of its own.
    #[arg(long)]
    kept: bool,
    /// The file to write; by default `pirn-PID.pftrace`. If its name ends in .events, it gets the
    /// events as they are, which `pirn events FILE` reads later.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs `pirn events`.
pub fn run(args: &EventsArgs, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let is_file = args.target.parse::<u32>().is_err() && Path::new(&args.target).is_file();
    match is_file {
        true => read(args, out),
        false => record(args, out),
    }
}

impl EventsArgs {
    /// Returns the ending of the file to write, if it has one.
    fn ending(&self) -> Option<&str> {
        let path = self.output.as_deref();
        path.and_then(Path::extension).and_then(OsStr::to_str)
    }

    /// Opens the file to write, for what process `pid` does.
    fn open_output(&self, pid: u32) -> Result<Output, String> {
        if self.ending() == Some("json") {
            return Err(
                "the trace is in Perfetto's format: name it .pftrace; `traceconv json` converts it"
                    .into(),
            );
        }
        let default = || PathBuf::from(format!("pirn-{pid}.pftrace"));
        Output::open(&self.output.clone().unwrap_or_else(default))
    }
}

/// Makes a trace of a file of events.
fn read(args: &EventsArgs, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let cannot = |error| format!("cannot read '{}': {error}", args.target);
    let mut source = BufReader::new(File::open(&args.target).map_err(cannot)?);
    if args.ending() == Some("events") {
        return save(source, args.open_output(0)?, out);
    }
    let recording = Recording::read(&mut source)?;
    let output = args.open_output(recording.pid)?;
    trace(&recording, output, out)
}

/// Asks a process for its events.
fn record(args: &EventsArgs, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let pid = attach::find(&args.target)?;
    let seconds = if args.kept { 0 } else { args.seconds };
    let connection = attach::connect(pid)?;
    let output = args.open_output(pid)?;
    if seconds > 0 {
        writeln!(out, "recording process {pid} for {seconds} s")?;
        out.flush()?;
    }
    let patience = PATIENCE + Duration::from_secs(seconds);
    let mut source = connection.ask("events", &[("seconds", &seconds.to_string())], patience)?;
    if args.ending() == Some("events") {
        return save(source, output, out);
    }
    let recording = Recording::read(&mut source)?;
    trace(&recording, output, out)
}

/// Writes the events as they are.
fn save(
    mut source: impl Read,
    mut output: Output,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let bytes = io::copy(&mut source, &mut output).map_err(output.cannot())?;
    writeln!(out, "{}: {bytes} bytes of events", output.path().display())?;
    Ok(())
}

/// Writes a trace of what was recorded.
fn trace(recording: &Recording, output: Output, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let timeline = Timeline::new(recording);
    let (cannot, path) = (output.cannot(), output.path().to_owned());
    let mut file = BufWriter::new(output);
    let summary = perfetto::write(&timeline, &mut file).map_err(&cannot)?;
    file.flush().map_err(cannot)?;
    tell(recording, &timeline, &summary, &path, out)?;
    Ok(())
}

/// Says what is in the trace, and what is not.
fn tell(
    recording: &Recording,
    timeline: &Timeline,
    summary: &perfetto::Summary,
    path: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    let seconds = (timeline.end - timeline.begin) as f64 / 1e9;
    let (events, threads) = (timeline.events.len(), timeline.threads.len());
    let carriers = timeline.rows.iter().filter(|row| row.carrier.is_some());
    let carriers = carriers.count();
    writeln!(
        out,
        "{}: {seconds:.3} s, {events} events of {threads} virtual threads on {carriers} carriers",
        path.display()
    )?;
    if !recording.reason.is_empty() && recording.reason != "asked for" {
        writeln!(out, "written because {}", recording.reason)?;
    }
    if timeline.events.is_empty() {
        writeln!(
            out,
            "there are no events: does the process keep any (PIRN_EVENTS)?"
        )?;
    }
    if recording.lost > 0 {
        writeln!(out, "{} older events had been overwritten", recording.lost)?;
    }
    if !recording.complete {
        writeln!(out, "the recording breaks off: the process may have ended")?;
    }
    if summary.without_details {
        writeln!(
            out,
            "there are so many waits that slices and arrows for them are left out"
        )?;
    }
    if summary.unnamed > 0 {
        writeln!(
            out,
            "the {} threads that ran least have no names",
            summary.unnamed
        )?;
    }
    Ok(())
}
