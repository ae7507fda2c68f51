//! The head of the page: the process in numbers.

use std::time::Duration;

use pirn_dump::show;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Sparkline, Widget};

use super::Pen;
use crate::top::text::{rate, short, whole};
use pirn_live::{CarrierSample, Counters, Sample, Window};

/// The width of the names of lines.
const LABEL: usize = 12;
/// Pages of this width have a history at the right.
const WIDE: u16 = 100;
/// The width of a history.
const HISTORY: u16 = 30;

/// A number, and what it is the number of.
type Item = (String, String, Style);

/// Draws as many lines as there is room for.
pub fn draw(pen: Pen<'_>, area: Rect, buffer: &mut Buffer) {
    title(pen, area, buffer);
    let scene = &pen.state.scene;
    let Some(sample) = scene.sample() else {
        return;
    };
    let window = scene.window();
    let past = match area.width >= WIDE {
        true => Histories::of(&scene.samples),
        false => Histories::default(),
    };
    let latency = latency(pen, sample, window);
    let mut lines = vec![
        ("threads".to_string(), threads(pen, sample), past.threads),
        ("per second".into(), rates(pen, window), past.mounts),
        ("scheduling".into(), latency, past.latency),
        ("memory".into(), memory(pen, sample), vec![]),
    ];
    let carriers = &sample.carriers;
    if carriers.len() > usize::from(area.height.saturating_sub(5)) {
        lines.push(("carriers".into(), summary(pen, carriers), vec![]));
    } else {
        lines.extend(carriers.iter().map(|carrier| {
            let name = format!("carrier {}", carrier.number);
            (name, of_carrier(pen, carrier, window), vec![])
        }));
    }
    for ((name, items, past), row) in lines.iter().zip(area.rows().skip(1)) {
        line(pen, name, items, past, row, buffer);
    }
}

/// Draws which process it is, and how busy.
fn title(pen: Pen<'_>, area: Rect, buffer: &mut Buffer) {
    let (state, scene, theme) = (pen.state, &pen.state.scene, pen.theme);
    let Some(identity) = &scene.identity else {
        return;
    };
    let program = identity
        .program
        .rsplit('/')
        .next()
        .filter(|it| !it.is_empty());
    let mut texts = vec![
        (
            program.unwrap_or(&identity.name).to_string(),
            theme.strong(),
        ),
        (format!("  pid {}", identity.pid), theme.plain()),
    ];
    let uptime = show::duration(scene.uptime.as_nanos() as u64);
    texts.push((format!("  up {uptime}"), theme.plain()));
    if let Some(window) = scene.window() {
        texts.push((
            format!("  cpu {:.0} %", window.cpu() * 100.0),
            theme.plain(),
        ));
    }
    if let Some(sample) = scene.sample() {
        texts.push((
            format!("  resident {}", show::bytes(sample.resident)),
            theme.plain(),
        ));
        let utc = sample.time / 1_000_000_000 % 86_400;
        let (hour, minute, second) = (utc / 3600, utc / 60 % 60, utc % 60);
        texts.push((
            format!("  {hour:02}:{minute:02}:{second:02}Z"),
            theme.faint(),
        ));
    }
    texts.push((
        format!("  every {} s", state.interval.as_secs_f64()),
        theme.faint(),
    ));
    whole(area.width, texts).render(area, buffer);
}

/// Draws a line: its name, numbers, and perhaps a history.
fn line(pen: Pen<'_>, name: &str, items: &[Item], past: &[u64], row: Rect, buffer: &mut Buffer) {
    let room = match past.is_empty() {
        true => row.width,
        false => row.width.saturating_sub(HISTORY + 2),
    };
    // A number and its name are shown both or not at all.
    let items = items.iter().map(|(value, what, style)| {
        let item = format!("{value} {what}");
        (format!("{}  ", item.trim_end()), *style)
    });
    let label = (format!("{name:<LABEL$}"), pen.theme.label());
    whole(room, [label].into_iter().chain(items)).render(row, buffer);
    let newest = &past[past.len().saturating_sub(usize::from(HISTORY))..];
    let width = newest.len() as u16;
    let x = row.right().saturating_sub(width);
    let history = Sparkline::default().data(newest).style(pen.theme.history());
    history.render(Rect { x, width, ..row }, buffer);
}

fn threads(pen: Pen<'_>, sample: &Sample) -> Vec<Item> {
    let theme = pen.theme;
    let threads = &sample.threads;
    let of = |count: u64, what: &str, style| (show::count(count), what.to_string(), style);
    vec![
        of(threads.all(), "in all", theme.strong()),
        of(threads.running, "running", theme.good()),
        of(threads.runnable, "runnable", theme.notice()),
        of(threads.waiting, "waiting", theme.plain()),
        of(threads.new, "new", theme.plain()),
    ]
}

