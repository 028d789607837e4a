//! `minuet games import`: sends the games of archives, and games that others played, to the store of a run.
//!
//! | module | contents |
//! |---|---|
//! | [`found`] | a game as a file gives it, and the record that is made of it |
//! | [`pgn`], [`sgf`], [`lines`] | the readers of PGN, SGF and lines of JSON |
//! | [`left_out`] | counts of the games that are left out, and the options that select games |

mod found;
mod left_out;
mod lines;
mod pgn;
mod sgf;

use std::{
    io::{self, BufReader, Cursor, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail, ensure};
use games::{Course, Outcome, erased::AnyGame};
use launcher::{BadUsage, processes::host};
use proto::v1::Game;
use replay_store::{
    exchange::archive::Reader,
    exchange::archive_store::{ArchiveStore, ObjectPath},
};
use serde_json::json;
use service::filesystem::open_regular;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::{
    found::{Fault, Found, Played, Reason, Target},
    left_out::{LeftOut, Selected},
};
use super::{
    send::{self, AppendCounts, WINDOW},
    source::{Access, Source, StoreLocation},
};

/// Arguments of `minuet games import`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games import games.minuet --run runs/paco-sako
  minuet games import s3://bucket/games --run runs/paco-sako
  minuet games import games.pgn --min-rating 2000 --run runs/chess
PGN (.pgn, chess), SGF (.sgf, Go) and lines of JSON (.jsonl, any game) hold games of people or other programs. Their policy is the move
that was played, and their value the result. Games without a result, with an illegal move, or with a result that contradicts the rules
are left out and counted; a game that was resigned or agreed to be a draw has the result that its file gives.
Games that the store already has, or had, are skipped. Games that the store refuses temporarily, for example because its disk is full,
are sent again until it takes them. Ctrl-C stops the import; running the same command again continues it.")]
pub struct Arguments {
    /// Archives written by `minuet games export`, PGN, SGF or JSON lines; or the folder or URL of a replay.archive, of which all archives
    /// are imported.
    #[arg(value_name = "FILE|FOLDER|URL", required = true)]
    from: Vec<String>,
    #[command(flatten)]
    selected: Selected,
    #[command(flatten)]
    place: StoreLocation,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Imports games. Returns an error if any game was refused or the import was stopped.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut inputs = Vec::new();
    for from in &arguments.from {
        inputs.extend(inputs_at(from).await?);
    }
    let is_archive = |input: &Input| !matches!(input, Input::Games(..));
    ensure!(
        arguments.selected.is_empty() || !inputs.iter().any(is_archive),
        BadUsage(
            "--player and --min-rating are for PGN, SGF and JSON lines: archives have no names of players"
                .into()
        )
    );
    let mut source = arguments.place.open(Access::Add).await?;
    let target = match inputs.iter().all(is_archive) {
        true => None,
        false => Some(Arc::new(target(&source)?)),
    };
    let taking = Taking {
        target,
        selected: arguments.selected,
        left_out: Arc::default(),
    };
    let append_counts = AppendCounts::default();
    let shutdown = CancellationToken::new();
    let importing = import_all(&mut source, inputs, &taking, &append_counts, &shutdown);
    let ended = send::watched(importing, &append_counts, &shutdown).await;
    source.close().await?;
    let counts = append_counts.lock();
    let left_out = taking.left_out.lock();
    if arguments.json {
        println!(
            "{}",
            json!({
                "stored": counts.stored,
                "duplicates": counts.duplicates,
                "refused": counts.refused,
                "left_out": left_out.as_json(),
                "stopped": shutdown.is_cancelled(),
            })
        );
    } else {
        println!("{}", counts.summary());
        print!("{left_out}");
    }
    ended
}

/// Returns the game of the run.
fn target(source: &Source) -> anyhow::Result<Target> {
    let config = source.config.as_ref();
    let config = config.context("name the run of the games with --run; its run.toml names the game")?;
    ensure!(
        !config.game.is_from_outside() || host::command().is_some(),
        BadUsage(format!(
            "the rules of {} are in Python: use `python -m minuet games import`",
            config.game.name
        ))
    );
    Ok(Target::of(config)?)
}

/// Selection of games from files, and the counts of those left out.
#[derive(Clone)]
struct Taking {
    /// Game of the run. `None`: there are only archives.
    target: Option<Arc<Target>>,
    selected: Selected,
    left_out: Arc<parking_lot::Mutex<LeftOut>>,
}

/// Sends the games of all inputs. Games before a damaged place of an archive are imported; inputs after it are not read.
async fn import_all(
    source: &mut Source,
    inputs: Vec<Input>,
    taking: &Taking,
    append_counts: &AppendCounts,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let _awaited = send::await_positions(&source.client).await;
    for input in inputs {
        if shutdown.is_cancelled() {
            break;
        }
        let name = input.name();
        import(source, input, taking.clone(), append_counts, shutdown)
            .await
            .with_context(|| name.clone())?;
    }
    Ok(())
}

/// Format of a file with games that others played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Pgn,
    Sgf,
    Lines,
}

