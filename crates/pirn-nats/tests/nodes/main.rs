//! What nodes do, as their users see it, with servers that the tests start.

mod bank;
mod chat;
mod children;
mod common;
mod forwarder;
mod server;

mod asks;
mod groups;
mod losses;
mod names;
mod queues;
