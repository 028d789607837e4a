//! `minuet doctor`: looks at everything that a run needs, and at the state of a run.
//!
//! | module | contents |
//! |---|---|
//! | [`files`] | the run's files, read as a start reads them, and their repair |
//! | [`machine`] | processor, cores, memory, GPU, clock, ports, programs, ONNX Runtime |
//! | [`storage`] | the disk of the run's folder, and the model store |
//! | [`run`] | the run's state and its alarms |

mod files;
mod machine;
mod run;
mod storage;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use config::RunConfig;
use launcher::{
    alarms::{Alarm, Severity},
    run::folder::CONFIG,
};
use serde::Serialize;

/// Arguments of `minuet doctor`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet doctor
      looks at this machine before a first run
  minuet doctor --run runs/chess
      also looks at the run: its settings, its disk, its processes while it is at work, and its alarms
  minuet doctor --run runs/chess --repair
      points damaged labels at sound checkpoints and sets damaged leases, identities and checkpoints aside, of a stopped run
  minuet doctor --json
      prints one object: {\"ok\":…,\"checks\":[{\"name\":…,\"state\":\"ok\",\"text\":…,\"fix\":…}],\"alarms\":[…]}

The exit code is 0 if nothing fails, else 1.")]
pub struct Arguments {
    /// Folder of a run.
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Repair what can be derived from other files, and name each thing done. The run must be stopped.
    #[arg(long, requires = "run")]
    repair: bool,
    /// Folder of the roles' programs. [default: that of this program]
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Error: a check has failed, or the run has a critical alarm.
#[derive(Debug, thiserror::Error)]
#[error("{0} of the lines above need to be fixed")]
struct Failed(usize);

/// All results.
#[derive(Serialize)]
struct Findings {
    /// True if nothing fails.
    ok: bool,
    checks: Vec<Check>,
    alarms: Vec<Alarm>,
}

/// Runs the command.
///
/// # Errors
/// Something fails.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let report = examine(&arguments)?;
    if arguments.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        report.checks.iter().for_each(|check| print!("{}", check.lines()));
        for alarm in &report.alarms {
            print!("{}", Check::of_alarm(alarm).lines());
        }
    }
    match report.failures() {
        0 => Ok(()),
        failures => Err(Failed(failures).into()),
    }
}

fn examine(arguments: &Arguments) -> anyhow::Result<Findings> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let folder = arguments.run.as_deref().unwrap_or(Path::new("."));
    let (config, mut checks) = match &arguments.run {
        Some(run) => settings(run),
        None => (RunConfig::default(), Vec::new()),
    };
    let is_readable = checks.iter().all(|check| check.state == CheckState::Ok);
    checks.extend(machine::checks(&config, arguments.run.as_deref()));
    checks.extend(machine::programs(&config, arguments.binaries.as_deref())?);
    checks.extend(runtime.block_on(storage::checks(&config, folder, arguments.run.is_some())));
    let mut alarms = Vec::new();
    if let Some(run) = arguments.run.as_ref().filter(|_| is_readable) {
        if arguments.repair {
            let done = runtime.block_on(files::repair(run, &config))?;
            checks.extend(done.into_iter().map(|done| Check::ok("repair", done)));
        }
        let (state, raised) = runtime.block_on(run::state(run, &config));
        checks.extend(state);
        alarms = raised;
    }
    let mut report = Findings {
        ok: true,
        checks,
        alarms,
    };
    report.ok = report.failures() == 0;
    Ok(report)
}

/// Reads the settings of a run. Those of a run that cannot be read are the defaults.
fn settings(run: &Path) -> (RunConfig, Vec<Check>) {
    let file = run.join(CONFIG);
    let loaded = config::load_with(Some(&file), &[]).and_then(|config| {
        launcher::check_game(&config.game)?;
        Ok(config)
    });
    match loaded {
        Ok(config) => {
            let text = format!("{} can be used: a run of {}", file.display(), config.game.name);
            (config, vec![Check::ok("settings", text)])
        }
        Err(error) => {
            let text = format!("{}: {}", file.display(), service::chain(&error));
            let fix = "name the folder of a run, and correct the key that the message names";
            (RunConfig::default(), vec![Check::fail("settings", text, fix)])
        }
    }
}

impl Findings {
    fn failures(&self) -> usize {
        let checks = self.checks.iter().filter(|check| check.state == CheckState::Fail);
        let alarms = self.alarms.iter().map(Check::of_alarm);
        checks.count() + alarms.filter(|check| check.state == CheckState::Fail).count()
    }
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CheckState {
    /// Nothing to do.
    Ok,
    /// Runs work, but slower or with less safety.
    Warn,
    /// A run would not work.
    Fail,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Check {
    /// Name of the thing.
    pub name: String,
    /// Result.
    pub state: CheckState,
    /// Finding.
    pub text: String,
    /// Remedy: an action of a person; empty if all is well.
    pub fix: String,
}

impl Check {
    /// A finding that needs nothing.
    pub fn ok(name: &str, text: impl Into<String>) -> Self {
        Self::new(name, CheckState::Ok, text, "")
    }

    /// A finding that makes runs slower or less safe.
    pub fn warn(name: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(name, CheckState::Warn, text, fix)
    }

    /// A finding that makes runs slower or less safe if `is_poor`.
    pub fn warn_if(is_poor: bool, name: &str, text: impl Into<String>, fix: &str) -> Self {
        match is_poor {
            true => Self::warn(name, text, fix),
            false => Self::ok(name, text),
        }
    }

    /// A finding with which a run would not work.
    pub fn fail(name: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(name, CheckState::Fail, text, fix)
    }

    fn new(name: &str, state: CheckState, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state,
            text: text.into(),
            fix: fix.into(),
        }
    }

    /// An alarm as a line.
    pub fn of_alarm(alarm: &Alarm) -> Self {
        let state = match alarm.severity {
            Severity::Warning => CheckState::Warn,
            Severity::Critical => CheckState::Fail,
        };
        let setting = alarm.setting.map(|setting| format!("; perhaps --set {setting}"));
        let fix = format!("{}{}", alarm.fix, setting.unwrap_or_default());
        Self::new(alarm.name, state, alarm.text.as_str(), fix)
    }

    /// Formats the check for people: a line, and one with the remedy.
    pub fn lines(&self) -> String {
        let state = match self.state {
            CheckState::Ok => "ok",
            CheckState::Warn => "warn",
            CheckState::Fail => "FAIL",
        };
        let fix = match self.fix.as_str() {
            "" => String::new(),
            fix => format!("{:>20}{fix}\n", "→ "),
        };
        service::plain_lines(&format!("{state:<5} {:<12} {}\n{fix}", self.name, self.text))
    }
}
