//! Answers: the place for one, the side that waits for it, the side that gives it.

mod awaited;
mod given;
mod slot;
mod word;

pub use awaited::{Reply, ReplyFuture};
pub use given::ReplyTo;

use crate::edges::To;

/// Makes the two sides of an answer that this is asked for.
pub(crate) fn pair<R>(asked: To) -> (ReplyTo<R>, Reply<R>) {
    let (giver, asker) = slot::sides();
    (ReplyTo::new(giver), Reply::new(asker, Some(asked)))
}

/// Makes the two sides of an answer that anybody may give.
pub(crate) fn pair_without_edge<R>() -> (ReplyTo<R>, Reply<R>) {
    let (giver, asker) = slot::sides();
    (ReplyTo::new(giver), Reply::new(asker, None))
}

/// Makes the two sides of an answer, for what answers without being an actor: another node, a
/// library of callbacks.
///
/// # Examples
/// ```
/// let (to, reply) = pirn_actor::reply();
/// std::thread::spawn(move || to.send(42));
/// assert_eq!(reply.recv(), Ok(42));
/// ```
pub fn reply<R>() -> (ReplyTo<R>, Reply<R>) {
    pair_without_edge()
}
