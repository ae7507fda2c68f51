//! Benchmark peer: actors of actix, in a `System` as it comes: all of them on one thread, where the
//! senders are tasks beside them. `do_send` is how actix sends what is not answered; it ignores the
//! bound of a mailbox, which is 16 messages.

use actix::dev::{MessageResponse, OneshotSender};
use actix::{Addr, Context, Handler, Message, SystemRunner};
use anyhow::Result;
use peer_protocol::actors::{self, Actor, Answer, System, now};
use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use tokio::sync::oneshot;

fn main() -> ExitCode {
    peer_protocol::run("actix", env!("MEASURED"), actors::find::<Actix>)
}

struct Actix;

/// An actor of the workloads as one of actix's.
struct Shell<A> {
    actor: A,
    _alive: Alive,
}

/// Nothing in it is pinned; actix's mailboxes ask for it.
impl<A> Unpin for Shell<A> {}

/// What actors hold as long as they live: an actor ends when its addresses have been dropped, and
/// the last one drops the sender.
type Alive = Rc<oneshot::Sender<()>>;

thread_local! {
    /// Shared by the actors that have been created since all had ended.
    static ALIVE: RefCell<Option<(Alive, oneshot::Receiver<()>)>> = const { RefCell::new(None) };
}

fn alive() -> Alive {
    let new = || {
        let (alive, gone) = oneshot::channel();
        (Rc::new(alive), gone)
    };
    ALIVE.with_borrow_mut(|alive| Rc::clone(&alive.get_or_insert_with(new).0))
}

#[derive(Message)]
#[rtype(result = "()")]
struct Tell<M>(M);

#[derive(Message)]
#[rtype(result = "u64")]
struct Ask<Q>(Q);

impl<A: Actor<Actix>> actix::Actor for Shell<A> {
    type Context = Context<Self>;
}

impl<A: Actor<Actix>> Handler<Tell<A::Tell>> for Shell<A> {
    type Result = ();

    fn handle(&mut self, Tell(message): Tell<A::Tell>, _: &mut Context<Self>) {
        now(self.actor.told(message));
    }
}

/// An answer as actix wants it: at once, or by a task.
struct Response(Answer);

impl<A: actix::Actor, Q: 'static> MessageResponse<A, Ask<Q>> for Response {
    fn handle(self, _: &mut A::Context, reply: Option<OneshotSender<u64>>) {
        // If the asker does not wait for the answer any more it needs none.
        let send = |number| {
            let _ = reply.map(|reply| reply.send(number));
        };
        match self.0 {
            Answer::Now(number) => send(number),
            Answer::Later(number) => drop(actix::spawn(async { send(number.await) })),
        }
    }
}

impl<A: Actor<Actix>> Handler<Ask<A::Ask>> for Shell<A> {
    type Result = Response;

    fn handle(&mut self, Ask(question): Ask<A::Ask>, _: &mut Context<Self>) -> Response {
        Response(self.actor.asked(question))
    }
}

impl System for Actix {
    type Runtime = SystemRunner;
    type Ref<A: Actor<Self>> = Addr<Shell<A>>;
    type Life = ();
    type End<A: Actor<Self>> = ();

    fn start() -> Result<SystemRunner> {
        Ok(actix::System::new())
    }

    fn run<T: Send + 'static>(
        system: &SystemRunner,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        system.block_on(work)
    }

    fn task(
        work: impl Future<Output = Result<()>> + Send + 'static,
    ) -> impl Future<Output = Result<()>> + Send {
        let task = actix::spawn(work);
        async move { task.await? }
    }

    async fn spawn<A: Actor<Self>>(actor: A) -> Result<(Addr<Shell<A>>, ())> {
        let shell = Shell {
            actor,
            _alive: alive(),
        };
        Ok((actix::Actor::start(shell), ()))
    }

    async fn tell<A: Actor<Self>>(actor: &Addr<Shell<A>>, message: A::Tell) -> Result<()> {
        actor.do_send(Tell(message));
        Ok(())
    }

    async fn ask<A: Actor<Self>>(actor: &Addr<Shell<A>>, question: A::Ask) -> Result<u64> {
        Ok(actor.send(Ask(question)).await?)
    }

    async fn ask_later<A: Actor<Self>>(
        actor: &Addr<Shell<A>>,
        question: A::Ask,
    ) -> Result<impl Future<Output = Result<u64>> + Send + 'static> {
        let answer = actor.send(Ask(question));
        Ok(async { Ok(answer.await?) })
    }

    async fn close<A: Actor<Self>>(_: Addr<Shell<A>>, (): ()) -> Result<()> {
        Ok(())
    }

    async fn ended<A: Actor<Self>>((): ()) -> Result<()> {
        Ok(())
    }

    async fn all_ended() {
        let gone = ALIVE.take().map(|(_, gone)| gone);
        if let Some(gone) = gone {
            // Nothing is ever sent.
            let _ = gone.await;
        }
    }
}
