//! `minuet play`: a person plays any game at the terminal, against a network or another person.
//!
//! | module | content |
//! |---|---|
//! | [`command`] | lines that a person may type besides moves |
//! | [`game`] | beginning, saving and loading a game |
//! | [`session`] | the loop |
//!
//! Notation, drawing and help are part of each game ([`games::Notation`]).

mod command;
mod game;
mod session;

pub use game::MAX_FILE;

use std::{
    io::{self, ErrorKind, IsTerminal as _},
    path::PathBuf,
};

use anyhow::Context as _;
use arena::{
    Player as Opponent, Spec,
    matches::problems,
    players::{NetworkOptions, Networks},
};
use games::{Player, erased::AnyGame, registry, terminal::Style};

use network::shipped::{self, Level};

use self::session::Session;
use launcher::BadUsage;

/// Arguments of `minuet play`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Name of the game; `minuet perft --help` lists all games. [default: that of the saved game, or paco-sako]
    #[arg(long)]
    game: Option<String>,
    /// Your opponent: a run's folder (runs/chess, runs/chess@best), a checkpoint's folder, an .onnx file, an inference
    /// server (http://host:port), a game's name (the network that comes with Minuet; othello@medium and
    /// othello@beginner are weaker), `uct` (a search without a network) or
    /// `random`; with settings behind it, e.g. runs/chess,visits=400,temperature=0.5. [default: the network that comes with
    /// Minuet for the game, or else uct,visits=1000]
    #[arg(long)]
    opponent: Option<String>,
    /// Your side: first, second, both (two people) or none (watch); or as the game calls it, e.g. white.
    #[arg(long, default_value = "first")]
    side: String,
    /// Begin with this position.
    #[arg(long, conflicts_with = "load", allow_hyphen_values = true)]
    start: Option<String>,
    /// Begin with a problem of this level, drawn by --seed; only for a game that is about problems (generator: 1 to 48).
    #[arg(long, value_name = "N", conflicts_with_all = ["start", "load"])]
    level: Option<u32>,
    /// Continue a saved game, or a game of Go in an SGF file (game.sgf).
    #[arg(long, value_name = "FILE")]
    load: Option<PathBuf>,
    /// Draw with plain characters only.
    #[arg(long)]
    ascii: bool,
    /// Execution provider for a network in this process: auto, cpu, cpu-int8, openvino-f32, openvino-bf16, cuda.
    #[arg(long, default_value = "auto")]
    provider: config::Provider,
    /// Seed of the opponent's random draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The game where none is named.
const GAME: &str = "paco-sako";
/// The opponent where no network comes with Minuet.
const WITHOUT_NETWORK: &str = "uct,visits=1000";

const HELP: &str = "Examples:
  minuet play --game chess
  minuet play --opponent runs/paco-sako,visits=400
  minuet play --game chess --opponent runs/chess --side black
  minuet play --game othello --side both --ascii
  minuet play --game generator --level 3
  printf 'e4\\nhint\\nquit\\n' | minuet play --game chess";

/// Plays one game.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    match play(arguments) {
        // The reader of the output has closed the pipe.
        Err(error)
            if error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) =>
        {
            Ok(())
        }
        played => played,
    }
}

fn play(arguments: Arguments) -> anyhow::Result<()> {
    let named = arguments.game.as_deref().map(registry::find).transpose()?;
    let play = match &arguments.load {
        Some(file) => game::load(named, file)?,
        None => {
            let game = named.map_or_else(|| registry::find(GAME), Ok)?;
            let drawn = arguments
                .level
                .map(|level| problem(game, level, arguments.seed))
                .transpose()?;
            game::begin(game, drawn.as_deref().or(arguments.start.as_deref()))?
        }
    };
    let game = play.variant.game();
    let people = people(game, &arguments.side)?;
    let opponent = arguments
        .opponent
        .unwrap_or_else(|| match shipped::for_board(game, Level::Strong) {
            Some(_) => game.name.into(),
            None => WITHOUT_NETWORK.into(),
        });
    let spec: Spec = opponent.parse()?;
    let mut networks = Networks::new(NetworkOptions {
        provider: arguments.provider,
        batch: 16,
        ..NetworkOptions::default()
    });
    let computer =
        Opponent::open(game, &spec, &mut networks).with_context(|| format!("the opponent {opponent}"))?;
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut session = Session {
        play,
        computer: &computer,
        style: Style {
            ascii: arguments.ascii,
            colour,
            flipped: people == [Player::Second],
        },
        people,
        seed: arguments.seed,
        input: io::stdin().lock(),
        out: io::stdout().lock(),
    };
    session.run()
}

