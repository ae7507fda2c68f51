//! A run through a graph.

use super::{Graph, Inner, StepError};
use crate::error::Failure;
use crate::identity::current_limit;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use pirn::scope::{self, JoinError};
use pirn::thread::{self, Panic};

type Step<S, E> = Box<dyn Fn(&mut S) -> Result<(), E> + Send + Sync>;
type Merge<S> = Box<dyn Fn(&mut S, Vec<S>) + Send + Sync>;
pub(super) type Condition<S> = Box<dyn Fn(&S) -> bool + Send + Sync>;

/// What is done at a node. Branches begin at `B`: a name, and then the place of that node.
pub(super) enum Work<B, S, E> {
    Step(Step<S, E>),
    Fork {
        branches: Vec<B>,
        clone: fn(&S) -> S,
        merge: Merge<S>,
    },
}

impl<B, S, E> Work<B, S, E> {
    /// Finds the places of the nodes at which branches begin.
    pub(super) fn placed<W>(
        self,
        place: impl Fn(B) -> Result<usize, W>,
    ) -> Result<Work<usize, S, E>, W> {
        Ok(match self {
            Work::Step(step) => Work::Step(step),
            Work::Fork {
                branches,
                clone,
                merge,
            } => Work::Fork {
                branches: branches.into_iter().map(place).collect::<Result<_, _>>()?,
                clone,
                merge,
            },
        })
    }
}

pub(super) struct Node<N, S, E> {
    pub(super) name: N,
    /// The name, for dumps.
    shown: Box<str>,
    work: Work<usize, S, E>,
    /// Where to go next, in the order in which the conditions are tried.
    pub(super) edges: Vec<(usize, Option<Condition<S>>)>,
}

impl<N: fmt::Debug, S, E> Node<N, S, E> {
    pub(super) fn new(name: N, work: Work<usize, S, E>) -> Node<N, S, E> {
        Node {
            shown: format!("step {name:?}").into(),
            name,
            work,
            edges: Vec::new(),
        }
    }
}

impl<N, S, E> Node<N, S, E> {
    /// Returns true if there is an edge without a condition.
    pub(super) fn always_goes_on(&self) -> bool {
        matches!(self.edges.last(), Some((_, None)))
    }

    /// Returns the place of the node that comes next, if the run is not over.
    fn next(&self, state: &S) -> Option<usize> {
        let mut edges = self.edges.iter();
        let holds = |condition: &Option<Condition<S>>| {
            let condition = condition.as_ref();
            condition.is_none_or(|condition| condition(state))
        };
        let edge = edges.find(|(_, condition)| holds(condition));
        edge.map(|(next, _)| *next)
    }
}

impl<N, S, E> Graph<N, S, E>
where
    N: Clone + Eq + fmt::Debug + Send + Sync,
    S: Send,
    E: Send,
{
    /// Runs through the graph from this node, and returns when it is over: at a node that has no
    /// edge whose condition holds.
    ///
    /// The caller's deadline, as in an actor's handler or [`with_deadline`](crate::with_deadline),
    /// and an interrupt hold for all steps and branches: waits in them end, and no further step is
    /// begun.
    ///
    /// # Errors
    /// See [`StepError`]. The state is as the step that has failed left it, or as it was when the
    /// fork began that has failed. A run that starts at [the node](StepError::node) of the error
    /// tries that step again.
    ///
    /// # Examples
    /// A graph whose runs are actors, one for each request:
    /// ```
    /// use pirn_actor::{self as actor, Graph};
    ///
    /// let graph = Graph::template()
    ///     .step("plan", |n: &mut u32| Ok::<_, String>(*n += 1))
    ///     .step("write", |n| Ok(*n *= 2))
    ///     .edge("plan", "write")
    ///     .build()?;
    /// let agent = actor::each(move |mut n: u32| graph.run("plan", &mut n).map(|()| n));
    /// assert_eq!(agent.ask(20)??, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(&self, start: N, state: &mut S) -> Result<(), StepError<N, E>> {
        let graph = &*self.0;
        match graph.nodes.iter().position(|node| node.name == start) {
            Some(start) => graph.walk(start, state, &AtomicUsize::new(graph.limit)),
            None => Err(StepError::UnknownNode { node: start }),
        }
    }
}

