//! Templates: descriptions of graphs.

use super::{Error, Graph};
use core::fmt;
use core::hash::Hash;
use std::collections::HashMap;
use std::sync::Arc;

/// The most steps of a run, if the template sets no limit.
const STEPS: usize = 1000;

/// A description of a graph: its nodes, the work at each, and the edges between them. Made by
/// [`Graph::template`].
///
/// # Examples
/// ```
/// use pirn_flow::graph::Graph;
///
/// // The nodes can be an enum: then a typing error is one of the compiler.
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
/// enum Node { Halve, Grow }
/// use Node::{Grow, Halve};
///
/// let collatz = Graph::template()
///     .step(Halve, |n: &mut u64| Ok::<_, String>(*n /= 2))
///     .step(Grow, |n| Ok(*n = *n * 3 + 1))
///     .edge_if(Halve, Halve, |n| n % 2 == 0)
///     .edge_if(Halve, Grow, |n| *n != 1) // the first edge whose condition holds
///     .edge(Grow, Halve)
///     .build()?;
/// let mut n = 6;
/// collatz.run(Halve, &mut n)?;
/// assert_eq!(n, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a template is built"]
pub struct Template<N, S, E> {
    pub(super) works: HashMap<N, Work<N, S, E>>,
    /// The edges from each node, in the order in which their conditions are tried.
    pub(super) edges: HashMap<N, Vec<Edge<N, S>>>,
    /// Called before each step, with its node and the state.
    pub(super) before_each: Option<Watch<N, S>>,
    pub(super) limit: usize,
    /// A node that has two steps.
    twice: Option<N>,
}

type Step<S, E> = Box<dyn Fn(&mut S) -> Result<(), E> + Send + Sync>;
type Merge<S> = Box<dyn Fn(&mut S, Vec<S>) + Send + Sync>;
type Watch<N, S> = Box<dyn Fn(&N, &S) + Send + Sync>;
pub(super) type Condition<S> = Box<dyn Fn(&S) -> bool + Send + Sync>;
type Edge<N, S> = (N, Option<Condition<S>>);

/// The work at a node.
pub(super) enum Work<N, S, E> {
    Step(Step<S, E>),
    Fork {
        branches: Vec<N>,
        clone: fn(&S) -> S,
        merge: Merge<S>,
    },
}

impl<N, S, E> Graph<N, S, E>
where
    N: Clone + Eq + Hash + fmt::Debug,
{
    /// Begins the description of a graph.
    pub fn template() -> Template<N, S, E> {
        Template {
            works: HashMap::new(),
            edges: HashMap::new(),
            before_each: None,
            limit: STEPS,
            twice: None,
        }
    }
}

