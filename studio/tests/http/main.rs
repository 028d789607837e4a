//! The studio asked over HTTP: security, the end of the process, and the pages.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alarms;
mod beyond;
mod compare;
mod explore;
mod faults;
mod learn;
mod pages;
mod play;
#[path = "../common/run_at_work.rs"]
mod run_at_work;
mod security;
mod settings;
mod site;
mod stored;
#[path = "../common/trained.rs"]
mod trained;
