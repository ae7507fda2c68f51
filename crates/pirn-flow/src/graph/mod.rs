//! Graphs of steps: which step follows which, and which steps run at once.
//!
//! ```text
//!   plan --> research --> write --> review --> over
//!            |      ^       ^          |
//!            +-> web -->+   +----------+ while the draft is too short
//!            +-> books ->+
//! ```
//!
//! A run has one state, which it takes from step to step. A fork gives each of its branches a clone
//! of the state and a thread of a scope, and merges the clones when all branches have ended. So
//! only the end of a fork waits for several steps, and it cannot wait for a branch that never
//! comes.
//!
//! Rejected: several edges that are followed at once, and steps that wait for several edges.
//! Conditions elsewhere then decide how long a step waits, and a wrong graph hangs instead of
//! failing.

mod error;
mod template;

pub use error::{Cause, Error, StepError};
pub use template::Template;

use crate::wait::is_past;
use core::fmt;
use core::hash::Hash;
use core::sync::atomic::{AtomicUsize, Ordering};
use pirn::scope::{self, JoinError};
use pirn::thread::{self, Panic};
use std::sync::Arc;
use template::{Condition, Work};

/// A graph of steps over a state: it describes what an agent, a workflow or a long request does,
/// and in which order.
///
/// Each step is a function of the state, and may block. *Nodes* name the steps: values of any type
/// that can be compared. After a step the run follows the first of the node's edges whose condition
/// holds; without such an edge the run is over. A [fork](Template::fork) runs several branches at
/// once.
///
/// Any number of runs can share a graph at the same time. It has no threads of its own: steps run
/// on the caller's thread, and branches on virtual threads of a [scope](pirn::scope::open()).
///
/// # Examples
/// ```
/// use pirn_flow::graph::{Cause, Graph};
///
/// #[derive(Clone, Default)]
/// struct Draft {
///     notes: Vec<String>,
///     text: String,
/// }
///
/// let graph = Graph::template()
///     .fork("research", ["web", "books"], |draft: &mut Draft, [web, books]| {
///         draft.notes = [web.notes, books.notes].concat();
///     })
///     .step("web", |draft| {
///         draft.notes.push("found".to_string()); // or ask a server
///         Ok(())
///     })
///     .step("books", |draft| {
///         draft.notes.push("read".to_string());
///         Ok(())
///     })
///     .step("write", |draft| {
///         draft.text += &draft.notes.join(", ");
///         if draft.text.is_empty() { Err("nothing is known") } else { Ok(()) }
///     })
///     .edge("research", "write")
///     .edge_if("write", "write", |draft| draft.text.len() < 20) // else it is over
///     .build()?;
///
/// let mut draft = Draft::default();
/// graph.run("research", &mut draft)?;
/// assert_eq!(draft.text, "found, readfound, read");
///
/// let error = graph.run("write", &mut Draft::default()).unwrap_err();
/// assert_eq!((error.node, error.cause), ("write", Cause::Failed("nothing is known")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Graph<N, S, E>(Arc<Template<N, S, E>>);

impl<N, S, E> Graph<N, S, E>
where
    N: Clone + Eq + Hash + fmt::Debug + Send + Sync,
    S: Send,
    E: Send,
{
    /// Runs through the graph from this node, and returns when the run is over: at a node without
    /// an edge whose condition holds.
    ///
    /// The caller's [deadline](pirn::scope::deadline()) and an interrupt apply to all steps and
    /// branches: they end waits in them, and no further step begins.
    ///
    /// See [`StepError`]. The state is as the failed step left it, or as it was before the failed
    /// fork. A run that starts at the node of the error tries that step again.
    ///
    /// # Examples
    /// An actor that runs a graph for each request:
    /// ```
    /// use pirn_actor as actor;
    /// use pirn_flow::graph::Graph;
    ///
    /// let graph = Graph::template()
    ///     .step("plan", |n: &mut u32| Ok::<_, String>(*n += 1))
    ///     .step("write", |n| Ok(*n *= 2))
    ///     .edge("plan", "write")
    ///     .build()?;
    /// let agent = actor::flow::each(move |mut n: u32| graph.run("plan", &mut n).map(|()| n));
    /// assert_eq!(agent.ask(20)??, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(&self, start: N, state: &mut S) -> Result<(), StepError<N, E>> {
        match self.0.works.contains_key(&start) {
            true => self.walk(&start, state, &AtomicUsize::new(self.0.limit)),
            false => Err(StepError {
                node: start,
                cause: Cause::UnknownNode,
            }),
        }
    }

    /// Takes steps until there is no next one, but at most `left`.
    fn walk(&self, start: &N, state: &mut S, left: &AtomicUsize) -> Result<(), StepError<N, E>> {
        let mut next = Some(start);
        while let Some(node) = next {
            let error = |cause| StepError {
                node: node.clone(),
                cause,
            };
            self.may_begin(left).map_err(error)?;
            // The caller owns the state, and learns that the step has panicked.
            let step = || Panic::catch(|| self.step(node, state, left));
            let stepped = thread::annotate(&format!("step {node:?}"), step);
            next = stepped.map_err(|panic| error(Cause::Panicked(panic.to_string())))??;
        }
        Ok(())
    }

    /// Counts a step. Returns an error if it must not begin.
    fn may_begin(&self, left: &AtomicUsize) -> Result<(), Cause<E>> {
        if is_past(scope::deadline()) {
            return Err(Cause::TimedOut);
        }
        if thread::is_interrupted() {
            return Err(Cause::Interrupted);
        }
        // Relaxed: a count that orders nothing else.
        let counted = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        counted.map_or(Err(Cause::TooManySteps(self.0.limit)), |_| Ok(()))
    }

    /// Takes a step. Returns the next node, or `None` if the run is over.
    fn step(
        &self,
        node: &N,
        state: &mut S,
        left: &AtomicUsize,
    ) -> Result<Option<&N>, StepError<N, E>> {
        let graph = &*self.0;
        if let Some(watch) = &graph.before_each {
            watch(node, state);
        }
        let error = |cause| StepError {
            node: node.clone(),
            cause,
        };
        match &graph.works[node] {
            Work::Step(f) => f(state).map_err(|failed| error(Cause::Failed(failed)))?,
            Work::Fork {
                branches,
                clone,
                merge,
            } => {
                let branch = |start| {
                    let mut state = clone(state);
                    move || self.walk(start, &mut state, left).map(|()| state)
                };
                let branches: Vec<_> = branches.iter().map(branch).collect();
                let ends = scope::all(branches).map_err(|failed| match failed {
                    JoinError::Failed(of_branch) => of_branch,
                    JoinError::TimedOut => error(Cause::TimedOut),
                    JoinError::Panicked(panic) => error(Cause::Panicked(panic.to_string())),
                    JoinError::Fork(why) => error(Cause::NoThread(why.to_string())),
                    // An interrupt: nothing cancels this scope, and it needs no subtask to succeed.
                    _ => error(Cause::Interrupted),
                })?;
                merge(state, ends);
            }
        }
        let mut edges = graph.edges.get(node).into_iter().flatten();
        let holds = |condition: &Condition<S>| condition(state);
        let edge = edges.find(|(_, condition)| condition.as_ref().is_none_or(holds));
        Ok(edge.map(|(next, _)| next))
    }
}

impl<N, S, E> Clone for Graph<N, S, E> {
    fn clone(&self) -> Graph<N, S, E> {
        Graph(Arc::clone(&self.0))
    }
}

impl<N: fmt::Debug, S, E> fmt::Debug for Graph<N, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Graph").field(&self.0.works.keys()).finish()
    }
}