impl<N, S, E> Template<N, S, E>
where
    N: Clone + Eq + Hash + fmt::Debug,
{
    /// Sets the function of a node. It may block, and ask actors.
    ///
    /// # Examples
    /// A step that asks a [pool](pirn_actor::pool::Pool) runs in at most as many runs at once as
    /// the pool has workers:
    /// ```
    /// use pirn_actor::{self as actor, AskError};
    /// use pirn_actor::pool::Pool;
    /// use pirn_flow::graph::Graph;
    ///
    /// let writers = Pool::fixed(2).spawn(|| actor::Function::new(|n: u32| n * n))?;
    /// let graph = Graph::template()
    ///     .step("write", move |n: &mut u32| Ok::<_, AskError>(*n = writers.ask(*n)?))
    ///     .build()?;
    /// let mut n = 7;
    /// graph.run("write", &mut n)?;
    /// assert_eq!(n, 49);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn step(
        self,
        node: N,
        f: impl Fn(&mut S) -> Result<(), E> + Send + Sync + 'static,
    ) -> Template<N, S, E> {
        self.with(node, Work::Step(Box::new(f)))
    }

    /// Makes a node run several branches at once. Each starts at one of `branches`, on a thread of
    /// its own and with a clone of the state, and follows the edges from there until it is over.
    /// When all branches are over, `merge` is called with the state before the fork and the
    /// branches' states, in the order of `branches`.
    ///
    /// The first branch that fails ends the run: the other branches are interrupted and waited for,
    /// `merge` is not called, and the state is as it was before the fork.
    ///
    /// # Examples
    /// ```
    /// use pirn_flow::graph::Graph;
    ///
    /// #[derive(Clone, Default)]
    /// struct Trip { flight: u32, hotel: u32, total: u32 }
    ///
    /// let graph = Graph::template()
    ///     .fork("quotes", ["flight", "hotel"], |trip: &mut Trip, [flight, hotel]| {
    ///         trip.total = flight.flight + hotel.hotel;
    ///     })
    ///     .step("flight", |trip| Ok::<_, String>(trip.flight = 300)) // at the same time as
    ///     .step("hotel", |trip| Ok(trip.hotel = 200)) // this
    ///     .build()?;
    /// let mut trip = Trip::default();
    /// graph.run("quotes", &mut trip)?;
    /// assert_eq!(trip.total, 500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fork<const B: usize>(
        self,
        node: N,
        branches: [N; B],
        merge: impl Fn(&mut S, [S; B]) + Send + Sync + 'static,
    ) -> Template<N, S, E>
    where
        S: Clone,
    {
        let merge = move |state: &mut S, ends: Vec<S>| match ends.try_into() {
            Ok(ends) => merge(state, ends),
            Err(_) => unreachable!("there is an end of each branch"),
        };
        let work = Work::Fork {
            branches: branches.into(),
            clone: S::clone,
            merge: Box::new(merge),
        };
        self.with(node, work)
    }

    fn with(mut self, node: N, work: Work<N, S, E>) -> Template<N, S, E> {
        if self.works.insert(node.clone(), work).is_some() {
            self.twice = Some(node);
        }
        self
    }

    /// Adds an edge from a node to another one, or to itself.
    pub fn edge(mut self, from: N, to: N) -> Template<N, S, E> {
        self.edges.entry(from).or_default().push((to, None));
        self
    }

    /// Adds an edge from a node to another one, or to itself, for runs in which this condition
    /// holds after the step. The conditions of a node's edges are tried in the order of these
    /// calls.
    pub fn edge_if(
        mut self,
        from: N,
        to: N,
        condition: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Template<N, S, E> {
        let edge = (to, Some(Box::new(condition) as Condition<S>));
        self.edges.entry(from).or_default().push(edge);
        self
    }

    /// Limits the steps of one run, including the steps of branches; a fork is one step itself. The
    /// default is 1,000, so a run in an endless loop ends with an error.
    pub fn limit(mut self, steps: usize) -> Template<N, S, E> {
        self.limit = steps;
        self
    }

    /// Sets a function that is called before each step, on the step's thread: to note the progress,
    /// or to save the state, with which a later run may [start](Graph::run) at this node.
    ///
    /// # Examples
    /// ```
    /// use pirn_flow::graph::Graph;
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let graph = Graph::template()
    ///     .step("plan", |n: &mut u32| Ok::<_, String>(*n += 1))
    ///     .step("write", |n| Ok(*n *= 2))
    ///     .edge("plan", "write")
    ///     .before_each(move |node, n| tell.send((*node, *n)).unwrap())
    ///     .build()?;
    /// graph.run("plan", &mut 1)?;
    /// assert_eq!([told.recv()?, told.recv()?], [("plan", 1), ("write", 2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn before_each(mut self, f: impl Fn(&N, &S) + Send + Sync + 'static) -> Template<N, S, E> {
        self.before_each = Some(Box::new(f));
        self
    }

    /// Makes the graph.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn build(self) -> Result<Graph<N, S, E>, Error<N>> {
        if let Some(node) = self.twice {
            return Err(Error::TwoSteps(node));
        }
        let branches = self.works.values().flat_map(|work| match work {
            Work::Step(_) => &[],
            Work::Fork { branches, .. } => &branches[..],
        });
        let targets = self.edges.values().flatten().map(|(to, _)| to);
        let mut named = branches.chain(self.edges.keys()).chain(targets);
        if let Some(node) = named.find(|node| !self.works.contains_key(node)) {
            return Err(Error::UnknownNode(node.clone()));
        }
        for (from, edges) in &self.edges {
            let mut after = edges
                .iter()
                .skip_while(|(_, condition)| condition.is_some());
            if let Some((to, _)) = after.nth(1) {
                let (from, to) = (from.clone(), to.clone());
                return Err(Error::NeverTaken { from, to });
            }
        }
        Ok(Graph(Arc::new(self)))
    }
}

impl<N: fmt::Debug, S, E> fmt::Debug for Template<N, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("nodes", &self.works.keys())
            .finish_non_exhaustive()
    }
}
