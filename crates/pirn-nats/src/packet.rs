//! What travels between nodes: a body, and what has to be known of it beforehand.

use bytes::Bytes;
use core::time::Duration;
use pirn_actor::AskError;
use pirn_actor::error::Failure;
use std::time::Instant;

#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) subject: String,
    /// Where the answer goes, if one is expected.
    pub(crate) reply_to: Option<String>,
    pub(crate) head: Head,
    pub(crate) body: Bytes,
    /// When it came to this node.
    pub(crate) came: Option<Instant>,
}

/// The headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The name and the version of the body's type.
    pub(crate) kind: Option<Kind>,
    /// How much longer the asker waits.
    pub(crate) deadline: Option<Duration>,
    /// What no two messages have in common.
    pub(crate) id: Option<String>,
    /// A request to the node, not to the actor.
    pub(crate) control: Option<String>,
    /// The request has no answer; the body says why.
    pub(crate) fault: Option<Fault>,
    /// Why it is a dead letter.
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) version: u32,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Gone,
    Failed,
    TimedOut,
    Full,
    /// No node serves the subject. The engine says so.
    Unserved,
}

impl Fault {
    const ALL: [(Fault, &str); 5] = [
        (Fault::Gone, "gone"),
        (Fault::Failed, "failed"),
        (Fault::TimedOut, "timed-out"),
        (Fault::Full, "full"),
        (Fault::Unserved, "unserved"),
    ];

    fn name(self) -> &'static str {
        let named = Fault::ALL.iter().find(|(fault, _)| *fault == self);
        named.expect("all are there").1
    }

    /// What this node does not know is a failure.
    fn of_name(name: &str) -> Fault {
        let named = Fault::ALL.iter().find(|(_, known)| *known == name);
        named.map_or(Fault::Failed, |(fault, _)| *fault)
    }
}

const TYPE: &str = "Pirn-Type";
const DEADLINE: &str = "Pirn-Deadline";
const CONTROL: &str = "Pirn-Control";
const FAULT: &str = "Pirn-Fault";
const REASON: &str = "Pirn-Reason";
/// The name is the server's: it drops messages whose identity it has seen already.
const ID: &str = "Nats-Msg-Id";

impl Head {
    /// Returns the headers as text.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&'static str, String)> {
        let kind = self.kind.as_ref();
        let kind = kind.map(|kind| (TYPE, format!("{}/{}", kind.name, kind.version)));
        // Rounded up: a handler may be begun a moment too late, but no request is born dead.
        let millis = |deadline: Duration| (deadline.as_micros().div_ceil(1000)).to_string();
        let deadline = self.deadline.map(|deadline| (DEADLINE, millis(deadline)));
        let id = self.id.clone().map(|id| (ID, id));
        let control = self.control.clone().map(|control| (CONTROL, control));
        let fault = self.fault.map(|fault| (FAULT, fault.name().to_string()));
        let reason = self.reason.clone().map(|reason| (REASON, reason));
        let lines = [kind, deadline, id, control, fault, reason];
        lines.into_iter().flatten()
    }

    /// Reads headers. Those that mean nothing here are skipped.
    pub(crate) fn of<'a>(get: impl Fn(&'static str) -> Option<&'a str>) -> Head {
        let kind = get(TYPE).map(|text| {
            let (name, version) = text.rsplit_once('/').unwrap_or((text, "1"));
            Kind {
                name: name.to_string(),
                version: version.parse().unwrap_or(0),
            }
        });
        let millis = get(DEADLINE).and_then(|text| text.parse().ok());
        Head {
            kind,
            deadline: millis.map(Duration::from_millis),
            id: get(ID).map(str::to_string),
            control: get(CONTROL).map(str::to_string),
            fault: get(FAULT).map(Fault::of_name),
            reason: get(REASON).map(str::to_string),
        }
    }
}

impl Packet {
    /// Makes the answer to a request.
    pub(crate) fn answer(to: String, answer: Result<Bytes, AskError>) -> Packet {
        let mut packet = Packet {
            subject: to,
            ..Packet::default()
        };
        match answer {
            Ok(body) => packet.body = body,
            Err(error) => {
                packet.head.fault = Some(match error {
                    AskError::Gone => Fault::Gone,
                    AskError::TimedOut => Fault::TimedOut,
                    AskError::Full => Fault::Full,
                    _ => Fault::Failed,
                });
                packet.body = match error {
                    AskError::Failed(failure) => failure.to_string().into(),
                    other => other.to_string().into(),
                };
            }
        }
        packet
    }

    /// Returns the body of an answer, or the reason why the request has none.
    pub(crate) fn into_answer(self) -> Result<Bytes, AskError> {
        Err(match self.head.fault {
            None => return Ok(self.body),
            Some(Fault::Gone) => AskError::Gone,
            Some(Fault::TimedOut) => AskError::TimedOut,
            Some(Fault::Full) => AskError::Full,
            Some(Fault::Unserved) => AskError::Unreachable,
            Some(Fault::Failed) => {
                AskError::Failed(Failure::new(String::from_utf8_lossy(&self.body)))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_as_they_were() {
        let head = Head {
            kind: Some(Kind {
                name: "a/b".to_string(),
                version: 3,
            }),
            deadline: Some(Duration::from_millis(1500)),
            id: Some("17".to_string()),
            control: Some("watch".to_string()),
            fault: Some(Fault::Gone),
            reason: Some("panicked".to_string()),
        };
        let lines: Vec<_> = head.lines().collect();
        let get = |name| lines.iter().find(|(key, _)| *key == name);
        assert_eq!(
            Head::of(|name| get(name).map(|(_, value)| value.as_str())),
            head
        );
        assert_eq!(Head::of(|_| None), Head::default());
    }

    #[test]
    fn errors_come_back_as_they_were() {
        let failed = AskError::Failed(Failure::new("panicked: oh no"));
        for error in [AskError::Gone, AskError::TimedOut, AskError::Full, failed] {
            let packet = Packet::answer("x".to_string(), Err(error.clone()));
            assert_eq!(packet.into_answer(), Err(error));
        }
        let packet = Packet::answer("x".to_string(), Err(AskError::Interrupted));
        let Err(AskError::Failed(failure)) = packet.into_answer() else {
            panic!("what the other side cannot know is a failure");
        };
        assert!(failure.to_string().starts_with("interrupted"));
    }
}