impl<N, S, E> Inner<N, S, E>
where
    N: Clone + fmt::Debug + Send + Sync,
    S: Send,
    E: Send,
{
    /// Takes steps until there is no next one. There may be so many as are `left`.
    fn walk(&self, start: usize, state: &mut S, left: &AtomicUsize) -> Result<(), StepError<N, E>> {
        let mut next = Some(start);
        while let Some(at) = next {
            let node = &self.nodes[at];
            self.may_begin(node, left)?;
            // The state is the caller's, who is told that the step has panicked.
            let step = || Panic::catch(|| self.step(node, state, left));
            next = thread::annotate(&node.shown, step).unwrap_or_else(|panic| {
                let (node, why) = (node.name.clone(), Failure::from(&panic));
                Err(StepError::Panicked { node, why })
            })?;
        }
        Ok(())
    }

    /// Counts a step, unless it must not begin.
    fn may_begin(&self, node: &Node<N, S, E>, left: &AtomicUsize) -> Result<(), StepError<N, E>> {
        let name = || node.name.clone();
        if current_limit().is_past() {
            return Err(StepError::TimedOut { node: name() });
        }
        if thread::is_interrupted() {
            return Err(StepError::Interrupted { node: name() });
        }
        // Relaxed: it is nothing but a count.
        let counted = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        let limit = self.limit;
        counted.map_or_else(
            |_| {
                Err(StepError::TooManySteps {
                    node: name(),
                    limit,
                })
            },
            |_| Ok(()),
        )
    }

    /// Takes a step. Returns the place of the next one.
    fn step(
        &self,
        node: &Node<N, S, E>,
        state: &mut S,
        left: &AtomicUsize,
    ) -> Result<Option<usize>, StepError<N, E>> {
        if let Some(watch) = &self.before_each {
            watch(&node.name, state);
        }
        match &node.work {
            Work::Step(f) => f(state).map_err(|error| {
                let node = node.name.clone();
                StepError::Failed { node, error }
            })?,
            Work::Fork {
                branches,
                clone,
                merge,
            } => {
                let states = branches.iter().map(|at| (*at, clone(state))).collect();
                let ends = self.branch(states, left);
                let ends = ends.map_err(|error| of_fork(error, &node.name))?;
                merge(state, ends);
            }
        }
        Ok(node.next(state))
    }

    /// Runs branches, each from its place and with its state, and returns their states.
    fn branch(
        &self,
        states: Vec<(usize, S)>,
        left: &AtomicUsize,
    ) -> Result<Vec<S>, JoinError<StepError<N, E>>> {
        scope::Builder::new().open(|s| {
            let branches: Vec<_> = states
                .into_iter()
                .map(|(start, mut state)| {
                    s.fork(move || self.walk(start, &mut state, left).map(|()| state))
                })
                .collect();
            let all = s.join()?;
            Ok(branches.into_iter().map(|end| end.get(&all)).collect())
        })
    }
}

/// Returns the error of a run whose fork at this node has failed: that of the first branch that
/// has, if one has.
fn of_fork<N: Clone, E>(error: JoinError<StepError<N, E>>, node: &N) -> StepError<N, E> {
    let node = node.clone();
    match error {
        JoinError::Failed(error) => error,
        JoinError::TimedOut => StepError::TimedOut { node },
        JoinError::Panicked(panic) => StepError::Panicked {
            node,
            why: Failure::new(panic.to_string()),
        },
        JoinError::Fork(error) => StepError::NoThread {
            node,
            why: Failure::new(error.to_string()),
        },
        // An interrupt. Nobody cancels the scope, and its joiner needs no subtasks.
        _ => StepError::Interrupted { node },
    }
}
