//! `pirn top`: a page about a running process, which is drawn anew while it runs.
//!
//! * `model/`: what is shown, as a state that events change;
//! * `pages/`: drawing the state into cells;
//! * `interactive`: pages in a terminal; `batch`: pages as text.
//!
//! What the process says comes from `pirn_live`.

mod batch;
mod interactive;
mod layout;
mod model;
mod pages;
mod table;
mod terminal;
mod text;
mod theme;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;

use batch::Batch;
use model::{Conditions, Page, Sort, State};
use pirn_live::attach;
use pirn_live::{Live, Settings};

/// Dumps are taken at most this often.
const PACE: Duration = Duration::from_secs(1);

/// The command line of `pirn top`.
#[derive(Args)]
pub struct TopArgs {
    /// The process: its number or its name.
    #[arg(value_name = "PID|NAME")]
    process: String,
    /// The first page.
    #[arg(long, default_value = "groups")]
    page: Page,
    /// How the rows of the first page are sorted. Groups: count, growth, age. Threads: mounts,
    /// age, name, id. Carriers: number, mounts, queue, stuck.
    #[arg(long, value_name = "ORDER", hide_possible_values = true)]
    sort: Option<Sort>,
    /// Shows only threads that meet all of these conditions, written as for `pirn dump`.
    #[arg(long = "where", value_name = "CONDITIONS")]
    conditions: Option<Conditions>,
    /// The time from one page to the next, in seconds.
    #[arg(short, long = "delay", value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    delay: Duration,
    /// Writes pages as plain text, one after the other.
    #[arg(short, long)]
    batch: bool,
    /// Ends after this many pages.
    #[arg(short = 'n', long, value_name = "N", requires = "batch")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pages: Option<u64>,
    /// The most rows that a page of text has.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "batch")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=2_000))]
    rows: u16,
    /// The width of a page of text, in columns.
    #[arg(long, value_name = "N", default_value_t = 160, requires = "batch")]
    #[arg(value_parser = clap::value_parser!(u16).range(20..=1_000))]
    width: u16,
}

/// Reads an interval that the process accepts.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is not a number".to_string())?;
    match (0.01..=3600.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("it is not between 0.01 and 3600".into()),
    }
}

/// Runs `pirn top`.
pub fn run(args: &TopArgs, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !args.batch && !is_terminal {
        return Err("this is not a terminal: --batch writes pages as plain text".into());
    }
    if let Some(sort) = args.sort.filter(|sort| !Sort::of(args.page).contains(sort)) {
        let known: Vec<_> = Sort::of(args.page).iter().map(|it| it.word()).collect();
        let (page, sort, known) = (args.page.title(), sort.word(), known.join(", "));
        return Err(format!("{page} are not sorted by {sort}, but by one of: {known}").into());
    }
    let conditions = args.conditions.clone().unwrap_or_default();
    let settings = Settings {
        interval: args.delay,
        pace: PACE,
        ..Settings::default()
    };
    let live = Live::connect(attach::find(&args.process)?, settings)?;
    let state = State::new(args.page, args.sort, conditions, args.delay);
    if !args.batch {
        return interactive::run(live, state);
    }
    let batch = Batch {
        pages: args.pages,
        rows: args.rows,
        width: args.width,
    };
    batch::run(&live, state, batch, out)
}
