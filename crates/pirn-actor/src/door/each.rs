//! An actor with a thread for each message.
//!
//! Its threads work for no actor: what one of them waits for says nothing of the others, so there
//! are no edges for the search for deadlocks.

use super::job::Job;
use super::{Door, Entered, Over, Way};
use crate::actor::{Address, Builder, Ending, Mortal, Passed, Patience, RETRY, Receive, Threads};
use crate::error::{SendError, discard};
use crate::identity::Identity;
use crate::mailbox::Phase;
use crate::poison::locked;
use crate::reply::{self, Reply};
use crate::snapshot;
use crate::time::{self, Limit};
use core::time::Duration;
use std::sync::{Arc, Mutex, Weak};

/// Makes an actor that calls `f` for each message on a new virtual thread, and answers with what it
/// returns. Messages are handled at the same time, in no order, up to 1,024 of them:
/// [`Builder::each`] has other limits.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let length = actor::each(|url: String| url.len()); // gets the page, say
/// let urls = ["https://a.example", "https://b.example/page"].map(String::from);
/// let replies = urls.map(|url| length.ask_later(url).unwrap()); // both at once
/// assert_eq!(replies.map(|reply| reply.recv().unwrap()), [17, 22]);
/// ```
pub fn each<M, R, F>(f: F) -> Address<M, R>
where
    M: Send + 'static,
    R: Send + 'static,
    F: Fn(M) -> R + Send + Sync + 'static,
{
    Builder::new().each(f)
}

impl Builder {
    /// Makes an actor that calls `f` for each message on a new thread, and answers with what it
    /// returns. Messages are handled at the same time, in no order.
    ///
    /// The builder's capacity is the number of messages that are handled at the same time, and its
    /// overflow says what is done with others: by default their senders wait. No message waits
    /// without its sender, so both [`DropOld`](crate::Overflow::DropOld) and
    /// [`DropNew`](crate::Overflow::DropNew) drop the new one. Urgent messages are handled at once.
    ///
    /// A panic concerns its message only: an asker gets [`AskError::Failed`](crate::AskError), and
    /// the actor goes on. So [`restarts`](Builder::restarts) have no meaning here.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Builder;
    ///
    /// let ten_at_once = Builder::new().name("fetch").capacity(10).each(|url: String| url.len());
    /// for page in 0..100 {
    ///     ten_at_once.send(format!("https://a.example/{page}")).unwrap(); // waits if ten are at it
    /// }
    /// ten_at_once.close();
    /// ten_at_once.join(); // all are over
    /// ```
    pub fn each<M, R, F>(&self, f: F) -> Address<M, R>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: Fn(M) -> R + Send + Sync + 'static,
    {
        let (identity, bounds, options) = self.plan();
        let each = Arc::new_cyclic(|this| Each {
            door: Door::new((identity, bounds)),
            f: Mutex::new(Some(Arc::new(f))),
            threads: options.threads(),
            this: Weak::clone(this),
        });
        let seen: Arc<dyn snapshot::Seen> = Arc::clone(&each) as Arc<_>;
        snapshot::enter(&each.door.identity, Arc::downgrade(&seen));
        Address::new(each)
    }
}

struct Each<F> {
    door: Door,
    /// Gone when the actor has ended.
    f: Mutex<Option<Arc<F>>>,
    threads: Threads,
    this: Weak<Each<F>>,
}

impl<F: Send + Sync + 'static> Each<F> {
    /// Lets a message in, and starts its thread.
    fn put<M, R>(&self, job: Job<M, R>, way: Way) -> Result<(), SendError<M>>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: Fn(M) -> R,
    {
        let (entered, over) = self.door.enter(way);
        self.publish(over);
        match entered {
            Ok(Entered::Inside) => {
                let each = self.this.upgrade().expect("who borrows it is in the count");
                start(each, Arc::new(Mutex::new(Some(job))), RETRY.0);
                Ok(())
            }
            Ok(Entered::Dropped) => Ok(()),
            Err(refusal) => Err(job.refused(refusal, &self.door.identity)),
        }
    }

    fn run<M, R>(&self, job: Job<M, R>)
    where
        F: Fn(M) -> R,
    {
        let number = self.door.begin();
        let f = locked(&self.f).clone();
        let f = f.expect("it is there as long as a thread is inside");
        // The asker knows of a failure, and the hook has reported it.
        let run = || job.run(|message| f(message));
        let _ = self.door.identity.while_shown(run);
        discard(f);
        let over = self.door.leave(number, None);
        self.publish(over);
    }

    fn publish(&self, over: Over) {
        if let Some(exit) = over {
            let f = locked(&self.f).take();
            discard(f);
            self.door.publish(&exit);
        }
    }
}

/// Starts the thread of a message. If none can be had, another attempt is made soon.
fn start<M, R, F>(each: Arc<Each<F>>, job: Arc<Mutex<Option<Job<M, R>>>>, retry: Duration)
where
    M: Send + 'static,
    R: Send + 'static,
    F: Fn(M) -> R + Send + Sync + 'static,
{
    let (again, kept) = (Arc::clone(&each), Arc::clone(&job));
    let body = move || {
        let job = locked(&job).take();
        each.run(job.expect("one thread is started for it"));
    };
    if again.threads.start(body).is_err() {
        let later = move || start(again, kept, (retry * 2).min(RETRY.1));
        time::timers::after(retry, later);
    }
}

impl<F: Send + Sync> Mortal for Each<F> {
    fn ending(&self) -> &Ending {
        &self.door.ending
    }
}

impl<M, R, F> Receive<M, R> for Each<F>
where
    M: Send + 'static,
    R: Send + 'static,
    F: Fn(M) -> R + Send + Sync + 'static,
{
    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        self.put(Job::told(message), Way::Usual(patience))
    }
    fn tell_first(&self, message: M) -> Result<(), SendError<M>> {
        self.put(Job::told(message), Way::Over)
    }
    fn request(
        &self,
        message: M,
        limit: Limit,
        patience: Patience,
    ) -> Result<Reply<R>, SendError<M>> {
        let (to, reply) = reply::pair_without_edge();
        self.put(Job::asked(message, to, limit), Way::Usual(patience))?;
        Ok(reply)
    }
    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>> {
        let way = match patience {
            Patience::Urgent => Way::Over,
            patience => Way::Usual(patience),
        };
        self.put(Job::passed(passed), way)
    }
    fn retain(&self) {
        self.door.retain();
    }
    fn release(&self) {
        if self.door.release() {
            self.publish(self.door.end(Phase::Closing));
        }
    }
    fn end(&self, phase: Phase) {
        self.publish(self.door.end(phase));
    }
    fn identity(&self) -> &Identity {
        &self.door.identity
    }
    fn len(&self) -> usize {
        0
    }
}

impl<F: Send + Sync> snapshot::Seen for Each<F> {
    fn identity(&self) -> &Identity {
        &self.door.identity
    }

    fn kind(&self) -> &'static str {
        "each"
    }

    fn load(&self) -> snapshot::Load {
        self.door.load()
    }
}
