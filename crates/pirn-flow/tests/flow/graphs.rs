//! Graphs of steps.

use crate::common::{Gate, until, watched};
use pirn::scope::with_deadline;
use pirn::thread;
use pirn_actor::{self as actor, Builder, Exit};
use pirn_dump::Dump;
use pirn_flow::graph::{self, Cause, Error, Graph, StepError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

type Notes = Vec<&'static str>;
type Template = graph::Template<&'static str, Notes, String>;

/// A step that notes its name.
fn noting(template: Template, name: &'static str) -> Template {
    template.step(name, move |notes| {
        notes.push(name);
        Ok(())
    })
}

fn at(node: &'static str, cause: Cause<String>) -> StepError<&'static str, String> {
    StepError { node, cause }
}

fn with_steps(names: &[&'static str]) -> Template {
    names.iter().copied().fold(Graph::template(), noting)
}

/// Waits until the thread is interrupted.
fn wait_for_an_interrupt() -> Result<(), String> {
    thread::sleep_interruptible(Duration::from_secs(3600)).map_err(|error| error.to_string())
}

/// Appends what the branches have noted.
fn append(notes: &mut Notes, branches: [Notes; 2]) {
    let known = notes.len();
    for branch in branches {
        notes.extend(&branch[known..]);
    }
}

#[watched]
fn a_run_takes_the_first_edge_whose_condition_holds() {
    let graph = with_steps(&["plan", "write", "give up", "publish"])
        .edge("plan", "write")
        .edge_if("write", "write", |notes| notes.len() < 4)
        .edge_if("write", "give up", |notes| notes.len() > 100)
        .edge("write", "publish")
        .build()
        .unwrap();
    let mut notes = Notes::new();
    assert_eq!(graph.run("plan", &mut notes), Ok(()));
    assert_eq!(notes, ["plan", "write", "write", "write", "publish"]);
}

#[watched]
fn a_run_is_over_where_no_condition_holds() {
    let graph = with_steps(&["plan", "write"])
        .edge_if("plan", "write", |notes| notes.len() > 1)
        .build()
        .unwrap();
    let mut notes = Notes::new();
    assert_eq!(graph.run("plan", &mut notes), Ok(()));
    assert_eq!(notes, ["plan"]);
    assert_eq!(graph.run("plan", &mut notes), Ok(()));
    assert_eq!(notes, ["plan", "plan", "write"]);
}

#[watched]
fn branches_run_at_once_and_are_merged_in_their_order() {
    let both = Arc::new(Barrier::new(2));
    let meeting = |name: &'static str| {
        let both = Arc::clone(&both);
        move |notes: &mut Notes| {
            both.wait();
            notes.push(name);
            Ok(())
        }
    };
    let graph = with_steps(&["plan", "write"])
        .fork("research", ["web", "books"], append)
        .step("web", meeting("web"))
        .step("books", meeting("books"))
        .edge("plan", "research")
        .edge("research", "write")
        .build()
        .unwrap();
    let mut notes = Notes::new();
    assert_eq!(graph.run("plan", &mut notes), Ok(()));
    assert_eq!(notes, ["plan", "web", "books", "write"]);
}

#[watched]
fn what_comes_after_a_fork_waits_for_its_longest_branch() {
    let gate = Gate::new();
    let (opens, waits) = (gate.clone(), gate);
    let graph = with_steps(&["short", "long", "write"])
        .fork("research", ["short", "long"], append)
        .step("longer", move |notes| {
            waits.wait();
            notes.push("longer");
            Ok(())
        })
        .edge("long", "longer")
        .edge("research", "write")
        .before_each(move |node, _| {
            if *node == "longer" {
                opens.open();
            }
            assert!(*node != "write" || opens.is_open());
        })
        .build()
        .unwrap();
    let mut notes = Notes::new();
    assert_eq!(graph.run("research", &mut notes), Ok(()));
    assert_eq!(notes, ["short", "long", "longer", "write"]);
}

#[watched]
fn the_first_branch_that_fails_ends_the_others_and_changes_nothing() {
    let begun = Gate::new();
    let waits = begun.clone();
    let interrupted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&interrupted);
    let graph = with_steps(&["plan"])
        .fork("research", ["web", "books"], append)
        .step("web", move |notes| {
            notes.push("web");
            begun.open();
            let waited = wait_for_an_interrupt();
            counted.fetch_add(1, Ordering::Relaxed);
            waited
        })
        .step("books", move |_| {
            waits.wait();
            Err("the library is closed".to_string())
        })
        .edge("plan", "research")
        .build()
        .unwrap();
    let mut notes = Notes::new();
    let error = graph.run("plan", &mut notes).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the step "books" failed: the library is closed"#
    );
    assert_eq!(notes, ["plan"]);
    assert_eq!(interrupted.load(Ordering::Relaxed), 1);
    assert!(!thread::is_interrupted());
}

