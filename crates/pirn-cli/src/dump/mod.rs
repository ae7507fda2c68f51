//! `pirn dump`: the virtual threads of a running process, or those in a file.

mod source;

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pirn_dump::{Diff, Dump, Filter, Format, Names, Symbols, View};

use crate::report::count;
use source::Source;

/// The ending of a file that gets the dump itself, not a text.
const SAVED: &str = "pirndump";

/// The command line of `pirn dump`.
#[derive(Args)]
pub struct DumpArgs {
    /// The process: its number or its name; or a core file; or a file written by --output.
    #[arg(value_name = "PID|NAME|FILE")]
    target: String,
    /// One of text, threads, tree, json, jdk, jdk25, pprof, folded.
    #[arg(long, default_value = "text", conflicts_with = "tree")]
    format: Format,
    /// Shows the tree of scopes, with the threads in each.
    #[arg(long)]
    tree: bool,
    /// Shows only threads that meet all of these conditions, as in
    /// `state=waiting,wait=read|poll,name=conn*`: state, wait, name, for, frame, place, scope,
    /// id, object, age. `|` stands between alternatives.
    #[arg(long = "where", value_name = "CONDITIONS")]
    filter: Option<Filter>,
    /// Shows only the thread with this id.
    #[arg(long, value_name = "N")]
    id: Option<u64>,
    /// Compares with an earlier dump written by --output: shows which groups have grown.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "tree"])]
    diff: Option<PathBuf>,
    /// Reads the memory of the process, which may be stopped or stuck, instead of asking it. This
    /// takes the right to trace it. Running threads are shown without their stacks.
    #[arg(long)]
    outside: bool,
    /// The most groups, threads or scopes to show.
    #[arg(long, value_name = "N")]
    max: Option<usize>,
    /// Shows the frames of the runtime, too.
    #[arg(long)]
    runtime_frames: bool,
    /// Writes to this file. If its name ends in .pirndump, it gets the dump itself, which
    /// `pirn dump FILE` shows later, in any format.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How long the process may be silent, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

impl DumpArgs {
    fn format(&self) -> Format {
        match self.tree {
            true => Format::Tree,
            false => self.format,
        }
    }

    /// Whether the dump itself is to be saved.
    fn saves(&self) -> bool {
        self.output.as_deref().and_then(Path::extension) == Some(SAVED.as_ref())
    }

    /// Returns what is to be shown: --where and --id.
    fn filter(&self) -> Filter {
        let filter = self.filter.clone().unwrap_or_default();
        match self.id {
            Some(id) => filter.and(Filter::id(id)),
            None => filter,
        }
    }

    /// Whether each thread is needed, not only the groups.
    fn needs_all_threads(&self) -> bool {
        self.saves() || self.format().needs_all_threads() || self.filter().needs_all_threads()
    }
}

/// Runs `pirn dump`.
pub fn run(args: &DumpArgs, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let patience = Duration::from_secs(args.timeout);
    let source = Source::find(&args.target, args.outside)?;
    let mut dump = source.dump(args.needs_all_threads(), patience)?;
    match &args.output {
        None => show(args, &source, &mut dump, &mut BufWriter::new(out)),
        Some(path) => {
            let cannot = |error: io::Error| format!("cannot write '{}': {error}", path.display());
            let mut file = BufWriter::new(File::create(path).map_err(cannot)?);
            match args.saves() {
                true => dump.write_to(&mut file).map_err(cannot)?,
                false => show(args, &source, &mut dump, &mut file)?,
            }
            Ok(file.flush().map_err(cannot)?)
        }
    }
}

/// Writes a dump as the command line asks.
fn show(
    args: &DumpArgs,
    source: &Source,
    dump: &mut Dump,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let mut symbols = source.symbols();
    let names = names_of(dump, &mut symbols);
    if !args.runtime_frames {
        dump.merge_alike(&names);
    }
    let filter = args.filter();
    if !filter.is_empty() {
        let all = dump.totals.listed;
        filter.apply(dump, &names)?;
        // A comparison may be with threads that are gone.
        if dump.totals.listed == 0 && args.diff.is_none() {
            let all = count(all);
            return Err(format!("of {all} virtual threads, none meets the conditions").into());
        }
    }
    let view = View {
        runtime_frames: args.runtime_frames,
        max: args.max,
    };
    match &args.diff {
        None => args.format().write(dump, &names, &view, out)?,
        Some(path) => {
            let mut earlier = Source::File(path.clone()).dump(true, Duration::ZERO)?;
            let earlier_names = names_of(&earlier, &mut symbols);
            if !filter.is_empty() {
                filter.apply(&mut earlier, &earlier_names)?;
            }
            let diff = Diff::of(&earlier, &earlier_names, dump, &names);
            diff.write(&earlier, dump, &names, &view, out)?;
        }
    }
    Ok(out.flush()?)
}

/// Finds the names of a dump's frames. Says what was missing: a frame without a name is one still.
fn names_of(dump: &Dump, symbols: &mut Symbols) -> Names {
    let known = symbols.problems().len();
    let names = symbols.names(dump);
    for problem in &symbols.problems()[known..] {
        let _ = writeln!(io::stderr(), "pirn: {problem}");
    }
    names
}
