//! Callbacks for interrupts are the program's code: they may use the actor whose message is
//! interrupted. And an interrupt never outlives the message that it is for.

use crate::common::{Gate, watched};
use pirn::thread;
use pirn_actor::address::WeakAddress;
use pirn_actor::process::{Inbox, Process, RecvError};
use pirn_actor::supervisor::Supervisor;
use pirn_actor::{self as actor, Builder, Context, Exit, Handler, Ref};
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock, mpsc};

/// Waits until it is interrupted. Its callback then asks about the actor, and sends to it.
struct Listener {
    begun: Gate,
    heard: mpsc::Sender<(bool, usize)>,
    noted: mpsc::Sender<()>,
}
struct Wait;
struct Note;

impl Handler<Wait> for Listener {
    type Reply = ();
    fn handle(&mut self, _: Wait, context: &Context<Self>) {
        let (this, heard, called) = (context.this(), self.heard.clone(), Gate::new());
        let calls = called.clone();
        let _guard = thread::on_interrupt(move || {
            let is_sent = this.try_send(Note).is_ok();
            heard.send((is_sent, this.len())).unwrap();
            calls.open();
        });
        self.begun.open();
        called.wait(); // so it is called by the one who interrupts
    }
}

impl Handler<Note> for Listener {
    type Reply = ();
    fn handle(&mut self, _: Note, _: &Context<Self>) {
        self.noted.send(()).unwrap();
    }
}

#[watched]
fn a_callback_uses_the_actor_that_is_killed() {
    let (begun, (heard, hears), (noted, notes)) = (Gate::new(), mpsc::channel(), mpsc::channel());
    let listener = actor::spawn(Listener {
        begun: begun.clone(),
        heard,
        noted,
    });
    listener.send(Wait).unwrap();
    begun.wait();
    listener.kill();
    assert_eq!(
        hears.recv(),
        Ok((false, 0)),
        "it takes no messages any more"
    );
    assert_eq!(listener.join(), Exit::Killed);
    drop(listener);
    assert!(notes.recv().is_err());
}

#[watched]
fn a_callback_uses_the_actor_that_is_restarted_with_others() {
    let (begun, (heard, hears), (noted, notes)) = (Gate::new(), mpsc::channel(), mpsc::channel());
    let begins = begun.clone();
    let app = Supervisor::one_for_all()
        .child("listener", move || Listener {
            begun: begins.clone(),
            heard: heard.clone(),
            noted: noted.clone(),
        })
        .child("careless", Vec::<u32>::new)
        .start()
        .unwrap();
    let listener = app.get::<Ref<Listener>>("listener").unwrap();
    listener.send(Wait).unwrap();
    begun.wait();
    let careless = app.get::<Ref<Vec<u32>>>("careless").unwrap();
    let fails = |_: &mut Vec<u32>| resume_unwind(Box::new("fails"));
    careless.run_detached(fails).unwrap();
    assert_eq!(hears.recv(), Ok((true, 1)));
    notes.recv().unwrap(); // by the new state
    app.stop();
}

/// A process that registers a callback which sends to the process, and then does this.
fn with_callback(
    begun: Gate,
    then: impl FnOnce(&mut Inbox<u32>, Gate) -> Result<u32, RecvError> + Send + 'static,
) -> (Process<u32, Result<u32, RecvError>>, mpsc::Receiver<bool>) {
    let this = Arc::new(OnceLock::<Process<u32, Result<u32, RecvError>>>::new());
    let (own, (heard, hears)) = (Arc::clone(&this), mpsc::channel());
    let process = actor::process::spawn(move |inbox: &mut Inbox<u32>| {
        let called = Gate::new();
        let calls = called.clone();
        let _guard = thread::on_interrupt(move || {
            heard.send(own.wait().try_send(7).is_ok()).unwrap();
            calls.open();
        });
        begun.open();
        then(inbox, called)
    });
    this.set(process.clone()).unwrap();
    (process, hears)
}

#[watched]
fn a_callback_uses_the_process_that_is_killed() {
    let begun = Gate::new();
    let (process, hears) = with_callback(begun.clone(), |inbox, called| {
        called.wait();
        inbox.recv()
    });
    begun.wait();
    process.kill();
    assert_eq!(hears.recv(), Ok(false));
    assert_eq!(process.into_result(), Ok(Err(RecvError::Interrupted)));
}

#[watched]
fn a_callback_uses_the_process_that_is_killed_while_it_receives() {
    let begun = Gate::new();
    let (process, hears) = with_callback(begun.clone(), |inbox, _| inbox.recv());
    begun.wait();
    process.kill();
    assert_eq!(hears.recv(), Ok(false));
    assert_eq!(process.into_result(), Ok(Err(RecvError::Interrupted)));
}

#[watched]
fn a_callback_uses_the_actor_without_a_mailbox_that_is_killed() {
    let this = Arc::new(OnceLock::<WeakAddress<()>>::new());
    let (own, begun) = (Arc::clone(&this), Gate::new());
    let (begins, (heard, hears)) = (begun.clone(), mpsc::channel());
    let each = actor::flow::each(move |()| {
        let (own, heard, called) = (Arc::clone(&own), heard.clone(), Gate::new());
        let calls = called.clone();
        let _guard = thread::on_interrupt(move || {
            let is_sent = own.wait().upgrade().unwrap().try_send(()).is_ok();
            heard.send(is_sent).unwrap();
            calls.open();
        });
        begins.open();
        called.wait();
    });
    this.set(each.downgrade()).unwrap();
    each.send(()).unwrap();
    begun.wait();
    each.kill();
    assert_eq!(hears.recv(), Ok(false));
    assert_eq!(each.join(), Exit::Killed);
}

#[watched]
fn a_kill_that_comes_late_does_not_interrupt_what_comes_after_the_message() {
    for _ in 0..300 {
        // The thread of an actor calls those who watch it.
        let (tell, told) = mpsc::channel();
        let usual = Builder::new().consumer(|()| ());
        usual.on_exit(move |_| tell.send(thread::is_interrupted()).unwrap());
        let killer = {
            let usual = usual.clone();
            thread::spawn(move || usual.kill())
        };
        while usual.send(()).is_ok() {}
        killer.join().unwrap();
        assert_eq!(told.recv(), Ok(false));
    }
}
