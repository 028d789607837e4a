//! The command line of the interpreter that knows the rules of a game from outside: roles that need rules are started with it.

use std::sync::OnceLock;

use service::role::Role;

static HOST: OnceLock<Vec<String>> = OnceLock::new();

/// Names the command line, once for the process: a program and its first arguments. A role's arguments follow.
pub fn set(command: Vec<String>) {
    // Another one would start the same rules.
    let _ = HOST.set(command);
}

/// Returns the program and its first arguments. `None` in a process of another program.
pub fn command() -> Option<(&'static String, &'static [String])> {
    HOST.get()?.split_first()
}

/// True if a role needs the rules of its game.
pub fn needs_rules(role: Role) -> bool {
    matches!(role, Role::Actor | Role::Rating | Role::Analysis | Role::Studio)
}
