//! Command-line arguments of every role.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};

use config::Override;

/// Arguments of a role's binary.
#[derive(Clone, Debug, Parser)]
#[command(version = crate::release::version())]
pub struct Arguments {
    /// Configuration file of the run. Without a file, every key has its default.
    #[arg(long, value_name = "FILE", env = "MINUET_CONFIG")]
    pub config: Option<PathBuf>,
    /// Set one key, e.g. --set actor.threads=4; it overrides the file. May be repeated; the last value of a key wins.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub overrides: Vec<Override>,
    /// Format of log lines on stderr. MINUET_LOG filters them, e.g. MINUET_LOG=debug or MINUET_LOG=info,h2=warn.
    #[arg(long, value_enum, default_value_t = LogFormat::Pretty, env = "MINUET_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// Send spans to this OpenTelemetry collector (OTLP over gRPC), e.g. http://localhost:4317. Without it no spans are made.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub trace_to: Option<String>,
    /// Share of the traces begun in this process that is collected, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, env = "OTEL_TRACES_SAMPLER_ARG", value_parser = share)]
    pub trace_share: f64,
    /// Query the health service at this address and exit: code 0 if it reports SERVING, else 1.
    #[arg(long, value_name = "HOST:PORT")]
    pub probe: Option<String>,
    /// Stop when standard input closes, that is, when the parent process ends.
    #[arg(long)]
    pub supervised: bool,
    /// Lower the priority of the process: its nice value, 0 to 19.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=19))]
    pub nice: Option<i32>,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One readable line per message; coloured on a terminal.
    Pretty,
    /// One JSON object per message, for log collectors.
    Json,
}

impl Arguments {
    /// Parses the process's arguments. Prints and exits on `--help` (code 0) and on bad usage (code 2).
    pub(super) fn parse_for(binary: &'static str, about: &'static str) -> Self {
        let matches = command(binary, about).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text
        .parse::<f64>()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".into())
}

fn command(binary: &'static str, about: &'static str) -> clap::Command {
    Arguments::command().name(binary).about(about).after_help(format!(
        "Example:\n  {binary} --config runs/paco-sako/run.toml --set run.seed=7\n\n\
         `minuet up` writes a commented run.toml and starts every role with it."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, clap::Error> {
        let matches = command("minuet-actor", "Plays.").try_get_matches_from(words)?;
        Arguments::from_arg_matches(&matches)
    }

    #[test]
    fn overrides_are_kept_in_order_and_malformed_ones_are_bad_usage() {
        let arguments = parse(&[
            "minuet-actor",
            "--set",
            "actor.threads=1",
            "--set",
            "actor.threads=2",
        ])
        .unwrap();
        let texts: Vec<String> = arguments.overrides.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["actor.threads=1", "actor.threads=2"]);

        let error = parse(&["minuet-actor", "--set", "threads=1"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("write section.key=value"), "{error}");
        assert_eq!(
            parse(&["minuet-actor", "--nice", "20"]).unwrap_err().exit_code(),
            2
        );
    }

    #[test]
    fn help_shows_an_example_under_the_roles_own_name() {
        let error = parse(&["minuet-actor", "--help"]).unwrap_err();
        assert_eq!(error.exit_code(), 0);
        let help = error.to_string();
        assert!(
            help.contains("minuet-actor --config runs/paco-sako/run.toml"),
            "{help}"
        );
    }
}
