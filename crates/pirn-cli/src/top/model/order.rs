//! The order of the rows.

use std::cmp::Reverse;

use clap::ValueEnum;
use pirn_dump::{State, Thread};

use super::{Page, Scene, View};

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Groups: the largest first.
    Count,
    /// Groups: the one that has grown most first.
    Growth,
    /// Groups and threads: what has not moved for longest first.
    Age,
    /// Threads: the smallest number first.
    Id,
    /// Threads and carriers: what has been mounted most often in the last seconds first; of threads
    /// those that run before all others, since one that loops is mounted seldom.
    Mounts,
    /// Threads: by name.
    Name,
    /// Carriers: the smallest number first.
    Number,
    /// Carriers: the longest queue first.
    Queue,
    /// Carriers: the one that has been stuck for longest, in total, first.
    Stuck,
}

impl Sort {
    /// Returns the orders of a page, the usual one first.
    pub fn of(page: Page) -> &'static [Sort] {
        match page {
            Page::Groups => &[Sort::Count, Sort::Growth, Sort::Age],
            Page::Threads => &[Sort::Mounts, Sort::Age, Sort::Name, Sort::Id],
            Page::Carriers => &[Sort::Number, Sort::Mounts, Sort::Queue, Sort::Stuck],
        }
    }

    pub fn word(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_string())
    }
}

/// Returns the numbers of the rows of a page, in their order.
pub(super) fn rows(page: Page, sort: Sort, scene: &Scene) -> Vec<usize> {
    match (page, &scene.view) {
        (Page::Carriers, _) => carriers(sort, scene),
        (_, None) => Vec::new(),
        (Page::Groups, Some(view)) => groups(sort, view),
        (Page::Threads, Some(view)) => threads(sort, view),
    }
}

/// Groups come largest first; the order of those that are equal stays.
fn groups(sort: Sort, view: &View) -> Vec<usize> {
    let groups = &view.dump().groups;
    let mut rows: Vec<usize> = (0..groups.len()).collect();
    match sort {
        Sort::Growth => rows.sort_by_key(|row| Reverse(view.growth_of(*row))),
        Sort::Age => rows.sort_by_key(|row| groups[*row].oldest.unwrap_or(u64::MAX)),
        _ => {}
    }
    rows
}

fn threads(sort: Sort, view: &View) -> Vec<usize> {
    let threads = &view.dump().threads;
    let since = |thread: &Thread| thread.unmoved_since.unwrap_or(u64::MAX);
    // Thousandths, as floating-point numbers have no order.
    let mounts = |thread: &Thread| {
        let rate = view.snapshot.mounts_per_second(thread);
        rate.map(|rate| (rate * 1000.0) as u64)
    };
    let mut rows: Vec<usize> = (0..threads.len()).collect();
    rows.sort_unstable_by_key(|row| threads[*row].id);
    match sort {
        Sort::Mounts => rows.sort_by_cached_key(|row| {
            let thread = &threads[*row];
            (thread.state != State::Running, Reverse(mounts(thread)))
        }),
        Sort::Age => rows.sort_by_key(|row| since(&threads[*row])),
        // Those without a name come last.
        Sort::Name => rows.sort_by_key(|row| (threads[*row].name.is_none(), &threads[*row].name)),
        _ => {}
    }
    rows
}

fn carriers(sort: Sort, scene: &Scene) -> Vec<usize> {
    let carriers = scene.carriers();
    let mounts = |number| {
        let rate = |window: pirn_live::Window<'_>| window.carrier_rate(number, |it| it.mounts);
        scene.window().map(|window| (rate(window) * 1000.0) as u64)
    };
    let mut rows: Vec<usize> = (0..carriers.len()).collect();
    rows.sort_by_key(|row| carriers[*row].number);
    match sort {
        Sort::Mounts => rows.sort_by_cached_key(|row| Reverse(mounts(carriers[*row].number))),
        Sort::Queue => rows.sort_by_key(|row| Reverse(carriers[*row].run_queue)),
        Sort::Stuck => rows.sort_by_key(|row| Reverse(carriers[*row].stuck_ns)),
        _ => {}
    }
    rows
}