impl Format {
    /// Returns the format that the name of a file tells; `None` for an archive.
    fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_lowercase();
        match &*ending {
            "pgn" => Some(Self::Pgn),
            "sgf" => Some(Self::Sgf),
            "jsonl" | "json" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// A source of games.
enum Input {
    /// Archive in a file.
    File(PathBuf),
    /// Archive in an object store.
    Object(ArchiveStore, ObjectPath),
    /// Games that others played.
    Games(PathBuf, Format),
}

impl Input {
    fn name(&self) -> String {
        match self {
            Self::File(path) | Self::Games(path, _) => path.display().to_string(),
            Self::Object(archive_store, path) => format!("{path} in {}", archive_store.location()),
        }
    }
}

/// Returns the inputs at `from`: one file, or all archives of a folder or URL.
async fn inputs_at(from: &str) -> anyhow::Result<Vec<Input>> {
    let path = PathBuf::from(from);
    if !from.contains("://") && !path.is_dir() {
        return Ok(vec![match Format::of(&path) {
            Some(format) => Input::Games(path, format),
            None => Input::File(path),
        }]);
    }
    let archive_store = ArchiveStore::open(from)?;
    let found = archive_store.list().await.with_context(|| from.to_owned())?;
    ensure!(!found.is_empty(), "{from} contains no archives of games");
    let archives = found
        .into_iter()
        .map(|path| Input::Object(archive_store.clone(), path));
    Ok(archives.collect())
}

/// Sends the games of an input to the store.
async fn import(
    source: &mut Source,
    input: Input,
    taking: Taking,
    append_counts: &AppendCounts,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let archive: Box<dyn Read + Send> = match input {
        Input::Games(path, format) => {
            let (games, read_games) = mpsc::channel(WINDOW);
            let reading = tokio::task::spawn_blocking(move || read_file(&path, format, &taking, &games));
            send::put(source, read_games, append_counts, shutdown).await?;
            return reading.await?;
        }
        Input::File(path) => Box::new(open_regular(&path)?),
        Input::Object(archive_store, path) => Box::new(Cursor::new(archive_store.get(&path).await?)),
    };
    let (games, read_games) = mpsc::channel(WINDOW);
    let reading = tokio::task::spawn_blocking(move || {
        for game in Reader::new(archive)? {
            // Sending has ended. The caller reports the reason.
            if games.blocking_send(game?).is_err() {
                break;
            }
        }
        anyhow::Ok(())
    });
    send::put(source, read_games, append_counts, shutdown).await?;
    reading.await?
}

/// Games of a file, one after the other.
type GamesOf<'a> = Box<dyn Iterator<Item = io::Result<Result<Found, Fault>>> + 'a>;

fn games_of<'a>(path: &Path, format: Format, target: &'a Target) -> anyhow::Result<GamesOf<'a>> {
    let (game, text) = (target.game, BufReader::new(open_regular(path)?));
    Ok(match format {
        Format::Pgn if game.has_pgn => Box::new(pgn::Games::new(text)),
        Format::Sgf if game.has_sgf => Box::new(sgf::Games::new(text, game)),
        Format::Lines => Box::new(lines::Games::new(text, target)),
        Format::Pgn | Format::Sgf => bail!(
            "{} has no such files; lines of JSON are for every game",
            game.name
        ),
    })
}

/// A game of a file, played by the rules.
pub struct PlayedGame {
    /// Names of the first and the second player; empty if unknown.
    pub players: [String; 2],
    /// Result that the file gives.
    pub result: Option<Outcome>,
    /// The game.
    pub course: Course,
}

/// Reads the games of a PGN, SGF, JSON lines or an archive. A game that cannot be played is a sentence that says why.
///
/// # Errors
/// The file cannot be read, or `each` fails.
pub fn read_games(
    path: &Path,
    game: &'static AnyGame,
    mut each: impl FnMut(Result<PlayedGame, String>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let target = Target::of_game(game);
    let played = |played: Played, players: [String; 2], result| {
        let variant = target.variant(&played.rules)?;
        let mut course = Course::new(variant.start(played.start.as_deref())?);
        for (number, &action) in played.actions.iter().enumerate() {
            let done = course.play(action);
            done.map_err(|error| Fault::of_move(number, &action.to_string(), error.reason))?;
        }
        let own = course.begin().game().title();
        if own != game.title() {
            let text = format!("a game of {own}, and the network plays {}", game.title());
            return Err(Fault::new(Reason::Unreadable, text));
        }
        Ok(PlayedGame {
            players,
            result,
            course,
        })
    };
    if let Some(format) = Format::of(path) {
        for found in games_of(path, format, &target)? {
            let one = found?.and_then(|found| {
                let names = found.players.map(|player| player.name);
                played((found.play)(&target)?, names, found.result)
            });
            each(one.map_err(|fault| fault.to_string()))?;
        }
        return Ok(());
    }
    for record in Reader::new(open_regular(path)?)? {
        let record = record?;
        let rules = serde_json::from_str(&record.rules_json).unwrap_or_default();
        let start = Some(record.start).filter(|start| !start.is_empty());
        let actions = record.actions;
        let one = match record.game == game.name {
            true => played(
                Played {
                    rules,
                    start,
                    actions,
                },
                Default::default(),
                None,
            ),
            false => Err(Fault::new(
                Reason::Unreadable,
                format!("a game of {}", record.game),
            )),
        };
        each(one.map_err(|fault| fault.to_string()))?;
    }
    Ok(())
}

/// Reads a file with games that others played, and sends the records that are made of them.
fn read_file(path: &Path, format: Format, taking: &Taking, games: &mpsc::Sender<Game>) -> anyhow::Result<()> {
    let Some(target) = &taking.target else {
        bail!("the game is not known");
    };
    let found = games_of(path, format, target)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    for (number, found) in (1..).zip(found) {
        let found = found?.and_then(|found| taking.selected.admit(found));
        let record = found.and_then(|found| found::record(target, found, (&file, number)));
        let game = match record {
            Ok(game) => game,
            Err(fault) => {
                taking.left_out.lock().add(&file, number, &fault);
                continue;
            }
        };
        // Sending has ended. The caller reports the reason.
        if games.blocking_send(game).is_err() {
            break;
        }
    }
    Ok(())
}
