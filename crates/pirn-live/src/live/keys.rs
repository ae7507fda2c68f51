//! Knowing a group again in a later dump.

use std::hash::{DefaultHasher, Hash, Hasher};

use pirn_dump::{Dump, Names};

/// Returns a number for each group of a dump, which the same group has in other dumps of the
/// process: made of what it does, where it was spawned, and the functions and lines of its stack.
/// Indices and addresses will not do: which of several stacks that look alike stands for a group is
/// different from dump to dump.
pub fn keys(dump: &Dump, names: &Names) -> Vec<u64> {
    let of_stacks: Vec<u64> = dump
        .stacks
        .iter()
        .map(|stack| {
            let mut hasher = DefaultHasher::new();
            stack.end.hash(&mut hasher);
            for frame in names.shown(stack) {
                (frame.name(), frame.line).hash(&mut hasher);
            }
            hasher.finish()
        })
        .collect();
    let key = |group: &pirn_dump::Group| {
        let mut hasher = DefaultHasher::new();
        let stack = group.stack.and_then(|index| of_stacks.get(index as usize));
        let place = group
            .place
            .and_then(|index| dump.places.get(index as usize));
        (group.state, group.wait, group.timed, stack, place).hash(&mut hasher);
        hasher.finish()
    };
    dump.groups.iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pirn_dump::{Group, Place, Stack, State};

    /// A dump with one group, whose stack is in it with this index.
    fn dump(frame: u64, index: u32) -> Dump {
        let stack = |frame| Stack {
            frames: vec![frame],
            ..Stack::default()
        };
        let mut stacks = vec![stack(1), stack(2), stack(3)];
        stacks[index as usize] = stack(frame);
        Dump {
            stacks,
            groups: vec![Group {
                stack: Some(index),
                count: u64::from(index),
                ..Group::default()
            }],
            ..Dump::default()
        }
    }

    fn key(dump: &Dump) -> u64 {
        keys(dump, &Names::plain(dump))[0]
    }

    #[test]
    fn a_group_is_known_again_wherever_its_stack_is() {
        assert_eq!(key(&dump(0x5000, 0)), key(&dump(0x5000, 2)));
        assert_ne!(key(&dump(0x5000, 0)), key(&dump(0x6000, 0)));
    }

    #[test]
    fn what_differs_in_state_or_place_is_another_group() {
        let one = dump(0x5000, 0);
        let mut other = one.clone();
        other.groups[0].state = State::Waiting;
        assert_ne!(key(&one), key(&other));
        let mut other = one.clone();
        other.places.push(Place::default());
        other.groups[0].place = Some(0);
        assert_ne!(key(&one), key(&other));
    }
}
