//! Clocks of the players: main time, then periods in which a number of moves must be made (byo-yomi, Canadian overtime).

use std::time::Duration;

use games::Player;

use crate::uci::{
    clock::{Budget, budget},
    command::Limits,
};

/// Reserve for each move for time lost outside the engine.
const OVERHEAD: Duration = Duration::from_millis(100);
/// Longest time that a clock can have.
const LONGEST: f64 = 1e7;

/// Time control of a game.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clocks {
    main: Duration,
    period: Duration,
    /// Moves in each period; 0: there are no periods.
    stones: u32,
    players: [Clock; 2],
}

/// Clock of one player.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Clock {
    left: Duration,
    /// Moves left in this period; 0 in the main time.
    stones: u32,
}

impl Clocks {
    /// Makes clocks from the arguments of `time_settings`, in seconds. `None` if the game has no limit.
    ///
    /// # Errors
    /// Sentence that names the number at fault.
    pub fn new(main: &str, period: &str, stones: &str) -> Result<Option<Self>, String> {
        let (main, period, stones) = (seconds(main)?, seconds(period)?, count(stones)?);
        let has_limit = if period.is_zero() {
            !main.is_zero()
        } else {
            stones > 0
        };
        let begin = Clock {
            left: main,
            stones: 0,
        };
        let mut clocks = Self {
            main,
            period,
            stones: if period.is_zero() { 0 } else { stones },
            players: [begin; 2],
        };
        clocks.restart();
        Ok(has_limit.then_some(clocks))
    }

    /// Sets both clocks to the beginning of a game.
    pub fn restart(&mut self) {
        let main = Clock {
            left: self.main,
            stones: 0,
        };
        let begin = if self.main.is_zero() {
            self.in_period()
        } else {
            main
        };
        self.players = [begin; 2];
    }

    const fn in_period(&self) -> Clock {
        Clock {
            left: self.period,
            stones: self.stones,
        }
    }

    /// Sets the clock of a player from the arguments of `time_left`.
    ///
    /// # Errors
    /// Sentence that names the number at fault.
    pub fn set(&mut self, player: Player, left: &str, stones: &str) -> Result<(), String> {
        self.players[player.index()] = Clock {
            left: seconds(left)?,
            stones: count(stones)?,
        };
        Ok(())
    }

    /// Returns the time for the next move of a player.
    pub fn budget(&self, player: Player) -> Option<Budget> {
        let clock = self.players[player.index()];
        let mut limits = Limits::default();
        limits.time[player.index()] = Some(clock.left);
        match (clock.stones, self.stones) {
            (0, 0) => {}
            // After the main time there is a share of a period for each move.
            (0, stones) => limits.increment[player.index()] = self.period / stones,
            (left, _) => limits.moves_to_go = Some(left),
        }
        budget(&limits, player.index(), OVERHEAD, Duration::ZERO)
    }

    /// Records that a player's move took the time `used`.
    pub fn used(&mut self, player: Player, used: Duration) {
        let period = self.in_period();
        let clock = &mut self.players[player.index()];
        match clock.stones {
            0 if used >= clock.left && period.stones > 0 => {
                let over = used - clock.left;
                *clock = period;
                clock.left = clock.left.saturating_sub(over);
            }
            // The last move of a period begins another one.
            1 => *clock = period,
            stones => {
                clock.left = clock.left.saturating_sub(used);
                clock.stones = stones.saturating_sub(1);
            }
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| number.is_finite());
    let number = number.ok_or_else(|| format!("syntax error: {text:?} is not a number of seconds"))?;
    // A clock that has run out may be negative.
    Ok(Duration::from_secs_f64(number.clamp(0.0, LONGEST)))
}

fn count(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("syntax error: {text:?} is not a number of moves"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clocks(main: &str, period: &str, stones: &str) -> Option<Clocks> {
        Clocks::new(main, period, stones).unwrap()
    }

    #[test]
    fn a_game_without_limits_has_no_clocks() {
        assert_eq!(clocks("0", "1", "0"), None);
        assert_eq!(clocks("60", "1", "0"), None);
        assert_eq!(clocks("0", "0", "0"), None);
        for words in [["x", "0", "0"], ["1", "NaN", "0"], ["1", "1", "-1"]] {
            let [main, period, stones] = words;
            assert!(Clocks::new(main, period, stones).is_err());
        }
    }

    #[test]
    fn moves_stay_within_main_time_and_periods() {
        let mut clocks = clocks("60", "30", "5").unwrap();
        let black = Player::First;
        let main = clocks.budget(black).unwrap();
        assert!(main.soft > SECOND && main.hard < 20 * SECOND, "{main:?}");
        clocks.used(black, 65 * SECOND);
        // 25 seconds are left for five moves.
        let period = clocks.budget(black).unwrap();
        assert!(period.soft > 4 * SECOND && period.soft < 5 * SECOND, "{period:?}");
        for _ in 0..4 {
            clocks.used(black, SECOND);
        }
        let last = clocks.budget(black).unwrap();
        assert!(last.soft > 15 * SECOND && last.hard < 21 * SECOND, "{last:?}");
        clocks.used(black, SECOND);
        assert_eq!(clocks.players[0], clocks.in_period());
        assert_eq!(clocks.players[1].left, 60 * SECOND);
        clocks.set(Player::Second, "-3", "0").unwrap();
        assert!(clocks.budget(Player::Second).unwrap().hard < SECOND);
    }
}
