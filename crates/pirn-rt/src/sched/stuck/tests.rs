use super::*;

const MS: u64 = 1_000_000;

fn at(tick: u32, ns: u64) -> Result<Episode, usize> {
    Ok(Episode {
        processor: 1,
        number: 0,
        ns,
        holder: 77,
        tick,
        blocked: true,
        cpu: 0,
    })
}

#[test]
fn an_episode_begins_with_what_was_seen_and_grows_by_steps() {
    let stuck = Stuck::new(2);
    assert_eq!(stuck.episodes().count(), 0);
    stuck.note(at(5, 4 * MS), MS);
    stuck.note(at(5, 5 * MS), MS);
    let episode = stuck.episode(1).unwrap();
    assert_eq!((episode.ns, episode.number), (5 * MS, 1));
    assert_eq!((episode.holder, episode.tick), (77, 5));
    assert_eq!(stuck.episode(0), None);
    stuck.note(Err(1), MS);
    assert_eq!(stuck.episode(1), None);
    assert_eq!(stuck.totals(1), (1, 5 * MS));
}

#[test]
fn another_switch_is_another_episode() {
    let stuck = Stuck::new(2);
    stuck.note(at(5, 9 * MS), MS);
    stuck.note(at(6, 4 * MS), MS);
    let episode = stuck.episode(1).unwrap();
    assert_eq!((episode.ns, episode.number), (4 * MS, 2));
}

#[test]
fn time_in_which_the_monitor_did_not_run_does_not_count() {
    let stuck = Stuck::new(2);
    stuck.note(at(5, 3_600_000 * MS), MS);
    stuck.note(at(5, 3_600_000 * MS), 3_600_000 * MS);
    assert_eq!(stuck.episode(1).unwrap().ns, 40 * MS);
    stuck.note_wanting(true, 3_600_000 * MS);
    assert_eq!(stuck.wanting_ns(), 20 * MS);
    stuck.note_wanting(false, MS);
    assert_eq!(stuck.wanting_ns(), 0);
}

#[test]
fn the_reporter_is_told_once_per_episode() {
    let stuck = Stuck::new(2);
    let told = || stuck.news.swap(false, Relaxed);
    stuck.note(at(5, 20 * MS), MS);
    assert!(!told(), "no reports were asked for");
    stuck.report_after(22 * MS, 3 * MS);
    stuck.note(at(5, 21 * MS), MS);
    assert!(!told());
    stuck.note(at(5, 22 * MS), MS);
    assert!(told());
    stuck.note(at(5, 23 * MS), MS);
    assert!(!told());
    stuck.note_wanting(true, 2 * MS);
    assert!(!told());
    stuck.note_wanting(true, 2 * MS);
    assert!(told());
    stuck.note(at(6, 20 * MS), MS);
    stuck.note(at(6, 22 * MS), 2 * MS);
    stuck.nap(Deadline::NEVER);
    assert!(!told(), "the nap has taken the news");
}
