//! The results as tables: for the terminal, and in Markdown. `results/page.html` draws their JSON.

#[cfg(test)]
mod example;
mod markdown;
mod summary;
mod table;

pub use markdown::page as markdown;
pub use table::table;
