//! What the page shows, as JSON.

mod groups;
mod looked;
mod points;
mod record;
mod row;
mod scopes;
mod thread;
mod threads;

pub use groups::groups;
pub use looked::{PATIENCE, newest, whole};
pub use points::{Point, newer};
pub use record::record;
pub use scopes::scopes;
pub use thread::thread;
pub use threads::threads;
