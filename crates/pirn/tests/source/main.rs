//! Rules about the source code itself; the runtime does not run here.

mod layers;
