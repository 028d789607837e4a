//! Tests of the deployment files against their schemas and against the programs that they start.
//!
//! The tests need no cluster, no registry and no container engine. A test whose tool (kubectl, a Python package) is missing
//! prints the tool's name and is skipped.

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
mod policies;
mod programs;
mod schemas;
mod secrets;
mod services;
mod variables;