#[watched]
fn forks_in_branches_are_branches_of_those() {
    let graph = with_steps(&["a", "b", "c"])
        .fork("outer", ["inner", "c"], append)
        .fork("inner", ["a", "b"], append)
        .build()
        .unwrap();
    let mut notes = vec!["before"];
    assert_eq!(graph.run("outer", &mut notes), Ok(()));
    assert_eq!(notes, ["before", "a", "b", "c"]);
}

#[watched]
fn a_run_that_goes_round_for_ever_is_an_error() {
    let round = with_steps(&["write", "review"])
        .edge("write", "review")
        .edge("review", "write");
    let mut notes = Notes::new();
    let error = round.build().unwrap().run("write", &mut notes).unwrap_err();
    assert_eq!(error, at("write", Cause::TooManySteps(1000)));
    assert_eq!(notes.len(), 1000);
    // As many as may be are no error.
    let four = with_steps(&["write"]).edge_if("write", "write", |notes| notes.len() < 4);
    assert_eq!(
        four.limit(4).build().unwrap().run("write", &mut vec![]),
        Ok(())
    );
}

#[watched]
fn a_fork_that_leads_to_itself_is_an_error() {
    let graph = Graph::template()
        .fork("split", ["split", "split"], |_: &mut (), [(), ()]| ())
        .step("never", |()| Ok::<_, String>(()))
        .limit(50)
        .build()
        .unwrap();
    let error = graph.run("split", &mut ()).unwrap_err();
    assert_eq!(error, at("split", Cause::TooManySteps(50)));
}

#[watched]
fn a_panic_is_an_error_that_names_the_node() {
    let graph = with_steps(&["decide", "part"])
        .step("write", |_| panic!("no ink"))
        .edge_if("decide", "write", |_| panic!("cannot decide"))
        .fork("merge", ["part", "part"], |_, _| panic!("cannot merge"))
        .fork("split", ["part", "write"], append)
        .build()
        .unwrap();
    let panics = [
        ("write", "write", "no ink"),
        ("decide", "decide", "cannot decide"),
        ("merge", "merge", "cannot merge"),
        ("split", "write", "no ink"),
    ];
    for (start, at, text) in panics {
        let error = graph.run(start, &mut Notes::new()).unwrap_err();
        assert_eq!(error.node, at);
        assert!(
            matches!(&error.cause, Cause::Panicked(why) if why.contains(text)),
            "{error}"
        );
    }
}

#[watched]
fn no_step_is_begun_when_the_time_is_up() {
    let graph = with_steps(&["write"]).build().unwrap();
    let mut notes = Notes::new();
    let run = with_deadline(Instant::now(), || graph.run("write", &mut notes));
    assert_eq!(run, Err(at("write", Cause::TimedOut)));
    assert_eq!(notes, [""; 0]);
}

#[watched]
fn no_step_is_begun_after_an_interrupt() {
    let graph = with_steps(&["write"])
        .step("plan", |_| {
            thread::current().interrupt();
            Ok(())
        })
        .edge("plan", "write")
        .build()
        .unwrap();
    let run = thread::spawn(move || graph.run("plan", &mut Notes::new()));
    let error = at("write", Cause::Interrupted);
    assert_eq!(run.join().unwrap(), Err(error));
}

/// A graph that waits in both branches of a fork, and counts those that have begun to.
fn waiting() -> (Graph<&'static str, Notes, String>, Arc<AtomicUsize>) {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let graph = with_steps(&["write"])
        .fork("research", ["wait", "wait"], append)
        .step("wait", move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            wait_for_an_interrupt()
        })
        .edge("research", "write")
        .build()
        .unwrap();
    (graph, begun)
}

#[watched]
fn an_askers_deadline_ends_the_steps_of_a_run() {
    let (graph, _) = waiting();
    let (tell, told) = mpsc::channel();
    let agent = actor::function(move |()| {
        let mut notes = Notes::new();
        tell.send(graph.run("research", &mut notes)).unwrap();
    });
    let run = loop {
        // A request that is late already when the actor comes to it is not begun.
        let _ = agent.ask_timeout((), Duration::from_millis(10));
        if let Ok(run) = told.try_recv() {
            break run;
        }
    };
    let error = run.unwrap_err();
    match (error.node, &error.cause) {
        ("research", Cause::TimedOut) => {}
        ("wait", Cause::Failed(_)) => {} // the interrupt came there first
        _ => panic!("{error:?}"),
    }
}