/// Position of a drawn problem, as text.
fn problem(game: &AnyGame, level: u32, seed: u64) -> anyhow::Result<String> {
    if !(1..=game.levels).contains(&level) {
        let reason = match game.levels {
            0 => format!("--level: {} is not about problems", game.name),
            highest => format!("--level {level}: write 1 to {highest}"),
        };
        return Err(BadUsage(reason).into());
    }
    let variant = game.variant(&game.people_rules(), None)?;
    let drawn = problems::draw(&*variant, level, seed);
    let drawn = drawn.with_context(|| format!("no problem of level {level} was found"))?;
    Ok(drawn.position())
}

fn people(game: &AnyGame, side: &str) -> anyhow::Result<Vec<Player>> {
    Ok(match side.to_lowercase().as_str() {
        "both" => vec![Player::First, Player::Second],
        "none" => Vec::new(),
        _ => match game.player_named(side) {
            Some(player) => vec![player],
            None => {
                let [first, second] = game.player_names.map(str::to_lowercase);
                let reason = format!("--side {side}: write {first}, {second}, both or none");
                return Err(BadUsage(reason).into());
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(name: &str) -> &'static AnyGame {
        registry::find(name).unwrap()
    }

    /// Output for a person who types these lines against an opponent that plays at random.
    fn seen(name: &str, lines: &str, side: &str) -> String {
        let spec: Spec = "random".parse().unwrap();
        let computer =
            Opponent::open(game(name), &spec, &mut Networks::new(NetworkOptions::default())).unwrap();
        let mut out = Vec::new();
        let mut session = Session {
            play: game::begin(game(name), None).unwrap(),
            computer: &computer,
            people: people(game(name), side).unwrap(),
            style: Style {
                ascii: true,
                ..Style::default()
            },
            seed: 3,
            input: lines.as_bytes(),
            out: &mut out,
        };
        session.run().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_whole_game_of_two_people() {
        let seen = seen("chess", "f3\ne5\ng4\nQd8\nQh4\n", "both");
        assert!(seen.contains("Qd8 is not legal"));
        assert!(
            seen.ends_with("Black has won (mate).\n") || seen.ends_with("Black has won.\n"),
            "{seen}"
        );
    }

    #[test]
    fn the_computer_answers_and_is_taken_back() {
        let seen = seen("connect-four", "4\nundo\nundo\nhint\nmoves\nresign\n", "x");
        assert_eq!(seen.matches("O (random) plays").count(), 1);
        assert!(seen.contains("There is nothing of yours to take back."));
        assert!(seen.contains("1  2  3  4  5  6  7"));
        assert!(seen.ends_with("X resigns. O has won.\n"));
    }

    #[test]
    fn a_line_that_is_too_long_is_no_command() {
        let lines = format!("{}resign\nquit\n", "x".repeat(4096));
        let seen = seen("chess", &lines, "both");
        assert!(seen.contains("too long") && !seen.contains("resigns"), "{seen}");
    }

    #[test]
    fn a_turn_of_paco_sako_in_two_lines() {
        let seen = seen("paco-sako", "e2\nundo\ne2\ne4\nquit\n", "white");
        assert_eq!(seen.matches("Place the pawn from e2").count(), 2);
        assert_eq!(seen.matches("Black (random) plays").count(), 1);
    }

    #[test]
    fn a_game_without_people_plays_itself() {
        let seen = seen("connect-four", "", "none");
        assert!(seen.contains("has won.") || seen.contains("draw"));
    }

    #[test]
    fn a_level_draws_a_problem_in_games_that_have_them() {
        let position = problem(game("generator"), 3, 1).unwrap();
        assert!(position.contains("\"target\""), "{position}");
        assert_eq!(problem(game("generator"), 3, 1).unwrap(), position);
        assert_ne!(problem(game("generator"), 3, 2).unwrap(), position);
        let said = |error: anyhow::Error| error.downcast::<BadUsage>().unwrap().0;
        assert_eq!(
            said(problem(game("generator"), 49, 1).unwrap_err()),
            "--level 49: write 1 to 48"
        );
        assert!(said(problem(game("chess"), 1, 1).unwrap_err()).contains("not about problems"));
    }

    #[test]
    fn sides_are_named_as_the_game_names_its_players() {
        assert_eq!(people(game("chess"), "Black").unwrap(), [Player::Second]);
        assert_eq!(people(game("chess"), "second").unwrap(), [Player::Second]);
        assert!(people(game("connect-four"), "black").is_err());
    }
}
