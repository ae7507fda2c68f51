//! `pirn events`: what the virtual threads of a running process do, as a trace.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pirn_events::{Recording, Timeline, json, perfetto};

use crate::attach;

/// How long the process may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// The command line of `pirn events`.
#[derive(Args)]
pub struct EventsArgs {
    /// The process: its number or its name; or a file of events that it has written.
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
    /// Does not record, but takes what the process has kept: it needs PIRN_EVENTS, or a recorder of
    /// its own.
    #[arg(long)]
    kept: bool,
    /// The file to write; by default `pirn-PID.pftrace`. With the ending .events it gets the events
    /// as they are, which `pirn events FILE` reads later.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Writes a trace in Chrome's JSON format; so does a file with the ending .json.
    #[arg(long)]
    json: bool,
}

/// Runs `pirn events`.
pub fn run(args: &EventsArgs, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let is_file = args.target.parse::<u32>().is_err() && Path::new(&args.target).is_file();
    let source: Box<dyn Read> = match is_file {
        true => {
            let cannot = |error| format!("cannot read '{}': {error}", args.target);
            Box::new(BufReader::new(File::open(&args.target).map_err(cannot)?))
        }
        false => Box::new(ask(args, out)?),
    };
    let ending = args.output.as_deref().and_then(Path::extension);
    if let (Some(path), Some("events")) = (&args.output, ending.and_then(OsStr::to_str)) {
        return save(source, path, out);
    }
    let mut source = source;
    let recording = Recording::read(&mut source)?;
    let timeline = Timeline::new(&recording);
    let json = args.json || ending.is_some_and(|ending| ending == "json");
    let path = args.output.clone().unwrap_or_else(|| {
        let ending = if json { "json" } else { "pftrace" };
        PathBuf::from(format!("pirn-{}.{ending}", recording.pid))
    });
    let cannot = |error: io::Error| format!("cannot write '{}': {error}", path.display());
    let mut file = BufWriter::new(File::create(&path).map_err(cannot)?);
    let mut summary = perfetto::Summary::default();
    match json {
        true => json::write(&timeline, &mut file).map_err(cannot)?,
        false => summary = perfetto::write(&timeline, &mut file).map_err(cannot)?,
    }
    file.flush().map_err(cannot)?;
    tell(&recording, &timeline, &summary, &path, out)?;
    Ok(())
}

/// Asks a process for its events.
fn ask(args: &EventsArgs, out: &mut dyn Write) -> Result<attach::Answer, Box<dyn Error>> {
    let pid = attach::find(&args.target)?;
    let seconds = if args.kept { 0 } else { args.seconds };
    let connection = attach::connect(pid)?;
    if seconds > 0 {
        writeln!(out, "records process {pid} for {seconds} s")?;
        out.flush()?;
    }
    let patience = PATIENCE + Duration::from_secs(seconds);
    Ok(connection.ask("events", &[("seconds", &seconds.to_string())], patience)?)
}

/// Writes the events as they are.
fn save(mut source: impl Read, path: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let cannot = |error: io::Error| format!("cannot write '{}': {error}", path.display());
    let mut file = File::create(path).map_err(cannot)?;
    let bytes = io::copy(&mut source, &mut file).map_err(cannot)?;
    writeln!(out, "{}: {bytes} bytes of events", path.display())?;
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
        writeln!(
            out,
            "the recording breaks off: the process has ended, perhaps"
        )?;
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
