//! The studio asked over HTTP: security, the end of the process, and the pages.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod pages;
mod play;
mod security;
mod site;
mod stored;
