//! The deployment files against their schemas and against the programs they start.
//!
//! What is checked here needs no cluster, no registry and no container engine. Tools that may be missing on a
//! developer's machine (kubectl, Python packages) are named when a check is skipped for want of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod alerts;
mod autoscaling;
mod commands;
mod compose;
mod custom_resources;
mod disks;
mod files;
mod images;
mod kubernetes;
mod network_policies;
mod programs;
mod services;
mod variables;
