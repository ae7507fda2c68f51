//! Types that travel: each has a name and a version of its own, and is written as JSON.
//!
//! JSON, because a message may outlive the program that wrote it (durable queues), meet a program
//! that is older or newer (fields may be added: unknown ones are skipped), or be looked at by a
//! person with `nats sub`; and because `async-nats` brings `serde_json` along. A round trip over
//! loopback takes a hundred times what writing and reading a small message does.

use pirn::thread::Panic;
use pirn_actor::error::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type of message that can be sent to other nodes. The macro [`wire!`](crate::wire!) implements
/// it.
///
/// The name has to be the same in all programs of a system, whatever the type is called there. A
/// message is decoded only where its name has been registered
/// ([`accepts`](crate::Registration::accepts)), and its version is one that the receiver knows.
pub trait Wire: Serialize + DeserializeOwned + Send + 'static {
    /// The name, for instance `bank.Deposit`.
    const NAME: &'static str;
    /// The version that is written. Raise it when older programs could not read the new form, or
    /// would misunderstand it. Fields with `#[serde(default)]` may be added without.
    const VERSION: u32 = 1;
    /// The oldest version that is read.
    const OLDEST: u32 = Self::VERSION;
}

/// Gives a type its name on the wire, and perhaps the versions that it is read and written in: see
/// [`Wire`].
///
/// # Examples
/// ```
/// use pirn_nats::{Wire, wire};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Deposit(i64);
/// wire!(Deposit, "bank.Deposit");
///
/// #[derive(Serialize, Deserialize)]
/// struct Transfer {
///     amount: i64,
///     #[serde(default)]
///     text: String, // since version 2
/// }
/// wire!(Transfer, "bank.Transfer", 1..=2);
///
/// assert_eq!((Transfer::OLDEST, Transfer::VERSION), (1, 2));
/// ```
#[macro_export]
macro_rules! wire {
    ($type:ty, $name:literal) => {
        $crate::wire!($type, $name, 1..=1);
    };
    ($type:ty, $name:literal, $oldest:literal ..= $version:literal) => {
        impl $crate::Wire for $type {
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
            const OLDEST: u32 = $oldest;
        }
    };
}

/// Writes a value. A panic of its `Serialize` is a failure, too.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<bytes::Bytes, Failure> {
    match Panic::catch(|| serde_json::to_vec(value)) {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(error)) => Err(failure::<T>("written", &error.to_string())),
        Err(panic) => Err(failure::<T>("written", &panic.to_string())),
    }
}

/// Reads a value. A panic of its `Deserialize` is a failure, too.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    match Panic::catch(|| serde_json::from_slice(bytes)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failure::<T>("read", &error.to_string())),
        Err(panic) => Err(failure::<T>("read", &panic.to_string())),
    }
}

fn failure<T>(done: &str, why: &str) -> Failure {
    Failure::new(format!(
        "{} cannot be {done}: {why}",
        core::any::type_name::<T>()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_or_read_says_so() {
        struct Careless;
        impl Serialize for Careless {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                panic!("oh no")
            }
        }
        let error = encode(&Careless).unwrap_err().to_string();
        assert!(
            error.contains("cannot be written") && error.contains("oh no"),
            "{error}"
        );
        let error = decode::<u8>(b"300").unwrap_err().to_string();
        assert!(error.starts_with("u8 cannot be read"), "{error}");
        assert_eq!(decode::<u8>(&encode(&30_u8).unwrap()), Ok(30));
    }
}
