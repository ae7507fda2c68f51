//! What can be wrong with a graph, and with a run through it. Each error names the node.

use crate::error::Failure;
use core::fmt;
use std::error::Error;

/// What is wrong with a [`Template`](super::Template).
///
/// # Examples
/// ```
/// use pirn_actor::{Graph, GraphError};
///
/// let step = |_: &mut ()| Ok::<_, String>(());
/// let unknown = Graph::template().step("plan", step).edge("plan", "write").build();
/// assert_eq!(unknown.unwrap_err(), GraphError::UnknownNode("write"));
/// let twice = Graph::template().step("plan", step).step("plan", step).build();
/// assert_eq!(twice.unwrap_err(), GraphError::TwoSteps("plan"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError<N> {
    /// An edge or a fork names a node that has neither a step nor a fork.
    UnknownNode(N),
    /// A node has two steps or forks.
    TwoSteps(N),
    /// An edge would never be taken: one before it, from the same node, has no condition.
    NeverTaken {
        /// The node that the edge comes from.
        from: N,
        /// The node that it leads to.
        to: N,
    },
}

impl<N: fmt::Debug> fmt::Display for GraphError<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::UnknownNode(node) => write!(f, "the node {node:?} has no step"),
            GraphError::TwoSteps(node) => write!(f, "the node {node:?} has two steps"),
            GraphError::NeverTaken { from, to } => write!(
                f,
                "the edge from {from:?} to {to:?} is never taken: one before it has no condition"
            ),
        }
    }
}

impl<N: fmt::Debug> Error for GraphError<N> {}

/// Why a run through a [`Graph`](super::Graph) has failed, and at which node. Nodes of branches
/// are named as others are.
///
/// # Examples
/// ```
/// use pirn_actor::{Graph, StepError};
///
/// let graph = Graph::template()
///     .step("count", |n: &mut u32| n.checked_sub(1).map(|less| *n = less).ok_or("below 0"))
///     .edge("count", "count")
///     .limit(10)
///     .build()?;
/// let error = graph.run("count", &mut 3).unwrap_err();
/// assert_eq!(error.to_string(), r#"the step "count" failed: below 0"#);
/// let error = graph.run("count", &mut 100).unwrap_err();
/// assert_eq!(error, StepError::TooManySteps { node: "count", limit: 10 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepError<N, E> {
    /// The step returned an error.
    Failed {
        /// The node.
        node: N,
        /// The step's error.
        error: E,
    },
    /// The step panicked; or a condition of the node's edges did, or the merge of its fork.
    Panicked {
        /// The node.
        node: N,
        /// What the panic says.
        why: Failure,
    },
    /// The run has had as many steps as the graph [allows](super::Template::limit), those of
    /// branches included.
    TooManySteps {
        /// The node whose step has not begun.
        node: N,
        /// The most steps of a run.
        limit: usize,
    },
    /// The deadline passed: of the asker, if the run is in an actor's handler, or of the
    /// [calls and scopes](pirn::scope::deadline) around it.
    TimedOut {
        /// The node whose step has not begun, or the fork whose branches are not over.
        node: N,
    },
    /// The running thread was [interrupted](pirn::thread::Thread::interrupt).
    Interrupted {
        /// The node whose step has not begun, or the fork whose branches are not over.
        node: N,
    },
    /// A thread for a branch cannot be had.
    NoThread {
        /// The fork's node.
        node: N,
        /// Why.
        why: Failure,
    },
    /// The run was to start at a node that the graph does not have.
    UnknownNode {
        /// The node.
        node: N,
    },
}

impl<N, E> StepError<N, E> {
    /// Returns the node at which the run has failed.
    pub fn node(&self) -> &N {
        match self {
            StepError::Failed { node, .. }
            | StepError::Panicked { node, .. }
            | StepError::TooManySteps { node, .. }
            | StepError::TimedOut { node }
            | StepError::Interrupted { node }
            | StepError::NoThread { node, .. }
            | StepError::UnknownNode { node } => node,
        }
    }
}

impl<N: fmt::Debug, E: fmt::Display> fmt::Display for StepError<N, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepError::Failed { node, error } => write!(f, "the step {node:?} failed: {error}"),
            StepError::Panicked { node, why } => write!(f, "the step {node:?} {why}"),
            StepError::TooManySteps { node, limit } => write!(
                f,
                "the run has not come to an end within {limit} steps; the next would be {node:?}"
            ),
            StepError::TimedOut { node } => write!(f, "the time was up at the step {node:?}"),
            StepError::Interrupted { node } => write!(f, "interrupted at the step {node:?}"),
            StepError::NoThread { node, why } => {
                write!(f, "no thread for a branch of {node:?}: {why}")
            }
            StepError::UnknownNode { node } => write!(f, "the graph has no node {node:?}"),
        }
    }
}

impl<N: fmt::Debug, E: fmt::Debug + fmt::Display> Error for StepError<N, E> {}
