//! What a full mailbox does.

/// What a full mailbox does.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Overflow};
///
/// let builder = actor::Builder::new().capacity(1).overflow(Overflow::Fail);
/// let (unblock, blocked) = std::sync::mpsc::channel::<()>();
/// let busy = builder.consumer(move |()| drop(blocked.recv()));
/// busy.send(()).unwrap(); // taken up at once, or soon
/// let full = loop {
///     if let Err(error) = busy.send(()) {
///         break error;
///     }
/// };
/// assert!(full.is_full());
/// drop(unblock);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The sender waits for room, in order of arrival: back-pressure.
    #[default]
    Wait,
    /// The send fails, and the message comes back.
    Fail,
    /// The new message is dropped.
    DropNew,
    /// The oldest message that has not been begun is dropped.
    DropOld,
    /// The actor ends, as one that failed. While its supervisor restarts it, the send fails.
    Stop,
}
