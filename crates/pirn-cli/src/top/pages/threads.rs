//! The page of threads.

use pirn_dump::{Ends, Wait, show};

use super::Pen;
use crate::top::model::{known_by, place_in_short};
use crate::top::table::{Cell, Column, number, text};
use crate::top::text::{age, name, rate};

pub const COLUMNS: &[Column] = &[
    number("ID", 9, 0),
    text("NAME", 18, 1),
    text("STATE", 8, 2),
    number("MOUNTS/s", 8, 2),
    number("AGE", 7, 3),
    number("SCOPE", 7, 6),
    text("WAITS FOR", 30, 1),
    text("SPAWNED AT", 24, 5),
    text("IN", 20, 4),
];

/// Returns the cells of a thread.
pub fn cells(pen: Pen<'_>, row: usize) -> Vec<Cell> {
    let (theme, scene) = (pen.theme, &pen.state.scene);
    let Some(view) = &scene.view else {
        return Vec::new();
    };
    let dump = view.dump();
    let Some(thread) = dump.threads.get(row) else {
        return Vec::new();
    };
    let since = thread
        .unmoved_since
        .map(|since| dump.process.end.saturating_sub(since));
    let mounts = view.snapshot.mounts_per_second(thread);
    let wait = match (thread.carrier, &thread.wait) {
        (Some(carrier), _) => format!("on carrier {carrier}"),
        (None, Wait::Descriptor { fd, write, ends }) => descriptor(*fd, *write, ends.as_deref()),
        (None, _) => show::wait(&thread.wait, view.names(), &|id| scene.called(id)),
    };
    let frame = known_by(dump, view.names(), thread.stack);
    let state = match thread.interrupted {
        true => (format!("{}!", thread.state.word()), theme.bad()),
        false => (thread.state.word().into(), theme.state(thread.state)),
    };
    vec![
        (thread.id.to_string(), theme.strong()),
        (name(thread.name.as_deref()), theme.plain()),
        state,
        (mounts.map(rate).unwrap_or_default(), theme.plain()),
        (since.map(age).unwrap_or_default(), theme.plain()),
        (
            thread.scope.map(|id| id.to_string()).unwrap_or_default(),
            theme.plain(),
        ),
        (wait, theme.plain()),
        (
            place_in_short(dump, thread.place).unwrap_or_default(),
            theme.faint(),
        ),
        (
            frame.map(ToString::to_string).unwrap_or_default(),
            theme.plain(),
        ),
    ]
}

/// Returns which descriptor it is, for a narrow column: of its two ends the one that tells more.
fn descriptor(fd: i32, write: bool, ends: Option<&Ends>) -> String {
    let what = if write { "write" } else { "read" };
    match ends {
        None => format!("{what} fd {fd}"),
        Some(Ends { local, peer }) if peer.is_empty() => format!("{what} fd {fd}, {local}"),
        Some(Ends { peer, .. }) => format!("{what} fd {fd}, {peer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_side_of_a_connection_tells_more() {
        let ends = |peer: &str| Ends {
            local: "10.0.0.1:80".into(),
            peer: peer.into(),
        };
        assert_eq!(
            descriptor(3, false, Some(&ends(""))),
            "read fd 3, 10.0.0.1:80"
        );
        assert_eq!(
            descriptor(3, true, Some(&ends("10.0.0.2:9"))),
            "write fd 3, 10.0.0.2:9"
        );
        assert_eq!(descriptor(3, true, None), "write fd 3");
    }
}
