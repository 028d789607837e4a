//! `minuet arena`: plays matches between any players and estimates their strength.
//!
//! | module | contents |
//! |---|---|
//! | [`arguments`] | arguments of the command |
//! | [`setup`] | players and plan from the arguments |
//! | [`report`] | the printed output |

mod arguments;
mod report;
mod setup;

use anyhow::Context as _;
use arena::matches::{self, Conduct, MatchFolder, Standing, conduct::Ended, notation};
use games::registry;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

pub use arguments::Arguments;
use arguments::SprtArgument;
use setup::Setup;

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let game = registry::find(&arguments.game)?;
    let Setup {
        plan,
        players,
        threads,
        games_at_once,
        path,
    } = Setup::new(game, &arguments)?;
    let mut folder = MatchFolder::open(&path, &plan)?;
    let stop = CancellationToken::new();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime
        .block_on(async { service::role::stop_on_signals(stop.clone()) })
        .context("cannot listen for Ctrl-C")?;
    let bar = progress_bar(plan.games(), Standing::of(&plan, folder.records(), None).games[0]);
    let sprt = arguments.sprt.map(|SprtArgument(sprt)| sprt);
    let conduct = Conduct {
        threads,
        games: games_at_once,
        sprt: sprt.as_ref(),
        budget: None,
        stop: &stop,
    };
    let ended = matches::play(&plan, &players, &mut folder, conduct, &mut |folder| {
        bar.inc(1);
        bar.set_message(report::running(&plan, folder.records(), game.players));
    });
    bar.finish_and_clear();
    let ended = ended.with_context(|| match folder.records().is_empty() {
        true => "no game was finished".to_owned(),
        false => format!("the finished games are kept in {}", path.display()),
    })?;
    let standing = Standing::of(&plan, folder.records(), sprt.as_ref());
    let games = notation::write(&folder, &plan)?;
    report::print(&plan, &standing, ended, &path, &games, arguments.json);
    if ended == Ended::Stopped && !arguments.json {
        println!("stopped; the same command continues the match");
    }
    Ok(())
}

fn progress_bar(games: u64, done: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{pos}/{len} games {bar:30} {elapsed} (left {eta})  {msg}");
    let bar = ProgressBar::new(games).with_position(done);
    // An invalid template would leave the default style.
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
