//! How a graph is described.

use super::{Error, Graph};
use core::fmt;
use core::hash::Hash;
use std::collections::HashMap;
use std::sync::Arc;

/// The most steps of a run, if the template does not say.
const STEPS: usize = 1000;

/// A description of a graph: which nodes there are, what is done at each, and where a run goes from
/// there. Made by [`Graph::template`].
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
    /// Where to go next, in the order in which the conditions are tried.
    pub(super) edges: HashMap<N, Vec<Edge<N, S>>>,
    /// Is told the node of a step that is about to begin, and the state.
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

/// What is done at a node.
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
    /// Has this function called at a node. It may block, and ask actors.
    ///
    /// # Examples
    /// A step that asks a [pool](pirn_actor::pool::Pool) is done in no more runs at once than the
    /// pool has workers:
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

    /// Has several branches run at once at a node: one from each of `branches`, on a thread of its
    /// own and with a clone of the state, along the edges there until it is over. When all are,
    /// `merge` is called with the state as it was and the branches' states, in their order.
    ///
    /// The first branch that fails ends the run: the others are interrupted and waited for, nothing
    /// is merged, and the state is as it was before the fork.
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

    /// Leads from a node to another one, or to itself.
    pub fn edge(mut self, from: N, to: N) -> Template<N, S, E> {
        self.edges.entry(from).or_default().push((to, None));
        self
    }

    /// Leads from a node to another one, or to itself, if this condition holds after the step. The
    /// edges of a node are tried in the order in which they are given here.
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

    /// Limits the steps of one run, with the steps in branches; a fork is one step itself. Without
    /// this there may be 1,000: a run that goes round for ever is an error.
    pub fn limit(mut self, steps: usize) -> Template<N, S, E> {
        self.limit = steps;
        self
    }

    /// Has a function called before each step, on the thread that is about to take it: to note the
    /// progress, or to keep the state, with which a later run may [start](Graph::run) at this node.
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
