//! The sizes and the numbers of the workload `actors`: the same for every peer in Rust.

use crate::{Params, Round, Workload, nanos_per, sum_below};
use anyhow::{Result, ensure};
use std::ops::Range;
use std::time::Duration;

/// How many send at once, in two of the metrics of messages.
pub const SENDERS: u64 = 4;

/// How long a piece of work took, and what it came to.
pub type Took = (Duration, u64);

/// `actor-messages`: messages that nobody answers.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// From one sender to one actor.
    pub one: u64,
    /// From [`SENDERS`] senders, all together.
    pub many: u64,
}

impl Messages {
    /// # Errors
    ///
    /// If a size is missing, or the senders' shares would differ.
    pub fn of(params: &Params) -> Result<Messages> {
        let sizes = Messages {
            one: params.get("messages")?,
            many: params.get("many")?,
        };
        ensure!(
            sizes.many.is_multiple_of(SENDERS),
            "many must be a multiple of {SENDERS}"
        );
        Ok(sizes)
    }

    /// The numbers that one of several senders sends.
    pub fn share(&self, sender: u64) -> Range<u64> {
        let each = self.many / SENDERS;
        sender * each..(sender + 1) * each
    }

    /// Reports how long the messages took until the last was handled, and their sums: from one to
    /// one, from each sender to its own actor, and from all senders to one.
    pub fn report(&self, round: &mut Round, one: Took, apart: Took, together: Took) {
        let of = [
            ("1 to 1", self.one, one),
            ("4 to 4", self.many, apart),
            ("4 to 1", self.many, together),
        ];
        for (metric, count, (elapsed, sum)) in of {
            let value = nanos_per(elapsed, count);
            round.metric(metric, value, "ns/message", sum, sum_below(count));
        }
    }
}

/// `actor-asks`: messages here and there, and answers.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// Actors, where there are many.
    pub crowd: u64,
    /// Messages to the crowd.
    pub tells: u64,
    /// Asks of one actor.
    pub asks: u64,
    /// Messages that two actors send each other.
    pub turns: u64,
    /// Replies of each actor of the crowd.
    pub each: u64,
}

impl Asks {
    /// # Errors
    ///
    /// If a size is missing, or the crowd is empty.
    pub fn of(params: &Params) -> Result<Asks> {
        let sizes = Asks {
            crowd: params.get("crowd")?,
            tells: params.get("tells")?,
            asks: params.get("asks")?,
            turns: params.get("turns")?,
            each: params.get("each")?,
        };
        ensure!(
            sizes.crowd > 0 && sizes.each > 0,
            "crowd and each must not be 0"
        );
        Ok(sizes)
    }

    /// The replies of all the crowd.
    pub fn replies(&self) -> u64 {
        self.crowd * self.each
    }

    /// Reports how long the messages to the crowd took until all were handled, and their sum; the
    /// asks, and the sum of the answers; the messages of two in turn, and the last number; and the
    /// replies, and how many came.
    pub fn report(&self, round: &mut Round, tell: Took, ask: Took, turns: Took, replies: Took) {
        let of = [
            ("tell", "message", self.tells, tell, sum_below(self.tells)),
            ("ask", "ask", self.asks, ask, sum_below(self.asks + 1)),
            ("in turn", "message", self.turns, turns, self.turns),
            ("replies", "reply", self.replies(), replies, self.replies()),
        ];
        for (metric, piece, count, (elapsed, done), due) in of {
            let unit = format!("ns/{piece}");
            round.metric(metric, nanos_per(elapsed, count), &unit, done, due);
        }
    }
}

/// Reports `actor-create` of this many actors: how long their creation took, and the sum of their
/// numbers; how long creation and end took, and how many were seen to end.
pub fn report_created(round: &mut Round, count: u64, create: Took, and_end: Took) {
    let (elapsed, sum) = create;
    let value = nanos_per(elapsed, count);
    round.metric("create", value, "ns/actor", sum, sum_below(count));
    let (elapsed, ended) = and_end;
    let value = nanos_per(elapsed, count);
    round.metric("create and end", value, "ns/actor", ended, count);
}

/// Reports `actor-idle` of this many actors: how long it took to ask each of them once more, and
/// the sum of their numbers.
pub fn report_idle(round: &mut Round, count: u64, (elapsed, sum): Took) {
    let value = nanos_per(elapsed, count);
    round.metric("ask", value, "ns/actor", sum, sum_below(count));
}

/// Makes `actor-chain`: a number goes along a row of actors, and comes out larger by one for each.
///
/// # Errors
///
/// If the size is missing.
pub fn chain(params: &Params, chain: impl Fn(u64) -> Result<Took> + 'static) -> Result<Workload> {
    let row = params.get("row")?;
    Ok(Box::new(move |round| {
        let (elapsed, number) = chain(row)?;
        round.metric("wall", elapsed.as_secs_f64(), "s", number, row);
        Ok(())
    }))
}

/// Makes `actor-skynet`: the sum of as many numbers, one for each leaf of a tree.
///
/// # Errors
///
/// If the size is missing, or no power of ten.
pub fn skynet(params: &Params, skynet: impl Fn(u64) -> Result<Took> + 'static) -> Result<Workload> {
    let leaves = params.get("leaves")?;
    let is_power = 10u64.checked_pow(leaves.max(1).ilog10()) == Some(leaves);
    ensure!(is_power, "leaves must be a power of ten");
    Ok(Box::new(move |round| {
        let (elapsed, sum) = skynet(leaves)?;
        round.metric("wall", elapsed.as_secs_f64(), "s", sum, sum_below(leaves));
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(args: &str) -> Params {
        Params::parse(args.split(' ').map(str::to_owned)).unwrap()
    }

    #[test]
    fn each_sender_has_its_share() {
        let sizes = Messages::of(&params("messages=3 many=12")).unwrap();
        let shares: Vec<_> = (0..SENDERS).flat_map(|s| sizes.share(s)).collect();
        assert_eq!(shares, (0..12).collect::<Vec<_>>());
        assert!(Messages::of(&params("messages=3 many=13")).is_err());
    }

    #[test]
    fn a_tree_has_ten_branches_at_each_node() {
        for (leaves, is_tree) in [(0, false), (1, true), (20, false), (1000, true)] {
            let made = skynet(&params(&format!("leaves={leaves}")), |_| {
                Ok((Duration::ZERO, 0))
            });
            assert_eq!(made.is_ok(), is_tree, "{leaves}");
        }
    }
}