fn rates(pen: Pen<'_>, window: Option<Window<'_>>) -> Vec<Item> {
    type Count = fn(&Counters) -> u64;
    let Some(window) = window else {
        return vec![("…".into(), String::new(), pen.theme.faint())];
    };
    let always: [(&str, Count); 7] = [
        ("spawned", |it| it.started),
        ("ended", |it| it.ended),
        ("mounts", |it| it.mounts),
        ("parks", |it| it.parks),
        ("wakes", |it| it.wakes),
        ("steals", |it| it.steals),
        ("preempted", |it| it.preemptions),
    ];
    // What is seldom is shown when it happens.
    let seldom: [(&str, Count); 5] = [
        ("offloaded", |it| it.offloaded_calls),
        ("panicked", |it| it.panicked),
        ("interrupted", |it| it.interrupts),
        ("stuck", |it| it.stuck_episodes),
        ("events lost", |it| it.events_dropped),
    ];
    let item = |(what, count): &(&str, Count), style: Style| {
        let rate = rate(window.rate(count));
        // Names stay where they are while numbers change.
        (format!("{rate:>5}"), (*what).to_string(), style)
    };
    let mut items: Vec<Item> = always
        .iter()
        .map(|it| item(it, pen.theme.plain()))
        .collect();
    let happening = seldom.iter().filter(|(_, count)| window.rate(count) > 0.0);
    items.extend(happening.map(|it| item(it, pen.theme.notice())));
    items
}

fn latency(pen: Pen<'_>, sample: &Sample, window: Option<Window<'_>>) -> Vec<Item> {
    let theme = pen.theme;
    let latency = window.map(|window| window.latency()).unwrap_or_default();
    let quantile = |quantile: f64| match latency.quantile(quantile) {
        None => "–".to_string(),
        Some(Duration::MAX) => "very long".to_string(),
        Some(time) => short(time),
    };
    let gauges = &sample.gauges;
    let of = |count: u64, what: &str| (show::count(count), what.to_string(), theme.plain());
    vec![
        ("p50".into(), quantile(0.5), theme.plain()),
        ("p99".into(), quantile(0.99), theme.strong()),
        of(gauges.run_queue, "in queues"),
        of(gauges.timers, "timers"),
        of(gauges.descriptors, "descriptors"),
        of(gauges.scopes, "scopes"),
        of(gauges.offload_threads, "offload threads"),
    ]
}

/// The uses of memory that are worth a place in the head, most interesting first.
const USES: [(&str, &str); 6] = [
    ("stacks", "stacks"),
    ("stacks_cached", "cached"),
    ("stacks_reserved", "reserved"),
    ("tls", "TLS"),
    ("page_tables", "page tables"),
    ("swapped", "swapped"),
];

fn memory(pen: Pen<'_>, sample: &Sample) -> Vec<Item> {
    let known = USES.iter().filter_map(|(use_, what)| {
        let bytes = *sample.memory.get(*use_).filter(|bytes| **bytes > 0)?;
        Some((show::bytes(bytes), (*what).to_string(), pen.theme.plain()))
    });
    known.collect()
}

/// Counts carriers by state.
fn summary(pen: Pen<'_>, carriers: &[CarrierSample]) -> Vec<Item> {
    let mut items = vec![(
        carriers.len().to_string(),
        "in all".into(),
        pen.theme.strong(),
    )];
    for state in pirn_dump::CarrierState::ALL {
        let of_state = carriers.iter().filter(|it| it.state == state.word());
        match of_state.count() {
            0 => {}
            count => items.push((
                count.to_string(),
                state.word().into(),
                pen.theme.carrier(state.word()),
            )),
        }
    }
    items
}

fn of_carrier(pen: Pen<'_>, carrier: &CarrierSample, window: Option<Window<'_>>) -> Vec<Item> {
    let (theme, scene) = (pen.theme, &pen.state.scene);
    let mounts = window.map_or(0.0, |it| it.carrier_rate(carrier.number, |it| it.mounts));
    let mut items = vec![
        (
            format!("{:<9}", carrier.state),
            String::new(),
            theme.carrier(&carrier.state),
        ),
        (
            format!("{:>6}", rate(mounts)),
            "mounts/s".into(),
            theme.plain(),
        ),
        (
            format!("{:>5}", carrier.run_queue),
            "queued".into(),
            theme.plain(),
        ),
    ];
    if carrier.stuck_ns > 0 {
        let stuck = short(Duration::from_nanos(carrier.stuck_ns));
        items.push(("stuck".into(), format!("{stuck} in all"), theme.notice()));
    }
    if let Some(id) = scene.mounted(carrier.number) {
        items.push((scene.called(id), String::new(), theme.plain()));
    }
    items
}

/// What has changed from sample to sample.
#[derive(Default)]
struct Histories {
    threads: Vec<u64>,
    mounts: Vec<u64>,
    /// In nanoseconds.
    latency: Vec<u64>,
}

impl Histories {
    fn of(samples: &[std::sync::Arc<Sample>]) -> Histories {
        let newest = &samples[samples.len().saturating_sub(usize::from(HISTORY) + 1)..];
        let windows: Vec<Window<'_>> = newest
            .windows(2)
            .map(|pair| Window::between(&pair[0], &pair[1]))
            .collect();
        let latency = |window: &Window<'_>| {
            let time = window.latency().quantile(0.99).unwrap_or_default();
            time.as_nanos().try_into().unwrap_or(u64::MAX)
        };
        Histories {
            threads: newest.iter().map(|sample| sample.threads.all()).collect(),
            mounts: windows
                .iter()
                .map(|it| it.rate(|it| it.mounts) as u64)
                .collect(),
            latency: windows.iter().map(latency).collect(),
        }
    }
}
