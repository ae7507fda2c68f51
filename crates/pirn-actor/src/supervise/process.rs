//! A process that is a child: its function runs again, from the beginning, at each restart.

use super::events::Reporter;
use super::lent::Home;
use super::node::{Node, no_thread, not_over};
use super::tree::Slot;
use crate::actor::{Builder, Change, Overseer};
use crate::error::Failure;
use crate::mailbox::Phase;
use crate::poison::locked;
use crate::process::{Inbox, Process};
use pirn::thread::Panic;
use std::sync::Arc;

type Function<M> = Box<dyn FnMut(&mut Inbox<M>) + Send>;

pub(super) struct Stem<M: Send + 'static> {
    builder: Builder,
    function: Home<Function<M>>,
    /// The process, for those who look it up. It keeps the process open.
    process: Slot<Process<M>>,
}

impl<M: Send + 'static> Stem<M> {
    pub(super) fn new(
        builder: Builder,
        function: impl FnMut(&mut Inbox<M>) + Send + 'static,
    ) -> Stem<M> {
        Stem {
            builder,
            function: Home::new(Box::new(function)),
            process: Slot::default(),
        }
    }

    pub(super) fn slot(&self) -> Slot<Process<M>> {
        Arc::clone(&self.process)
    }

    fn with(&self, f: impl FnOnce(&Process<M>)) {
        let process = locked(&self.process).clone();
        if let Some(process) = process {
            f(&process);
        }
    }
}

impl<M: Send + 'static> Node for Stem<M> {
    fn begin(&mut self, name: &Arc<str>, reporter: Reporter) -> Result<(), Failure> {
        // It comes home with the process's end.
        let mut function = self.function.lend().ok_or_else(not_over)?;
        let overseer = reporter.overseer();
        let body = move |inbox: &mut Inbox<M>| live(inbox, function.get(), &overseer);
        let builder = self.builder.clone().name(Arc::clone(name));
        let process = builder.process(body).map_err(no_thread)?;
        process.on_exit(move |exit| reporter.ended(exit.clone()));
        let before = locked(&self.process).replace(process);
        drop(before);
        Ok(())
    }

    fn hold(&self) {
        self.with(|process| process.desk().hold());
    }

    fn go_on(&self) {
        self.with(|process| process.desk().go_on());
    }

    fn end(&self, phase: Phase) {
        self.with(|process| process.desk().end(phase));
    }
}

/// The life of the process: the function, again and again, with pauses between.
fn live<M>(inbox: &mut Inbox<M>, function: &mut Function<M>, overseer: &Overseer) {
    loop {
        (overseer.tell)(Change::Ready);
        let outcome = Panic::catch(|| function(inbox));
        let pauses = outcome.is_err() && overseer.holds || inbox.is_to_pause();
        if !pauses || !inbox.pause() {
            return outcome.unwrap_or_else(|panic| panic.resume());
        }
        let failure = outcome.err().map(|panic| Failure::from(&panic));
        (overseer.tell)(Change::Held(failure));
        if !inbox.wait_for_release() {
            return;
        }
    }
}
