//! Errors of a graph and of a run through it. Each error names the node.

use core::fmt;

/// Why a [`Template`](super::Template) is invalid.
///
/// # Examples
/// ```
/// use pirn_flow::graph::{Error, Graph};
///
/// let step = |_: &mut ()| Ok::<_, String>(());
/// let unknown = Graph::template().step("plan", step).edge("plan", "write").build();
/// assert_eq!(unknown.unwrap_err(), Error::UnknownNode("write"));
/// let twice = Graph::template().step("plan", step).step("plan", step).build();
/// assert_eq!(twice.unwrap_err(), Error::TwoSteps("plan"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error<N> {
    /// An edge or a fork names a node that has neither a step nor a fork.
    UnknownNode(N),
    /// A node has two steps or forks.
    TwoSteps(N),
    /// An edge would never be taken: one before it, from the same node, has no condition.
    NeverTaken {
        /// The node that the edge comes from.
        from: N,
        /// The node to which it leads.
        to: N,
    },
}

impl<N: fmt::Debug> fmt::Display for Error<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownNode(node) => write!(f, "the node {node:?} has no step"),
            Error::TwoSteps(node) => write!(f, "the node {node:?} has two steps"),
            Error::NeverTaken { from, to } => write!(
                f,
                "the edge from {from:?} to {to:?} is never taken: one before it has no condition"
            ),
        }
    }
}

impl<N: fmt::Debug> std::error::Error for Error<N> {}

/// Why a run through a [`Graph`](super::Graph) has failed, and at which node. Nodes of branches are
/// named like others.
///
/// # Examples
/// ```
/// use pirn_flow::graph::{Cause, Graph};
///
/// let graph = Graph::template()
///     .step("count", |n: &mut u32| n.checked_sub(1).map(|less| *n = less).ok_or("below 0"))
///     .edge("count", "count")
///     .limit(10)
///     .build()?;
/// let error = graph.run("count", &mut 3).unwrap_err();
/// assert_eq!(error.to_string(), r#"the step "count" failed: below 0"#);
/// let error = graph.run("count", &mut 100).unwrap_err();
/// assert_eq!((error.node, error.cause), ("count", Cause::TooManySteps(10)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepError<N, E> {
    /// The node whose step has failed or not begun, or whose fork has not ended.
    pub node: N,
    /// Why the run has ended there.
    pub cause: Cause<E>,
}

/// Why a step has failed, or has not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause<E> {
    /// The step returned an error.
    Failed(E),
    /// The step panicked, or a condition of the node's edges, or the merge of its fork. The text is
    /// the panic's.
    Panicked(String),
    /// The run has taken as many steps as the graph [allows](super::Template::limit), including the
    /// steps of branches.
    TooManySteps(usize),
    /// The [deadline](pirn::scope::deadline()) of the running thread passed.
    TimedOut,
    /// The running thread was [interrupted](pirn::thread::Thread::interrupt).
    Interrupted,
    /// No thread could be started for a branch. The text says why.
    NoThread(String),
    /// The run was to start at a node that the graph does not have.
    UnknownNode,
}

impl<N: fmt::Debug, E: fmt::Display> fmt::Display for StepError<N, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = &self.node;
        match &self.cause {
            Cause::Failed(error) => write!(f, "the step {node:?} failed: {error}"),
            Cause::Panicked(why) => write!(f, "the step {node:?} {why}"),
            Cause::TooManySteps(limit) => write!(
                f,
                "the run has not come to an end within {limit} steps; the next would be {node:?}"
            ),
            Cause::TimedOut => write!(f, "the time was up at the step {node:?}"),
            Cause::Interrupted => write!(f, "interrupted at the step {node:?}"),
            Cause::NoThread(why) => write!(f, "no thread for a branch of {node:?}: {why}"),
            Cause::UnknownNode => write!(f, "the graph has no node {node:?}"),
        }
    }
}

impl<N: fmt::Debug, E: fmt::Debug + fmt::Display> std::error::Error for StepError<N, E> {}
