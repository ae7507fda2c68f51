//! Panics whose payload panics when it is dropped.

use std::any::Any;
use std::panic::panic_any;

/// A value that panics when it is dropped, if the number is above 0: with a payload of the number
/// below.
pub struct Bomb(pub u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

/// Panics with a payload that panics when it is dropped.
pub fn burst() -> ! {
    panic_any(Bomb(2))
}

/// Returns true for a payload of [`burst`], which is not dropped.
pub fn is_bomb(payload: Box<dyn Any + Send>) -> bool {
    let is_bomb = payload.is::<Bomb>();
    std::mem::forget(payload);
    is_bomb
}
