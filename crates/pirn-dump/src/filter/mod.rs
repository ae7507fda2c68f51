//! Choosing threads: `--where state=waiting,name=conn*,frame=recv`.

mod pattern;
#[cfg(test)]
mod tests;

use crate::model::{Dump, Group, Stack, State, Thread, WaitKind};
use crate::names::{Frame, Names};
use pattern::Pattern;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// Conditions for threads, all of which must hold.
///
/// Commas are between conditions, `|` is between alternatives: `state=waiting,wait=read|poll`.
///
/// | condition | chooses threads |
/// |---|---|
/// | `state=waiting` | in this state: `new`, `runnable`, `running`, `waiting`, `ended` |
/// | `wait=mutex` | that wait for something of this kind, by its [word](WaitKind::word); `lock` is any lock |
/// | `name=conn*` | with this name, in which `*` stands for any text and `?` for one byte |
/// | `for=order*` | that work for something of this name, as `pirn::thread::annotate` gives it; all of the name, as for `name` |
/// | `frame=recv` | in whose stack a function's name contains this, or is like it if it has a `*` or `?` |
/// | `place=main.rs:12` | spawned at a place whose file, or file and line, ends so |
/// | `scope=7` | that are subtasks of the scope with this id, or whose name is like it |
/// | `id=17` | with this id |
/// | `object=0x7f00` | that wait for the lock at this address, the descriptor, thread or scope with this number |
/// | `age=10s` | that have been seen waiting for at least so long: `ms`, `s`, `m`, `h` |
/// | `recv` | with this in their own name, in the name of what they work for, or of a function in their stack |
///
/// # Examples
/// ```
/// use pirn_dump::{Dump, Filter, Names, State, Thread};
/// let thread = Thread { state: State::Waiting, name: Some(b"conn-1".into()), ..Thread::default() };
/// let mut dump = Dump { threads: vec![thread, Thread::default()], ..Dump::default() };
/// let names = Names::plain(&dump);
/// let filter: Filter = "state=waiting,name=conn*".parse()?;
/// filter.apply(&mut dump, &names)?;
/// assert_eq!((dump.threads.len(), dump.groups[0].count), (1, 1));
/// # Ok::<(), pirn_dump::FilterError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    conditions: Vec<Condition>,
}

/// Why text is no filter, or a dump cannot be filtered by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError(String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FilterError {}

const ONLY_EXAMPLES: &str = "the dump has only some threads of each group, so that it cannot be \
                             filtered by name, for, scope, id, object, age or a bare word";

/// A condition: one of several must hold.
#[derive(Clone, Debug)]
enum Condition {
    State(Vec<State>),
    Wait(Vec<WaitKind>),
    Name(Vec<Pattern>),
    For(Vec<Pattern>),
    Frame(Vec<Pattern>),
    Place(Vec<Pattern>),
    Scope(Vec<Pattern>),
    Id(Vec<u64>),
    Object(Vec<u64>),
    Age(u64),
    Text(Pattern),
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        let conditions = text
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .map(condition);
        Ok(Filter {
            conditions: conditions.collect::<Result<_, _>>()?,
        })
    }
}

fn condition(text: &str) -> Result<Condition, FilterError> {
    let Some((key, value)) = text.trim().split_once('=') else {
        return Ok(Condition::Text(Pattern::part(text.trim())));
    };
    let all = |one: fn(&str) -> Option<u64>| each(key, value, one);
    Ok(match key {
        "state" => Condition::State(each(key, value, State::named)?),
        "wait" => Condition::Wait(each(key, value, waits)?.concat()),
        "name" => Condition::Name(each(key, value, |it| Some(Pattern::whole(it)))?),
        "for" => Condition::For(each(key, value, |it| Some(Pattern::whole(it)))?),
        "frame" => Condition::Frame(each(key, value, |it| Some(Pattern::part(it)))?),
        "place" => Condition::Place(each(key, value, |it| Some(Pattern::end(it)))?),
        "scope" => Condition::Scope(each(key, value, |it| Some(Pattern::whole(it)))?),
        "id" => Condition::Id(all(|it| it.trim_start_matches('#').parse().ok())?),
        "object" => Condition::Object(all(number)?),
        "age" => Condition::Age(all(duration)?.into_iter().min().unwrap_or(0)),
        _ => {
            let keys = "state, wait, name, for, frame, place, scope, id, object, age";
            return Err(FilterError(format!(
                "there is no condition {key:?}: it is one of {keys}"
            )));
        }
    })
}

