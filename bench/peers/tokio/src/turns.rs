//! Two tasks that take turns.

use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// A number that two players make larger by one in turn. It is the word that says whose turn it is:
/// player 0's while it is even, player 1's while it is odd.
#[derive(Default)]
pub struct Turns {
    number: AtomicU64,
    wake: [Notify; 2],
}

impl Turns {
    /// Waits for the player's turn, and gives the number.
    pub async fn wait(&self, player: usize) -> u64 {
        loop {
            // Acquire: pairs with the release in `pass`.
            let number = self.number.load(Ordering::Acquire);
            if number % 2 == player as u64 {
                return number;
            }
            self.wake[player].notified().await;
        }
    }

    /// Makes the number one larger, whereby it is the other player's turn.
    pub fn pass(&self, player: usize, number: u64) {
        // Release: pairs with the acquire in `wait`. That the other player looks again after it is
        // up to `Notify`.
        self.number.store(number + 1, Ordering::Release);
        self.wake[1 - player].notify_one();
    }

    /// The number, when the play is over.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::SeqCst)
    }
}
