//! `minuet arena`: plays matches between any players and estimates their strength.
//!
//! | module | contents |
//! |---|---|
//! | [`setup`] | players and plan from the arguments |
//! | [`stop`] | Ctrl-C ends a match without losing games |
//! | [`report`] | the printed output |

mod report;
mod setup;
pub mod stop;

use std::{path::PathBuf, str::FromStr};

use anyhow::Context as _;
use arena::{
    Spec,
    matches::{self, Conduct, MatchFolder, Standing, conduct::Ended, notation},
    statistics::{EloModel, Sprt, SprtSettings},
};
use clap::builder::PossibleValuesParser;
use config::ProviderChoice;
use games::{
    Face,
    registry::{self, Visitor},
};
use indicatif::{ProgressBar, ProgressStyle};

use setup::Setup;

/// Arguments of `minuet arena`.
#[derive(clap::Args)]
#[command(after_help = "\
Players, each with settings after commas:
  runs/chess, runs/chess@000000001200-3fa94c21   a run's checkpoint (also a checkpoint's folder, a model.onnx, http://host:port)
  uct                                            UCT with uniform evaluations
  random                                         any legal action
  perfect                                        Connect Four without a mistake
  uci:PROGRAM                                    a chess engine; nodes=, movetime=, depth=, option.NAME=
  Searches take visits=, leaves=, exploration=, first-play=, symmetry=, reuse=, temperature=; everybody takes name=

Examples:
  minuet arena --game connect-four runs/connect-four,visits=100 uct,visits=100
      200 games, random openings, each played with both colours; the same again goes on where it was interrupted
  minuet arena --game chess runs/a,visits=400 runs/b,visits=400 --games 4000 --sprt elo0=0,elo1=20
      ends as soon as it is known which of the two differences is true
  minuet arena --game chess runs/a,visits=400 uci:stockfish,nodes=5000,option.UCI_LimitStrength=true --games 20
      games.pgn lies in the match's folder then")]
pub struct Arguments {
    /// Players, at least two. More than two play a round robin.
    #[arg(required = true, num_args = 2.., value_name = "PLAYER")]
    players: Vec<Spec>,
    /// Name of the game.
    #[arg(long, value_parser = PossibleValuesParser::new(registry::NAMES))]
    game: String,
    /// Number of games for every two players, half of them with each colour.
    #[arg(long, default_value_t = 200, value_parser = even)]
    games: u64,
    /// Seed of all random draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of random actions at the beginning of each pair of games. [default: 4 in Connect Four, 6 in Othello, 8 elsewhere]
    #[arg(long, value_name = "N")]
    opening_plies: Option<u32>,
    /// Begin from the positions in this file instead, one per line (chess: FEN or EPD).
    #[arg(long, value_name = "FILE", conflicts_with = "opening_plies")]
    openings: Option<PathBuf>,
    /// Stop as soon as a sequential test decides between two differences of the first two players:
    /// elo0=0,elo1=10[,alpha=0.05][,beta=0.05][,model=logistic|normalized].
    #[arg(long, value_name = "TEST")]
    sprt: Option<SprtArgument>,
    /// Number of actions after which a game ends as a draw.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    max_actions: usize,
    /// Folder of the match. [default: a folder in matches/ named after these players and settings]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Number of threads. [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Number of games at once on each thread; their positions are evaluated together. [default: up to 32; 1 if an engine plays]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    games_at_once: Option<u16>,
    /// Execution provider for networks: auto, cpu, openvino-f32, openvino-bf16, cuda.
    #[arg(long, default_value = "auto")]
    provider: ProviderChoice,
    /// Size of the evaluation cache of each network in MiB.
    #[arg(long, default_value_t = 64, value_name = "MIB")]
    cache_mib: usize,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
}

/// Value of `--sprt`.
#[derive(Clone, Copy, Debug)]
struct SprtArgument(Sprt);

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

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let game = arguments.game.clone();
    registry::visit(&game, Match(arguments))?
}

struct Match(Arguments);

impl Visitor for Match {
    type Output = anyhow::Result<()>;

    fn visit<G: Face>(self) -> anyhow::Result<()> {
        let arguments = self.0;
        anyhow::ensure!(
            G::PLAYERS == 2,
            "{} has one player: there is no opponent",
            G::NAME
        );
        let Setup {
            plan,
            rules,
            players,
            threads,
            games_at_once,
            path,
        } = Setup::<G>::new(&arguments)?;
        let mut folder = MatchFolder::open::<G>(&path, &plan, &rules)?;
        let stop = stop::on_signals().context("cannot listen for Ctrl-C")?;
        let bar = progress_bar(plan.games(), Standing::of(&plan, folder.records(), None).games[0]);
        let sprt = arguments.sprt.map(|SprtArgument(sprt)| sprt);
        let conduct = Conduct {
            threads,
            games: games_at_once,
            sprt: sprt.as_ref(),
            stop,
        };
        let ended = matches::play(&plan, &rules, &players, &mut folder, conduct, &mut |progress| {
            bar.inc(1);
            bar.set_message(report::running(&plan, progress.folder.records()));
        });
        bar.finish_and_clear();
        let ended = ended.with_context(|| format!("the finished games are kept in {}", path.display()))?;
        let standing = Standing::of(&plan, folder.records(), sprt.as_ref());
        let games = notation::write::<G>(&folder, &plan, &rules)?;
        report::print(&plan, &standing, ended, &path, &games, arguments.json)?;
        if ended == Ended::Stopped && !arguments.json {
            println!("stopped; the same command continues the match");
        }
        Ok(())
    }
}

fn progress_bar(games: u64, done: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{pos}/{len} games {bar:30} {elapsed} (left {eta})  {msg}");
    let bar = ProgressBar::new(games).with_position(done);
    // An invalid template would leave the default style.
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