#[watched]
fn a_kill_ends_the_branches_of_a_run() {
    let (graph, begun) = waiting();
    let agent = Builder::new().consumer(move |()| drop(graph.run("research", &mut Notes::new())));
    agent.send(()).unwrap();
    until(|| begun.load(Ordering::Relaxed) == 2);
    agent.kill();
    assert_eq!(agent.join(), Exit::Killed);
}

#[watched]
fn a_run_can_start_again_where_it_has_failed() {
    let fails = Arc::new(Mutex::new(true));
    let mends = Arc::clone(&fails);
    let graph = with_steps(&["plan", "publish"])
        .step("write", move |notes| match *fails.lock().unwrap() {
            true => Err("no paper".to_string()),
            false => {
                notes.push("write");
                Ok(())
            }
        })
        .edge("plan", "write")
        .edge("write", "publish")
        .build()
        .unwrap();
    let mut notes = Notes::new();
    let error = graph.run("plan", &mut notes).unwrap_err();
    *mends.lock().unwrap() = false;
    assert_eq!(graph.run(error.node, &mut notes), Ok(()));
    assert_eq!(notes, ["plan", "write", "publish"]);
}

#[watched]
fn the_state_of_a_run_may_borrow() {
    let text = "to be or not to be".to_string();
    let graph = Graph::template()
        .step("split", |(text, words): &mut (&str, Vec<&str>)| {
            words.extend(text.split(' '));
            Ok::<_, String>(())
        })
        .build()
        .unwrap();
    let mut state = (&*text, Vec::new());
    graph.run("split", &mut state).unwrap();
    assert_eq!(state.1.len(), 6);
}

#[watched]
fn what_is_wrong_with_a_graph_is_found_when_it_is_built() {
    let twice = noting(with_steps(&["plan"]), "plan").build();
    assert_eq!(twice.unwrap_err(), Error::TwoSteps("plan"));
    let unknown = Error::UnknownNode("write");
    let to = with_steps(&["plan"]).edge("plan", "write").build();
    assert_eq!(to.unwrap_err(), unknown);
    let from = with_steps(&["plan"]).edge("write", "plan").build();
    assert_eq!(from.unwrap_err(), unknown);
    let branch = with_steps(&["plan"]).fork("split", ["plan", "write"], append);
    assert_eq!(branch.build().unwrap_err(), unknown);
    let never = with_steps(&["plan", "write"])
        .edge("plan", "plan")
        .edge_if("plan", "write", |_| true)
        .build();
    let (from, to) = ("plan", "write");
    assert_eq!(never.unwrap_err(), Error::NeverTaken { from, to });
}

#[watched]
fn a_run_from_a_node_that_there_is_not_is_an_error() {
    let graph = with_steps(&["plan"]).build().unwrap();
    let error = graph.run("paln", &mut Notes::new()).unwrap_err();
    assert_eq!(error, at("paln", Cause::UnknownNode));
}

#[watched]
fn errors_of_runs_say_what_has_happened_and_where() {
    let errors = [
        (Cause::TimedOut, r#"the time was up at the step "write""#),
        (Cause::Interrupted, r#"interrupted at the step "write""#),
        (
            Cause::TooManySteps(3),
            r#"the run has not come to an end within 3 steps; the next would be "write""#,
        ),
        (
            Cause::NoThread("no memory".to_string()),
            r#"no thread for a branch of "write": no memory"#,
        ),
        (Cause::UnknownNode, r#"the graph has no node "write""#),
    ];
    for (cause, text) in errors {
        assert_eq!(at("write", cause).to_string(), text);
    }
}

#[watched]
fn a_dump_shows_the_step() {
    let gate = Gate::new();
    let waits = gate.clone();
    let graph = Graph::template()
        .step("weave", move |_: &mut u8| {
            waits.wait();
            Ok::<_, String>(())
        })
        .build()
        .unwrap();
    let run = thread::spawn(move || graph.run("weave", &mut 7));
    let is_shown = || {
        let mut bytes = Vec::new();
        let dump = pirn::dump::Options::new().list(usize::MAX).take();
        dump.write_to(&mut bytes).unwrap();
        let threads = Dump::read_from(&bytes[..]).unwrap().threads;
        let weaves = |works_for: &[String]| works_for == [r#"step "weave""#];
        threads.iter().any(|thread| weaves(&thread.works_for))
    };
    until(is_shown);
    gate.open();
    run.join().unwrap().unwrap();
}
