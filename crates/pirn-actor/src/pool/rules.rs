//! The rules of a pool: the weight and the key of a message.
//!
//! The sender's thread computes both before it takes a lock, since they are the program's code. The
//! pool keeps the hash of a key. Two keys with the same hash count as one: their messages are in
//! order, and are not handled at the same time.

use core::any::{Any, TypeId};
use core::hash::{BuildHasher, Hash};
use std::hash::RandomState;
use std::sync::Arc;

/// The data that decides when a message can be begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The number of permits that the message takes while it is handled.
    pub(super) weight: usize,
    /// Messages of the same key are handled one after the other.
    pub(super) key: Option<u64>,
}

/// Called with a message. Returns a value if the message has the rule's type.
type Rule<T> = Arc<dyn Fn(&dyn Any) -> Option<T> + Send + Sync>;

/// The rules of a pool.
#[derive(Clone, Default)]
pub(super) struct Rules {
    permits: usize,
    weights: Vec<Rule<usize>>,
    keys: Vec<Rule<u64>>,
    /// Made per pool: a program that sends keys cannot know which of them collide.
    hasher: RandomState,
}

impl Rules {
    pub(super) fn weigh<M: 'static>(
        &mut self,
        permits: usize,
        weight: impl Fn(&M) -> usize + Send + Sync + 'static,
    ) {
        self.permits = permits;
        let rule = move |message: &dyn Any| message.downcast_ref().map(&weight);
        self.weights.push(Arc::new(rule));
    }

    pub(super) fn key<M: 'static, K: Hash + 'static>(
        &mut self,
        key: impl Fn(&M) -> K + Send + Sync + 'static,
    ) {
        let hasher = self.hasher.clone();
        let hash = move |message: &M| hasher.hash_one((TypeId::of::<K>(), key(message)));
        let rule = move |message: &dyn Any| message.downcast_ref().map(&hash);
        self.keys.push(Arc::new(rule));
    }

    pub(super) fn permits(&self) -> usize {
        self.permits
    }

    /// Returns the tag of a message. The weight is at most the number of permits: a heavier message
    /// is handled alone.
    pub(super) fn tag<M: 'static>(&self, message: &M) -> Tag {
        let weight = self.weights.iter().find_map(|weight| weight(message));
        Tag {
            weight: weight.unwrap_or(0).min(self.permits),
            key: self.keys.iter().find_map(|key| key(message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_of_message_has_its_rules() {
        let mut rules = Rules::default();
        rules.weigh(10, |text: &String| text.len());
        rules.key(|number: &u32| *number);
        rules.key(|pair: &(u32, bool)| pair.0);
        let weight = |text: &str| rules.tag(&text.to_string()).weight;
        assert_eq!((weight("four"), weight("more than ten")), (4, 10));
        assert_eq!(rules.tag(&"four".to_string()).key, None);
        assert_eq!(rules.tag(&7u32).weight, 0);
        assert_eq!(rules.tag(&7u32), rules.tag(&(7u32, true)));
        assert_ne!(rules.tag(&7u32), rules.tag(&8u32));
        assert_eq!(rules.tag(&7u64), Tag::default());
    }
}
