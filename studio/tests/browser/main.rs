//! The studio in a real browser: headless Chromium, driven by its own driver.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod accessible;
mod alarms;
mod browser;
mod explore;
mod games;
mod learn;
mod login;
mod play;
mod replay;
#[path = "../common/run_at_work.rs"]
mod run_at_work;
mod settings;
mod still;
#[path = "../http/stored.rs"]
mod stored;
#[path = "../common/trained.rs"]
mod trained;
