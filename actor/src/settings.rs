//! From the run's configuration to what a search takes, and the temperature of each move.

use config::{self, SearchConfig, TemperatureStep};
use search::{Alpha, FirstPlay, Noise, Reuse, Settings, SettingsError};

/// Memory that all trees of a process may take together; each game gets its share of it.
const ALL_TREES: usize = 1 << 30;
/// A game's share is no smaller than this ...
const SMALLEST_TREE: usize = 1 << 20;
/// ... and no larger than this.
const LARGEST_TREE: usize = 256 << 20;

/// The search settings that `config` describes, where `games` are played at once.
///
/// # Errors
/// [`SettingsError`] naming what is out of range.
pub fn search_settings(config: &SearchConfig, games: usize) -> Result<Settings, SettingsError> {
    let noise = Noise {
        fraction: config.noise_fraction,
        alpha: Alpha::Total(config.noise_total_alpha),
    };
    let settings = Settings {
        traversals: config.visits,
        exploration: config.exploration,
        first_play: match config.first_play {
            config::FirstPlay::Parent => FirstPlay::Parent,
            config::FirstPlay::Zero => FirstPlay::Zero,
            config::FirstPlay::Reduction => FirstPlay::Reduction(config.first_play_reduction),
        },
        leaves: config.leaves,
        noise: (config.noise_fraction > 0.0).then_some(noise),
        random_symmetry: config.random_symmetry,
        reuse: match config.reuse {
            config::Reuse::Gray => Reuse::Gray,
            config::Reuse::Keep => Reuse::Keep,
            config::Reuse::Drop => Reuse::Drop,
        },
        discount: config.discount,
        max_share: config.max_share,
        stop_when_solved: config.stop_when_solved,
        tree_bytes: (ALL_TREES / games.max(1)).clamp(SMALLEST_TREE, LARGEST_TREE),
    };
    settings.check()?;
    Ok(settings)
}

/// The temperature of the move after `played` actions: the first step that is not over decides, after the last it is 0.
pub fn temperature(steps: &[TemperatureStep], played: usize) -> f32 {
    steps
        .iter()
        .find(|step| played < step.until_action as usize)
        .map_or(0.0, |step| step.temperature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_that_is_not_over_decides() {
        let step = |until_action, temperature| TemperatureStep {
            until_action,
            temperature,
        };
        let steps = [step(2, 1.0), step(2, 9.0), step(5, 0.25)];
        let drawn: Vec<f32> = (0..7).map(|played| temperature(&steps, played)).collect();
        assert_eq!(drawn, [1.0, 1.0, 0.25, 0.25, 0.25, 0.0, 0.0]);
        assert_eq!(temperature(&[], 0), 0.0);
    }

    #[test]
    fn every_switch_of_the_configuration_arrives() {
        let config = SearchConfig {
            visits: 7,
            exploration: 2.5,
            first_play: config::FirstPlay::Reduction,
            first_play_reduction: 0.3,
            leaves: 3,
            noise_fraction: 0.5,
            noise_total_alpha: 4.0,
            random_symmetry: false,
            reuse: config::Reuse::Keep,
            discount: 0.9,
            max_share: 0.25,
            stop_when_solved: true,
            temperature: Vec::new(),
            max_actions: 10,
        };
        let expected = Settings {
            traversals: 7,
            exploration: 2.5,
            first_play: FirstPlay::Reduction(0.3),
            leaves: 3,
            noise: Some(Noise {
                fraction: 0.5,
                alpha: Alpha::Total(4.0),
            }),
            random_symmetry: false,
            reuse: Reuse::Keep,
            discount: 0.9,
            max_share: 0.25,
            stop_when_solved: true,
            tree_bytes: 16 << 20,
        };
        assert_eq!(search_settings(&config, 64), Ok(expected));
        let quiet = SearchConfig {
            noise_fraction: 0.0,
            ..config.clone()
        };
        assert_eq!(search_settings(&quiet, 1).unwrap().noise, None);
        let wrong = SearchConfig { leaves: 0, ..config };
        assert_eq!(search_settings(&wrong, 1).unwrap_err().setting, "leaves");
    }

    #[test]
    fn the_default_configuration_is_the_searchs_default() {
        let settings = search_settings(&SearchConfig::default(), 4).unwrap();
        assert_eq!(settings, Settings::default());
    }
}
