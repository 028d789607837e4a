//! The studio in a real browser: headless Chromium, driven by its own driver.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod browser;
mod games;
mod play;