/// Reads what a condition may be.
fn each<T>(key: &str, value: &str, one: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, FilterError> {
    let read = |it: &str| one(it).ok_or_else(|| FilterError(format!("there is no {key} {it:?}")));
    value.split('|').map(read).collect()
}

fn waits(word: &str) -> Option<Vec<WaitKind>> {
    if word == "lock" {
        let lock = |kind: &WaitKind| matches!(kind, WaitKind::Lock(_));
        return Some(WaitKind::ALL.into_iter().filter(lock).collect());
    }
    WaitKind::named(word).map(|kind| vec![kind])
}

/// Reads a number, in hexadecimal if it begins with `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Reads a duration, in nanoseconds: `500ms`, `10s`, `5m`, `1h`.
fn duration(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit = match unit {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000_u64,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

impl Filter {
    /// Returns a filter for the thread with an id.
    pub fn id(id: u64) -> Filter {
        Filter {
            conditions: vec![Condition::Id(vec![id])],
        }
    }

    /// Adds the conditions of another filter.
    pub fn and(mut self, other: Filter) -> Filter {
        self.conditions.extend(other.conditions);
        self
    }

    /// Whether it chooses all threads.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether the condition is about what members of a group have in common.
    fn of_groups(&self) -> bool {
        use Condition::{Frame, Place, State, Wait};
        self.conditions
            .iter()
            .all(|it| matches!(it, State(_) | Wait(_) | Frame(_) | Place(_)))
    }

    /// Whether a dump must list [all](Dump::lists_all) threads to be filtered. Otherwise the groups
    /// and their examples will do.
    pub fn needs_all_threads(&self) -> bool {
        !self.of_groups()
    }

    /// Returns a dump with the threads that are chosen. Of a dump that was cut, those among the
    /// threads that it lists: conditions that are about groups still count all.
    ///
    /// # Errors
    /// If the dump lists only examples, and a condition is about single threads.
    ///
    /// # Examples
    /// ```
    /// use pirn_dump::{Dump, Filter, Names, Thread};
    /// let named = |name: &str| Thread { name: Some(name.into()), ..Thread::default() };
    /// let dump = Dump { threads: vec![named("conn-1"), named("timer")], ..Dump::default() };
    /// let filter: Filter = "conn".parse()?;
    /// let chosen = filter.choose(&dump, &Names::plain(&dump))?;
    /// assert_eq!((dump.threads.len(), chosen.threads.len(), chosen.totals.listed), (2, 1, 1));
    /// # Ok::<(), pirn_dump::FilterError>(())
    /// ```
    pub fn choose(&self, dump: &Dump, names: &Names) -> Result<Dump, FilterError> {
        let by_threads = self.needs_all_threads();
        if by_threads && !dump.lists_all() && dump.totals.cut == 0 {
            return Err(FilterError(ONLY_EXAMPLES.to_string()));
        }
        let known = Known::of(self, dump, names);
        let kept: Vec<bool> = dump
            .threads
            .iter()
            .map(|it| known.thread(dump, it))
            .collect();
        let groups = dump.groups.iter();
        let threads = dump.threads.iter().zip(&kept);
        let mut chosen = Dump {
            process: dump.process.clone(),
            totals: dump.totals.clone(),
            carriers: dump.carriers.clone(),
            modules: dump.modules.clone(),
            places: dump.places.clone(),
            stacks: dump.stacks.clone(),
            scopes: dump.scopes.clone(),
            groups: groups
                .filter(|it| !by_threads && known.group(it))
                .cloned()
                .collect(),
            threads: threads
                .filter(|(_, kept)| **kept)
                .map(|(it, _)| it.clone())
                .collect(),
            findings: dump.findings.clone(),
            memory: dump.memory.clone(),
        };
        match by_threads {
            true => chosen.regroup(),
            false => renumber(&mut chosen, &kept),
        }
        chosen.totals.unlisted_new = 0;
        Ok(chosen)
    }

    /// Removes the threads that are not chosen from a dump, and counts the others.
    ///
    /// # Errors
    /// If the dump lists only examples, and a condition is about single threads.
    pub fn apply(&self, dump: &mut Dump, names: &Names) -> Result<(), FilterError> {
        if self.is_empty() {
            return Ok(());
        }
        let whole = dump.lists_all();
        if !whole && self.needs_all_threads() {
            return Err(FilterError(ONLY_EXAMPLES.to_string()));
        }
        let known = Known::of(self, dump, names);
        let threads: Vec<bool> = dump
            .threads
            .iter()
            .map(|it| known.thread(dump, it))
            .collect();
        let groups: Vec<bool> = dump.groups.iter().map(|it| known.group(it)).collect();
        let (mut threads_left, mut groups_left) = (threads.iter(), groups.iter());
        dump.threads.retain(|_| threads_left.next() == Some(&true));
        if whole {
            dump.regroup();
        } else {
            dump.groups.retain(|_| groups_left.next() == Some(&true));
            renumber(dump, &threads);
        }
        dump.totals.unlisted_new = 0;
        Ok(())
    }
}

/// Corrects the groups' examples after threads were removed, and counts anew.
fn renumber(dump: &mut Dump, kept: &[bool]) {
    let mut next = 0;
    let numbers: Vec<Option<u32>> = kept
        .iter()
        .map(|kept| {
            next += u32::from(*kept);
            kept.then(|| next - 1)
        })
        .collect();
    let totals = &mut dump.totals;
    (totals.listed, totals.by_state, totals.unclaimed) = (0, [0; 5], 0);
    for group in &mut dump.groups {
        let examples = group
            .examples
            .iter()
            .filter_map(|old| numbers.get(*old as usize).copied().flatten());
        group.examples = examples.collect();
        totals.listed = totals.listed.saturating_add(group.count);
        let states = &mut totals.by_state[group.state as usize];
        *states = states.saturating_add(group.count);
        if group.stack.is_none() {
            totals.unclaimed = totals.unclaimed.saturating_add(group.count);
        }
    }
}

/// What the conditions choose of a dump's stacks, places and scopes: each looked at once.
struct Known<'a> {
    conditions: &'a [Condition],
    /// One set per condition, empty if it is about something else: of indices, or of scopes' ids.
    chosen: Vec<HashSet<u64>>,
}

impl<'a> Known<'a> {
    fn of(filter: &'a Filter, dump: &Dump, names: &Names) -> Known<'a> {
        let has_frame = |stack: &Stack, patterns: &[Pattern]| {
            let mut functions = names.all(stack).into_iter().map(Frame::name);
            functions.any(|name| any(patterns, name.as_bytes()))
        };
        let chosen = |condition: &Condition| match condition {
            Condition::Frame(patterns) => matching(&dump.stacks, |it| has_frame(it, patterns)),
            Condition::Text(pattern) => {
                let patterns = std::slice::from_ref(pattern);
                matching(&dump.stacks, |it| has_frame(it, patterns))
            }
            Condition::Place(patterns) => matching(&dump.places, |place| {
                let line = format!("{}:{}", place.file, place.line);
                let column = format!("{line}:{}", place.column);
                [&place.file, &line, &column]
                    .iter()
                    .any(|text| any(patterns, text.as_bytes()))
            }),
            Condition::Scope(patterns) => {
                let named = |name: &Option<String>| {
                    name.as_ref().is_some_and(|it| any(patterns, it.as_bytes()))
                };
                let scopes = dump.scopes.iter();
                let by_name = scopes
                    .filter(|scope| named(&scope.name))
                    .map(|scope| scope.id);
                let by_id = patterns.iter().filter_map(Pattern::number);
                by_name.chain(by_id).collect()
            }
            _ => HashSet::new(),
        };
        let conditions = &filter.conditions;
        Known {
            conditions,
            chosen: conditions.iter().map(chosen).collect(),
        }
    }

    fn thread(&self, dump: &Dump, thread: &Thread) -> bool {
        self.conditions
            .iter()
            .zip(&self.chosen)
            .all(|(condition, chosen)| match condition {
                Condition::State(states) => states.contains(&thread.state),
                Condition::Wait(kinds) => kinds.contains(&thread.wait.kind()),
                Condition::Name(patterns) => thread
                    .name
                    .as_deref()
                    .is_some_and(|name| any(patterns, name)),
                Condition::For(patterns) => works_for(thread, patterns),
                Condition::Frame(_) => has(chosen, thread.stack),
                Condition::Place(_) => has(chosen, thread.place),
                Condition::Scope(_) => thread.scope.is_some_and(|id| chosen.contains(&id)),
                Condition::Id(ids) => ids.contains(&thread.id),
                Condition::Text(pattern) => {
                    let named = |name: &[u8]| pattern.matches(name);
                    has(chosen, thread.stack)
                        || thread.name.as_deref().is_some_and(named)
                        || works_for(thread, std::slice::from_ref(pattern))
                }
                Condition::Object(objects) => {
                    thread.wait.object().is_some_and(|it| objects.contains(&it))
                }
                Condition::Age(age) => {
                    let waited = thread
                        .unmoved_since
                        .map(|since| dump.process.end.saturating_sub(since));
                    waited.is_some_and(|waited| waited >= *age)
                }
            })
    }

    /// Whether a group is chosen, by conditions that are about groups.
    fn group(&self, group: &Group) -> bool {
        self.conditions
            .iter()
            .zip(&self.chosen)
            .all(|(condition, chosen)| match condition {
                Condition::State(states) => states.contains(&group.state),
                Condition::Wait(kinds) => kinds.contains(&group.wait),
                Condition::Frame(_) => has(chosen, group.stack),
                Condition::Place(_) => has(chosen, group.place),
                _ => false,
            })
    }
}

fn works_for(thread: &Thread, patterns: &[Pattern]) -> bool {
    let mut names = thread.works_for.iter();
    names.any(|name| any(patterns, name.as_bytes()))
}

fn any(patterns: &[Pattern], text: &[u8]) -> bool {
    patterns.iter().any(|pattern| pattern.matches(text))
}

fn has(chosen: &HashSet<u64>, index: Option<u32>) -> bool {
    index.is_some_and(|index| chosen.contains(&u64::from(index)))
}

/// Returns the indices of the items that are chosen.
fn matching<T>(items: &[T], chosen: impl Fn(&T) -> bool) -> HashSet<u64> {
    (0..)
        .zip(items)
        .filter(|(_, item)| chosen(item))
        .map(|(index, _)| index)
        .collect()
}
