//! What must hold of the source code itself; nothing of the runtime runs here.

mod layers;
