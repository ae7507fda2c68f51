//! `receive!`.

/// Receives the first message that one of the patterns matches, and evaluates its arm.
///
/// Messages that no arm matches stay in the mailbox, in order, for later receives. The macro looks
/// first at the messages that are there, then at those that come. A last arm `after DURATION => …`
/// runs if no message matches in time. When the process is to end, the macro leaves the function by
/// `?`, with a [`RecvError`](crate::process::RecvError).
///
/// An arm can leave an outer loop only by the loop's label.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, receive};
/// use pirn_actor::process::{Inbox, RecvError};
/// use std::time::Duration;
///
/// enum Message {
///     Order(u32),
///     Paid(u32),
/// }
/// let shipped = actor::process::spawn(|inbox: &mut Inbox<Message>| -> Result<Vec<u32>, RecvError> {
///     let mut shipped = Vec::new();
///     while shipped.len() < 2 {
///         receive!(inbox => {
///             Message::Order(id) => {
///                 // Other orders wait meanwhile.
///                 receive!(inbox => {
///                     Message::Paid(paid) if paid == id => shipped.push(id),
///                     after Duration::from_secs(30) => eprintln!("{id} is not paid"),
///                 })
///             }
///         });
///     }
///     Ok(shipped)
/// });
/// shipped.send(Message::Order(1)).unwrap();
/// shipped.send(Message::Order(2)).unwrap();
/// shipped.send(Message::Paid(2)).unwrap();
/// shipped.send(Message::Paid(1)).unwrap();
/// assert_eq!(shipped.into_result().unwrap(), Ok(vec![1, 2]));
/// ```
#[macro_export]
macro_rules! receive {
    ($inbox:expr => { $($arms:tt)* }) => {
        $crate::receive!(@arms $inbox, [] $($arms)*)
    };
    // The last arm.
    (@arms $inbox:expr, [$($done:tt)*] after $timeout:expr => $late:expr $(,)?) => {
        $crate::receive!(@search $inbox, ::core::option::Option::Some($timeout), [$($done)*], $late)
    };
    (@arms $inbox:expr, [$($done:tt)*]) => {
        $crate::receive!(@search $inbox, ::core::option::Option::None, [$($done)*],
            ::core::unreachable!("there is no time limit"))
    };
    // An arm with a block needs no comma.
    (@arms $inbox:expr, [$($done:tt)*]
        $pattern:pat $(if $guard:expr)? => $body:block $(,)? $($rest:tt)*
    ) => {
        $crate::receive!(@arms $inbox, [$($done)* ($pattern, ($($guard)?), $body)] $($rest)*)
    };
    (@arms $inbox:expr, [$($done:tt)*]
        $pattern:pat $(if $guard:expr)? => $body:expr, $($rest:tt)*
    ) => {
        $crate::receive!(@arms $inbox, [$($done)* ($pattern, ($($guard)?), $body)] $($rest)*)
    };
    (@arms $inbox:expr, [$($done:tt)*]
        $pattern:pat $(if $guard:expr)? => $body:expr
    ) => {
        $crate::receive!(@arms $inbox, [$($done)* ($pattern, ($($guard)?), $body)])
    };
    (@search $inbox:expr, $timeout:expr, [$(($pattern:pat, ($($guard:expr)?), $body:expr))*], $late:expr) => {{
        let mut search = $inbox.search($timeout);
        #[allow(unreachable_code, unused_labels, clippy::never_loop, clippy::diverging_sub_expression)]
        let received = 'receive: loop {
            match $inbox.look(&mut search) {
                ::core::result::Result::Ok(message) => match message {
                    $($pattern $(if $guard)? => {
                        $inbox.take(search);
                        // Its own label: a `break` without one would leave the search.
                        break 'receive ('arm: { $body })
                    })*
                    #[allow(unreachable_patterns)]
                    other => $inbox.keep(&mut search, other),
                },
                ::core::result::Result::Err($crate::process::RecvError::TimedOut) => {
                    break 'receive ('arm: { $late })
                }
                ::core::result::Result::Err(error) => {
                    return ::core::result::Result::Err(::core::convert::From::from(error))
                }
            }
        };
        received
    }};
}
