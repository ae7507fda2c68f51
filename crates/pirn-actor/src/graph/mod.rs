//! Graphs of steps: which step comes after which, and which ones run at once.
//!
//! ```text
//!   plan --> research --> write --> review --> over
//!            |      ^       ^          |
//!            +-> web -->+   +----------+ while the draft is too short
//!            +-> books ->+
//! ```
//!
//! A run has one state, which it takes from step to step. A fork gives each of its branches a clone
//! of the state and a thread of a scope, and merges the clones when all branches are over. So a
//! guard that waits for others is the end of a fork, and it cannot wait for a branch that never
//! comes.
//!
//! Rejected: several edges that are followed at once, and steps that wait for several edges. Then
//! conditions elsewhere decide how long a step waits, and a wrong graph hangs in place of failing.

mod error;
mod run;
mod template;

pub use error::{GraphError, StepError};
pub use template::Template;

use core::fmt;
use run::Node;
use std::sync::Arc;

/// A graph of steps over a state: what an agent, a workflow or a long request does, and in which
/// order.
///
/// Each step is a function of the state, and may block. *Nodes* name the steps: values of any type
/// that can be compared. After a step the run takes the first of the node's edges whose condition
/// holds; if there is none, it is over. A [fork](Template::fork) has several branches run at once.
///
/// A graph is shared by any number of runs at the same time. It has no threads of its own: steps
/// run on the caller's, and branches on virtual threads of a [scope](pirn::scope::open()).
///
/// # Examples
/// ```
/// use pirn_actor::{Graph, StepError};
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
/// assert_eq!(error, StepError::Failed { node: "write", error: "nothing is known" });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Graph<N, S, E>(Arc<Inner<N, S, E>>);

/// Is told the node of a step that is about to begin, and the state.
type Watch<N, S> = Box<dyn Fn(&N, &S) + Send + Sync>;

struct Inner<N, S, E> {
    nodes: Vec<Node<N, S, E>>,
    /// The most steps of one run.
    limit: usize,
    before_each: Option<Watch<N, S>>,
}

impl<N, S, E> Clone for Graph<N, S, E> {
    fn clone(&self) -> Graph<N, S, E> {
        Graph(Arc::clone(&self.0))
    }
}

impl<N: fmt::Debug, S, E> fmt::Debug for Graph<N, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<&N> = self.0.nodes.iter().map(|node| &node.name).collect();
        f.debug_tuple("Graph").field(&nodes).finish()
    }
}
