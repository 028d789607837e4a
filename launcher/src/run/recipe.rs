//! The settings with which a new run of any game on planes begins, so that a game that nobody tuned needs none: those on which the
//! experiments with other games agree, and a network of a size that suits the board. A `run.toml` in the folder of a game says what
//! differs there.

use config::{ConfigError, GameConfig, Override, RunConfig};
use games::{erased::AnyGame, registry};

use super::game::overrides;

/// Settings of games of two players, and of one.
const OF_PLAYERS: [&str; 2] = [include_str!("two_players.toml"), include_str!("one_player.toml")];

/// Blocks and filters of networks for boards of up to this many squares. Connect Four (42 squares) learned most with 32 filters
/// (`lab/first-minutes.toml`); Othello, chess, Go and Hex (64 to 121 squares) were tuned with 4 blocks of 64. The others are
/// guesses. A single square is a list of numbers without a board, and its layers are dense.
const NETWORKS: [(usize, [u32; 2]); 5] = [
    (1, [4, 128]),
    (16, [2, 32]),
    (49, [4, 32]),
    (128, [4, 64]),
    (usize::MAX, [6, 64]),
];

/// Returns the settings of a new run of this game, without those of its folder. Games whose rows are not planes have none.
///
/// # Errors
/// [`ConfigError`] if the settings are not TOML.
pub(super) fn settings(game: &AnyGame, config: &GameConfig) -> Result<Vec<Override>, ConfigError> {
    let Some([blocks, filters]) = squares(game, config).map(network) else {
        return Ok(Vec::new());
    };
    let mut settings = overrides(OF_PLAYERS[usize::from(game.players == 1)], "all games")?;
    settings.push(Override::new("model.blocks", blocks)?);
    settings.push(Override::new("model.filters", filters)?);
    Ok(settings)
}

/// Returns a sentence that says with which settings a run of a game that nobody tuned began. `None` if the game has settings of its own,
/// or if the run has a network of another size.
pub fn reason(config: &RunConfig) -> Option<String> {
    let game = registry::find(&config.game.name).ok()?;
    let squares = squares(game, &config.game).filter(|_| game.run_settings.is_empty())?;
    let size @ [blocks, filters] = network(squares);
    let players = match game.players {
        1 => "one player",
        _ => "two players",
    };
    ([config.model.blocks, config.model.filters] == size).then(|| {
        format!(
            "{} has no settings of its own: those of other games of {players} apply, and a network of {blocks} blocks of {filters} \
             filters, because {}",
            config.game.title(),
            match squares {
                1 => "its positions are lists of numbers, without squares".to_owned(),
                _ => format!("the board has {squares} squares"),
            }
        )
    })
}

/// Returns the number of squares of the board. `None` if the rows of the game are not planes, or if there are no such rules.
fn squares(game: &AnyGame, config: &GameConfig) -> Option<usize> {
    let rules = serde_json::to_value(&config.rules).ok()?;
    let variant = game.variant(&rules, None).ok()?;
    Some(variant.layout().stack().ok()?.squares())
}

fn network(squares: usize) -> [u32; 2] {
    let fits = NETWORKS.into_iter().find(|&(most, _)| squares <= most);
    fits.map_or(NETWORKS[NETWORKS.len() - 1].1, |(_, size)| size)
}

#[cfg(test)]
mod tests {
    use config::PolicyTarget;
    use search::Root;

    use super::*;
    use crate::run::{folder::new_run, game::template};

    fn new(game: &str, settings: &[&str]) -> RunConfig {
        let settings: Vec<Override> = settings.iter().map(|text| text.parse().unwrap()).collect();
        new_run(Some(game), &settings).unwrap()
    }

    #[test]
    fn the_network_of_a_game_that_nobody_tuned_grows_with_the_board() {
        let size = |settings: &[&str]| {
            let run = new("gomoku", settings);
            (run.model.blocks, run.model.filters)
        };
        assert_eq!(size(&["game.rules.size=7"]), (4, 32));
        assert_eq!(size(&[]), (4, 64));
        assert_eq!(size(&["game.rules.size=19"]), (6, 64));
        assert_eq!(size(&["game.rules.size=19", "model.blocks=3"]), (3, 64));
        assert_eq!(network(9), [2, 32]);
        assert_eq!(network(1), [4, 128]);
    }

    #[test]
    fn the_file_says_why_as_long_as_it_is_true() {
        let run = new("gomoku", &[]);
        assert_eq!((run.search.root, run.search.visits), (Root::Gumbel, 16));
        let why = reason(&run).unwrap();
        assert!(
            why.starts_with("gomoku:8 ") && why.contains("64 squares"),
            "{why}"
        );
        let text = template(&run);
        assert!(
            text.contains(&why)
                && text
                    .lines()
                    .all(|line| line.starts_with('#') || !line.contains(&why))
        );
        assert_eq!(config::parse(&text).unwrap(), run);
        assert_eq!(reason(&new("gomoku", &["model.filters=16"])), None);
        assert_eq!(reason(&new("othello", &[])), None);
        // A setting of the command line need not repeat the others.
        assert_eq!(
            new("gomoku", &["search.root=puct"]).learner.policy_target,
            PolicyTarget::CompletedQ
        );
    }

    /// Settings that experiments decided, so that a change of those of all games does not change them unnoticed.
    #[test]
    fn tuned_games_keep_their_settings() {
        for (game, root, visits, q_range, target, network) in [
            ("chess", Root::Puct, 32, 0.5, PolicyTarget::CompletedQ, [4, 64]),
            ("othello", Root::Puct, 32, 0.5, PolicyTarget::CompletedQ, [4, 64]),
            ("paco-sako", Root::Puct, 32, 2.0, PolicyTarget::Visits, [4, 64]),
            (
                "connect-four",
                Root::Gumbel,
                16,
                2.0,
                PolicyTarget::CompletedQ,
                [4, 32],
            ),
            ("go:5", Root::Gumbel, 16, 0.1, PolicyTarget::CompletedQ, [4, 64]),
            ("hex:19", Root::Gumbel, 16, 0.1, PolicyTarget::CompletedQ, [4, 64]),
            ("generator", Root::Puct, 64, 2.0, PolicyTarget::Visits, [3, 64]),
        ] {
            let RunConfig {
                search,
                learner,
                model,
                ..
            } = new(game, &[]);
            let found = (
                search.root,
                search.visits,
                search.q_range,
                learner.policy_target,
                [model.blocks, model.filters],
            );
            assert_eq!(found, (root, visits, q_range, target, network), "{game}");
            assert_eq!(search.solver, game != "generator", "{game}");
        }
    }
}
