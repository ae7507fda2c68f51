//! What is where on a page, by the size of the terminal.

use super::model::State;

/// How many rows each part has, from top to bottom.
///
/// ```text
///   head    the process: threads, rates, latency, memory, carriers
///   tabs    the pages
///   titles  of the columns; none above a stack
///   rows
///   foot    how old the rows are, or the line in which conditions are written
///   keys    what can be pressed
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub head: u16,
    pub tabs: u16,
    pub titles: u16,
    pub rows: u16,
    pub foot: u16,
    pub keys: u16,
}

/// The lines of the head, without carriers.
const HEAD: u16 = 5;
/// The most carriers that have rows in the head.
const CARRIERS: u16 = 4;

impl Layout {
    pub fn of(state: &State) -> Layout {
        let carriers = state.scene.carriers().len().try_into().unwrap_or(u16::MAX);
        Layout::new(state.size.1, carriers)
    }

    /// Returns where what is on a page of text with so many rows, as it goes into a file.
    pub fn of_text(state: &State, rows: u16) -> Layout {
        let carriers = state.scene.carriers().len().try_into().unwrap_or(u16::MAX);
        Layout {
            head: HEAD + if carriers > CARRIERS { 1 } else { carriers },
            tabs: 0,
            titles: 1,
            rows,
            foot: 1,
            keys: 0,
        }
    }

    fn new(height: u16, carriers: u16) -> Layout {
        let head = match height {
            0..8 => 1,
            8..12 => 2,
            12..16 => 3,
            16..24 => HEAD,
            // Many carriers have a page of their own.
            _ if carriers > CARRIERS => HEAD + 1,
            _ => HEAD + carriers,
        };
        // What matters least goes first when there is no room.
        let mut left = height;
        let mut take = |wanted: u16| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let (foot, tabs) = (take(1), take(u16::from(height > 3)));
        let (titles, keys) = (take(u16::from(height > 4)), take(u16::from(height > 9)));
        let head = take(head.min(height / 2));
        Layout {
            head,
            tabs,
            titles,
            rows: take(u16::MAX),
            foot,
            keys,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_high_as_the_terminal() {
        for height in 0..200 {
            for carriers in [0, 2, 4, 5, 64] {
                let it = Layout::new(height, carriers);
                let sum = it.head + it.tabs + it.titles + it.rows + it.foot + it.keys;
                assert_eq!(sum, height);
                assert!(height < 8 || it.rows >= height / 3, "{height}: {it:?}");
            }
        }
        assert_eq!(Layout::new(10, 2).rows, 4);
        assert_eq!(Layout::new(24, 2).head, 7);
    }
}
