//! The page of carriers.

use std::time::Duration;

use super::Pen;
use crate::top::table::{Cell, Column, number, text};
use crate::top::text::{rate, short};
use pirn_live::CarrierSample;

pub const COLUMNS: &[Column] = &[
    number("CARRIER", 7, 0),
    number("TID", 8, 4),
    text("STATE", 9, 0),
    number("MOUNTS/s", 8, 1),
    number("QUEUE", 6, 1),
    number("PARKS/s", 8, 5),
    number("WAKES/s", 8, 5),
    number("STEALS/s", 8, 3),
    number("PREEMPTED/s", 11, 6),
    number("STUCK", 7, 2),
    text("THREAD, AT THE DUMP", 12, 1),
];

/// Returns the cells of a carrier.
pub fn cells(pen: Pen<'_>, row: usize) -> Vec<Cell> {
    let (theme, scene) = (pen.theme, &pen.state.scene);
    let Some(carrier) = scene.carriers().get(row) else {
        return Vec::new();
    };
    let per_second = |count: fn(&CarrierSample) -> u64| {
        let window = scene.window();
        let rate = window.map(|window| rate(window.carrier_rate(carrier.number, count)));
        (rate.unwrap_or_default(), theme.plain())
    };
    let stuck = match carrier.stuck_ns {
        0 => (String::new(), theme.plain()),
        nanos => (short(Duration::from_nanos(nanos)), theme.notice()),
    };
    let thread = scene.mounted(carrier.number).map(|id| scene.called(id));
    let spare = if carrier.spare { " (spare)" } else { "" };
    vec![
        (carrier.number.to_string(), theme.strong()),
        (
            carrier.tid.map(|tid| tid.to_string()).unwrap_or_default(),
            theme.plain(),
        ),
        (carrier.state.clone(), theme.carrier(&carrier.state)),
        per_second(|it| it.mounts),
        (carrier.run_queue.to_string(), theme.plain()),
        per_second(|it| it.parks),
        per_second(|it| it.wakes),
        per_second(|it| it.steals),
        per_second(|it| it.preemptions),
        stuck,
        (
            format!("{}{spare}", thread.unwrap_or_default()),
            theme.plain(),
        ),
    ]
}
