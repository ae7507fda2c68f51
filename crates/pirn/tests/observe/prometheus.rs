//! The text for Prometheus, as Prometheus sees it.

use crate::common::{skip, watched};
use pirn::thread;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Names that others have in their dashboards: none goes away unnoticed.
const NAMES: [&str; 26] = [
    "pirn_threads{state=\"waiting\"}",
    "pirn_threads_started_total",
    "pirn_threads_ended_total",
    "pirn_threads_panicked_total",
    "pirn_interrupts_total",
    "pirn_parks_total{kind=\"read\"}",
    "pirn_wakes_total",
    "pirn_mounts_total",
    "pirn_preemptions_total",
    "pirn_schedule_latency_seconds_bucket{le=\"+Inf\"}",
    "pirn_carriers{state=\"stuck\"}",
    "pirn_parallelism",
    "pirn_spare_carriers",
    "pirn_steals_total",
    "pirn_run_queue_threads",
    "pirn_carrier_stuck_episodes_total",
    "pirn_carrier_stuck_seconds_total",
    "pirn_offloaded_calls_total{kind=\"bounded\"}",
    "pirn_offload_threads",
    "pirn_timers",
    "pirn_descriptors",
    "pirn_scopes",
    "pirn_stack_slots{state=\"used\"}",
    "pirn_events_dropped_total",
    "pirn_memory_bytes{kind=\"stacks\"}",
    "pirn_build_info{version=\"",
];

#[watched]
fn the_text_has_all_names_in_the_format_of_prometheus() {
    thread::spawn(|| ()).join().unwrap();
    let text = pirn::metrics::snapshot().to_prometheus();
    for name in NAMES {
        assert!(
            text.lines().any(|line| line.starts_with(name)),
            "no {name} in\n{text}"
        );
    }
    let checked = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut promtool = match checked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return skip("there is no promtool (Debian: package prometheus)");
        }
        checked => checked.unwrap(),
    };
    promtool
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}
