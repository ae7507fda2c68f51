//! What one actor after the other has: a recipe.

use crate::poison::locked;
use std::sync::{Arc, Mutex};

/// The place of something while nobody has it.
pub(super) struct Home<T>(Arc<Mutex<Option<T>>>);

impl<T> Home<T> {
    pub(super) fn new(it: T) -> Home<T> {
        Home(Arc::new(Mutex::new(Some(it))))
    }

    /// Lends it, unless a thread has it.
    pub(super) fn lend(&self) -> Option<Lent<T>> {
        let it = locked(&self.0).take()?;
        Some(Lent {
            it: Some(it),
            home: Arc::clone(&self.0),
        })
    }
}

/// Something that comes home when this is dropped.
pub(super) struct Lent<T> {
    it: Option<T>,
    home: Arc<Mutex<Option<T>>>,
}

impl<T> Lent<T> {
    pub(super) fn get(&mut self) -> &mut T {
        self.it.as_mut().expect("it is given back with this")
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        *locked(&self.home) = self.it.take();
    }
}
