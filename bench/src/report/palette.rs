//! The colours of the charts.
//!
//! A chart is drawn with the light colours; the page's style sheet replaces them by the dark ones
//! if the reader's screen is dark.

use crate::results::{Results, is_ours};
use plotters::style::RGBColor;
use std::fmt::Write;

/// A colour on a white and on a dark ground.
pub struct Colour {
    light: u32,
    dark: u32,
}

const fn colour(light: u32, dark: u32) -> Colour {
    Colour { light, dark }
}

/// Text and axes.
pub const INK: Colour = colour(0x1F2328, 0xE6EDF3);
/// Text of less weight.
pub const FAINT: Colour = colour(0x636C76, 0x9198A1);
pub const GRID: Colour = colour(0xDDE2E7, 0x30363D);
/// The ground behind every other workload in the overview.
pub const BAND: Colour = colour(0xF3F5F8, 0x1A2029);
/// Pirn, and where it wins.
pub const OURS: Colour = colour(0x0062BD, 0x4EA3FF);
/// Where Pirn loses: no peer has this.
pub const LOSS: Colour = colour(0xD4500A, 0xFF8A4C);

/// The colours of the other peers, in their order; colour-blind readers can tell those apart that
/// meet in a chart (after Okabe and Ito, and Tol).
const OTHERS: [Colour; 16] = [
    colour(0xE69F00, 0xF0B429),
    colour(0x009E73, 0x2BC49A),
    colour(0xCC79A7, 0xE59CC5),
    colour(0x882255, 0xC75D92),
    colour(0xA59A00, 0xD6CB3A),
    colour(0x7A828B, 0x9AA3AD),
    colour(0x56B4E9, 0x8CD3FB),
    colour(0x6F4E37, 0xB98B63),
    colour(0x332288, 0x8F86E0),
    colour(0xDDAA33, 0xE8C878),
    colour(0x661100, 0xB0695A),
    colour(0x88CCEE, 0xB5E0F5),
    colour(0x4D4D4D, 0xC2C2C2),
    colour(0xAA4499, 0xD97FCC),
    colour(0x117733, 0x5FB87F),
    colour(0x44AA99, 0x7FD6C7),
];

const FIXED: [Colour; 6] = [INK, FAINT, GRID, BAND, OURS, LOSS];

/// Returns the colour of a peer, the same in all charts of a report.
pub fn of_peer(results: &Results, peer: &str) -> RGBColor {
    if is_ours(peer) {
        return OURS.rgb();
    }
    let mut others = results.peers.iter().filter(|info| !is_ours(&info.name));
    let index = others
        .position(|info| info.name == peer)
        .unwrap_or_default();
    OTHERS[index % OTHERS.len()].rgb()
}

impl Colour {
    pub fn rgb(&self) -> RGBColor {
        let [_, red, green, blue] = self.light.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

/// Returns rules that replace the light colours by the dark ones, in the spelling of the pictures'
/// attributes.
pub fn dark_rules() -> String {
    let mut rules = String::new();
    for Colour { light, dark } in FIXED.iter().chain(&OTHERS) {
        for property in ["fill", "stroke"] {
            let _ = write!(
                rules,
                "svg [{property}=\"#{light:06X}\"]{{{property}:#{dark:06X}}}"
            );
        }
    }
    rules
}

#[cfg(test)]
mod tests;
