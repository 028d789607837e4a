//! Arguments of the command.

use std::{path::PathBuf, str::FromStr};

use arena::{
    Spec,
    statistics::{EloModel, Sprt, SprtSettings},
};
use config::Provider;
use games::registry;

/// Arguments of `minuet arena`.
#[derive(clap::Args)]
#[command(after_help = "\
Players, each with settings after commas:
  runs/chess, runs/chess@000000001200-3fa94c21   a run's checkpoint (also a checkpoint's folder, a model.onnx, http://host:port)
  uct                                            UCT with uniform evaluations
  luna                                           the same for Paco Ŝako, but it sees wins within a turn and threats of them
  random                                         any legal action
  perfect                                        Connect Four without a mistake; from eight discs on it loses as late as it can
  uci:PROGRAM                                    a chess engine; nodes=, movetime=, depth=, option.NAME=
  gtp:PROGRAM                                    an engine of Go, Gomoku, Hex or Othello, e.g. \"gtp:gtp-rhino --level=3\"
  Searches take visits=, leaves=, exploration=, first-play=, symmetry=, reuse=, temperature=; everybody takes name=

Examples:
  minuet arena --game connect-four runs/connect-four,visits=100 uct,visits=100
      200 games, random openings, each played with both colours; the same again continues where it was interrupted
  minuet arena --game chess runs/a,visits=400 runs/b,visits=400 --games 4000 --sprt elo0=0,elo1=20
      ends as soon as it is known which of the two differences is true
  minuet arena --game chess runs/a,visits=400 uci:stockfish,nodes=5000,option.UCI_LimitStrength=true --games 20
      games.pgn lies in the match's folder then
  minuet arena --game othello runs/othello,visits=400 \"gtp:gtp-rhino --level=3 --book=0 --rand=0\" --games 100
  minuet arena --game go:9 uct,visits=400 \"gtp:gnugo --mode gtp --chinese-rules --capture-all-dead --level 1\" --games 20
  minuet arena --game generator runs/generator,visits=64 uct,visits=256
      one player: both try the same held-out problems; solve rates by kind and level")]
pub struct Arguments {
    /// Players, at least two. More than two play a round robin.
    #[arg(required = true, num_args = 2.., value_name = "PLAYER")]
    pub(super) players: Vec<Spec>,
    /// Name of the game, with the size of its board if there are several (gomoku:15).
    #[arg(long, value_parser = registry::checked)]
    pub(super) game: String,
    /// Number of games for every two players: two for each opening, with colours exchanged, or one of each player for each problem.
    #[arg(long, default_value_t = 200, value_parser = even)]
    pub(super) games: u64,
    /// Seed of all random draws.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Number of random actions at the beginning of each pair of games. [default: 4 in Connect Four, 6 in Othello, 8 elsewhere]
    #[arg(long, value_name = "N")]
    pub(super) opening_plies: Option<u32>,
    /// Begin from the positions in this file instead, one per line (chess: FEN or EPD).
    #[arg(long, value_name = "FILE", conflicts_with = "opening_plies")]
    pub(super) openings: Option<PathBuf>,
    /// Stop as soon as a sequential test decides between two differences of the first two players:
    /// elo0=0,elo1=10[,alpha=0.05][,beta=0.05][,model=logistic|normalized].
    #[arg(long, value_name = "TEST")]
    pub(super) sprt: Option<SprtArgument>,
    /// Number of actions after which a game ends as a draw.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(super) max_actions: usize,
    /// Folder of the match. [default: a folder in matches/ named after these players and settings]
    #[arg(long, value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// Number of threads. [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// Number of games at once on each thread; their positions are evaluated together. [default: up to 32; 1 if an engine plays]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(super) games_at_once: Option<u16>,
    /// Execution provider for networks: auto, cpu, cpu-int8, openvino-f32, openvino-bf16, cuda.
    #[arg(long, default_value = "auto")]
    pub(super) provider: Provider,
    /// Size of the evaluation cache of each network in MiB.
    #[arg(long, default_value_t = 64, value_name = "MIB")]
    pub(super) cache_mib: usize,
    /// Print one JSON object at the end.
    #[arg(long)]
    pub(super) json: bool,
}

/// Value of `--sprt`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SprtArgument(pub(super) Sprt);

impl FromStr for SprtArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut settings = SprtSettings {
            elo0: f64::NAN,
            elo1: f64::NAN,
            alpha: 0.05,
            beta: 0.05,
            model: EloModel::Logistic,
        };
        for part in text.split(',') {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` should be key=value"))?;
            let number = || {
                value
                    .trim()
                    .parse::<f64>()
                    .map_err(|_| format!("`{key}` is `{value}`, which is not a number"))
            };
            match key.trim() {
                "elo0" => settings.elo0 = number()?,
                "elo1" => settings.elo1 = number()?,
                "alpha" => settings.alpha = number()?,
                "beta" => settings.beta = number()?,
                "model" => {
                    settings.model = match value.trim() {
                        "logistic" => EloModel::Logistic,
                        "normalized" => EloModel::Normalized,
                        other => return Err(format!("`model` is logistic or normalized, not `{other}`")),
                    }
                }
                other => {
                    return Err(format!(
                        "there are elo0, elo1, alpha, beta and model, no `{other}`"
                    ));
                }
            }
        }
        Sprt::new(settings).map(Self).map_err(|error| error.to_string())
    }
}

/// Parses an even number of at least 2.
fn even(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(games) if games >= 2 && games.is_multiple_of(2) => Ok(games),
        _ => Err("must be an even number: every opening is played with both colours".into()),
    }
}
