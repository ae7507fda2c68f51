//! What people get to see of the results: a table for the terminal, and a page with charts.

mod bars;
mod html;
mod lines;
mod overview;
mod palette;
mod plots;
mod scale;
mod section;
mod summary;
mod table;

#[cfg(test)]
mod example;

pub use summary::turned;

use crate::results::Results;

/// The results as text for a terminal of 110 columns.
pub fn table(results: &Results) -> String {
    table::table(results)
}

/// The results as one page of HTML that needs nothing else: no script, no other file, no network.
pub fn html(results: &Results) -> String {
    html::page(results).into_string()
}
