//! The studio in a real browser: headless Chromium, driven by its own driver.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alarms;
mod browser;
mod games;
mod learn;
mod play;
#[path = "../common/run_at_work.rs"]
mod run_at_work;
#[path = "../common/trained.rs"]
mod trained;
