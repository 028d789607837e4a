//! [`Failure`]: a process that ends and comes back.

use std::str::FromStr;

use service::role::Role;

/// A process of a role ends at a time and runs again after another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// Role of the process. The first failure of a role hits its first process, the second one the second, and so on.
    pub role: Role,
    /// Time of the failure, in seconds since the start.
    pub at: f64,
    /// Seconds until the process runs again.
    pub seconds: f64,
}

/// Roles that a simulation has.
pub const ROLES: [Role; 4] = [
    Role::Actor,
    Role::InferenceServer,
    Role::ReplayStore,
    Role::Learner,
];

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (role, times) = text.split_once('@')?;
            let (at, seconds) = times.split_once('+')?;
            let seconds_of = |text: &str| {
                let seconds: f64 = text.parse().ok()?;
                (0.0..=1e6).contains(&seconds).then_some(seconds)
            };
            Some(Self {
                role: ROLES.into_iter().find(|known| known.name() == role)?,
                at: seconds_of(at)?,
                seconds: seconds_of(seconds)?,
            })
        };
        parsed().ok_or_else(|| {
            let names: Vec<&str> = ROLES.iter().map(|role| role.name()).collect();
            format!(
                "a failure is ROLE@AT+SECONDS, e.g. inference-server@10+5; roles are {}",
                names.join(", ")
            )
        })
    }
}
