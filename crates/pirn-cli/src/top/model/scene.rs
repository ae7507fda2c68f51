//! What the process has said, and which part of it is shown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pirn_dump::{Dump, Names};

use super::Conditions;
use super::growth::Growth;
use pirn_live::{CarrierSample, Identity, Live, Sample, Snapshot, Status, Want, Window, keys};

/// What is new of the process.
#[derive(Debug)]
pub struct News {
    pub identity: Identity,
    pub uptime: Duration,
    pub samples: Vec<Arc<Sample>>,
    pub snapshot: Option<Arc<Snapshot>>,
    pub status: Status,
    pub trouble: Option<String>,
    /// How long it takes until the next dump is taken.
    pub next_dump: Duration,
    pub now: Instant,
}

impl News {
    /// Returns what is known now, with the newest dump of this kind.
    pub fn of(live: &Live, want: Want) -> News {
        News {
            identity: live.identity().clone(),
            uptime: live.identity().uptime(),
            samples: live.history(),
            snapshot: live.snapshot(want),
            status: live.status(),
            trouble: live.trouble(),
            next_dump: live.rests_for(),
            now: Instant::now(),
        }
    }
}

/// What the process has said.
#[derive(Debug, Default)]
pub struct Scene {
    pub identity: Option<Identity>,
    pub uptime: Duration,
    pub samples: Vec<Arc<Sample>>,
    pub view: Option<View>,
    pub status: Option<Status>,
    pub trouble: Option<String>,
    pub next_dump: Duration,
    pub now: Option<Instant>,
    growth: Growth,
}

/// The threads of a dump that meet the conditions.
#[derive(Debug)]
pub struct View {
    pub snapshot: Arc<Snapshot>,
    /// They alone, unless all are shown.
    chosen: Option<Dump>,
    /// A number per group, by which it is known again.
    pub keys: Vec<u64>,
    /// By how much each group has grown, and in which time; `None`: this is the first dump.
    pub growth: Option<(Vec<i64>, Duration)>,
}

impl View {
    fn of(snapshot: Arc<Snapshot>, conditions: &Conditions, growth: &mut Growth) -> Option<View> {
        let filter = &conditions.filter;
        let chosen = match filter.is_empty() {
            true => None,
            // It has only examples: one with all threads is asked for.
            false => Some(filter.choose(&snapshot.dump, &snapshot.names).ok()?),
        };
        let keys = match &chosen {
            Some(dump) => keys(dump, &snapshot.names),
            None => snapshot.keys.clone(),
        };
        let dump = chosen.as_ref().unwrap_or(&snapshot.dump);
        let growth = growth.add(dump, &keys, snapshot.taken);
        Some(View {
            snapshot,
            chosen,
            keys,
            growth,
        })
    }

    /// Returns the threads that are shown.
    pub fn dump(&self) -> &Dump {
        self.chosen.as_ref().unwrap_or(&self.snapshot.dump)
    }

    pub fn names(&self) -> &Names {
        &self.snapshot.names
    }

    /// Returns by how much a group has grown.
    pub fn growth_of(&self, group: usize) -> Option<i64> {
        self.growth.as_ref()?.0.get(group).copied()
    }
}

impl Scene {
    pub(super) fn update(&mut self, news: News, conditions: &Conditions) {
        self.tell(&news);
        self.samples = news.samples;
        let Some(snapshot) = news.snapshot else {
            return;
        };
        let known = self.view.as_ref().map(|view| view.snapshot.number);
        if known != Some(snapshot.number) {
            self.view = View::of(snapshot, conditions, &mut self.growth);
        }
    }

    /// Takes over what is true also of a page that is paused.
    pub(super) fn tell(&mut self, news: &News) {
        self.identity = Some(news.identity.clone());
        self.uptime = news.uptime;
        self.status = Some(news.status.clone());
        self.trouble.clone_from(&news.trouble);
        self.next_dump = news.next_dump;
        self.now = Some(news.now);
    }

    /// Forgets a dump that does not have what is wanted.
    pub(super) fn need(&mut self, want: Want) {
        self.view = self.view.take().filter(|view| view.snapshot.has(want));
    }

    /// Shows other threads of the dump.
    pub(super) fn filter_by(&mut self, conditions: &Conditions) {
        self.growth.clear();
        let view = self.view.take();
        self.view = view.and_then(|it| View::of(it.snapshot, conditions, &mut self.growth));
    }

    /// Returns the newest sample.
    pub fn sample(&self) -> Option<&Sample> {
        self.samples.last().map(AsRef::as_ref)
    }

    /// Returns the time between the last two samples.
    pub fn window(&self) -> Option<Window<'_>> {
        match &self.samples[..] {
            [.., before, after] => Some(Window::between(before, after)),
            _ => None,
        }
    }

    pub fn carriers(&self) -> &[CarrierSample] {
        self.sample().map_or(&[], |sample| &sample.carriers)
    }

    /// Returns the virtual thread that ran on a carrier when the dump was taken, if one runs there
    /// now.
    pub fn mounted(&self, carrier: u32) -> Option<u64> {
        use pirn_dump::CarrierState::{Running, Stuck};
        let now = self.carriers().iter().find(|it| it.number == carrier)?;
        if ![Running, Stuck]
            .iter()
            .any(|state| now.state == state.word())
        {
            return None;
        }
        let dump = &self.view.as_ref()?.snapshot.dump;
        dump.carriers.iter().find(|it| it.number == carrier)?.thread
    }

    /// Returns how to call a thread: `#12 "name"`.
    pub fn called(&self, id: u64) -> String {
        let thread = self.view.as_ref().and_then(|view| view.snapshot.thread(id));
        match thread.and_then(|thread| thread.name.as_deref()) {
            Some(name) => format!("#{id} {}", pirn_dump::show::quoted(name)),
            None => format!("#{id}"),
        }
    }

    /// Returns how long ago the dump was taken.
    pub fn age(&self) -> Option<Duration> {
        let taken = self.view.as_ref()?.snapshot.taken;
        Some(self.now?.saturating_duration_since(taken))
    }
}
