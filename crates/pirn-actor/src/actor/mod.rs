//! An actor of the usual form: a state, and a handler that is called for each message. It has a
//! thread only while it has work.

mod address;
mod builder;
mod cell;
mod handler;
mod overtime;
mod passing;
mod recipe;
mod reference;
mod runner;
mod sending;
mod weak;

pub use address::{Address, Ask, Tell};
pub use builder::{Builder, consumer, function, spawn};
pub use handler::{Context, Function, Handler};
pub use recipe::{Hooks, IntoRecipe, Restarts};
pub use reference::{Ref, WeakRef};
pub use weak::{Recipient, Target, WeakAddress};

pub(crate) use cell::{
    ActorCell, Change, Item, OnUndelivered, Options, RETRY, Threads, tell_undelivered,
};
pub(crate) use passing::{Onward, Passed};
pub(crate) use recipe::Recipe;
pub(crate) use reference::{reference, sends};
pub(crate) use runner::{exit, undelivered};
pub(crate) use sending::{Asked, Message, Put, Receive, Told};
pub(crate) use weak::Sends;
