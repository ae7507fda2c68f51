//! The output of the results: a table for the terminal, the same in Markdown, a page with charts.

mod bars;
mod html;
mod lines;
mod markdown;
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

/// Returns the results as text for a terminal of 110 columns.
pub fn table(results: &Results) -> String {
    table::table(results)
}

/// Returns the results in Markdown: a table, and the losses with their reasons.
pub fn markdown(results: &Results) -> String {
    markdown::page(results)
}

/// Returns the results as one self-contained page of HTML: no script, no other file, no network.
pub fn html(results: &Results) -> String {
    html::page(results).into_string()
}
