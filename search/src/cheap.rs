//! Cheap decisions of two-player self-play: few visits, no noise, and a position that is not learned from. Playout cap randomisation draws them
//! ([`Settings::cheap_share`]); fast finish makes them where the game is decided ([`Settings::decided_value`]). Both are KataGo's
//! (Wu, 2019, "Accelerating Self-Play Learning in Go").

use games::{Game, Player};

use crate::{
    draws::{Draws, Purpose},
    search::Search,
    settings::Settings,
};

/// Number of turns in a row that one player must be winning before a game counts as decided.
const TURNS: u32 = 3;

/// Number of turns for which the searches of a game have agreed on its winner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agreement {
    /// Player who was winning at the last turn; `None` if neither was.
    winner: Option<Player>,
    /// Number of turns in a row for which that player was winning.
    turns: u32,
    /// Player of the last action.
    mover: Option<Player>,
}

impl Agreement {
    /// Returns the agreement after an action of `mover`. `winner` is asked for the winning player at the first action of a turn.
    fn after(self, mover: Player, winner: impl FnOnce() -> Option<Player>) -> Self {
        if self.mover == Some(mover) {
            return self;
        }
        let winner = winner();
        let turns = match winner {
            None => 0,
            same if same == self.winner => self.turns + 1,
            _ => 1,
        };
        Self {
            winner,
            turns,
            mover: Some(mover),
        }
    }
}

impl<G: Game> Search<G> {
    /// Returns true if this decision takes [`Settings::cheap_visits`] visits without noise. Its position is not learned from.
    pub fn is_cheap(&self) -> bool {
        self.is_cheap
    }

    /// Number of visits of this decision.
    pub(crate) fn visits(&self) -> u32 {
        match self.is_cheap {
            true => self.settings.cheap_visits.min(self.settings.visits),
            false => self.settings.visits,
        }
    }

    /// Returns true if this decision has noise.
    pub(crate) fn explores(&self) -> bool {
        self.settings.noise_fraction > 0.0 && !self.is_cheap
    }

    /// Decides whether the decision that begins is cheap.
    pub(crate) fn draw_cheap(&self) -> bool {
        let Settings {
            noise_fraction,
            cheap_share,
            ..
        } = self.settings;
        if G::PLAYERS != 2 || noise_fraction <= 0.0 {
            return false;
        }
        let is_drawn = || Draws::new(self.key, self.ply, Purpose::Cheap).unit() < f64::from(cheap_share);
        self.agreement.turns >= TURNS || (cheap_share > 0.0 && is_drawn())
    }

    /// Returns the agreement on the winner after an action at this decision.
    pub(crate) fn next_agreement(&self) -> Agreement {
        let least = self.settings.decided_value;
        if least <= 0.0 {
            return Agreement::default();
        }
        let mover = self.state.to_move();
        self.agreement.after(mover, || {
            let value = self.decision().value.of_first(mover).get();
            let is_won = |value: f32| value >= least;
            match (is_won(value), is_won(-value)) {
                (true, _) => Some(Player::First),
                (_, true) => Some(Player::Second),
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_game_is_decided_after_three_turns_of_one_winner() {
        use Player::{First, Second};

        let turns = |actions: &[(Player, Option<Player>)]| {
            let after = |agreement: Agreement, &(mover, winner): &(Player, Option<Player>)| {
                agreement.after(mover, || winner)
            };
            actions.iter().fold(Agreement::default(), after).turns
        };
        let (first, second) = (Some(First), Some(Second));
        assert_eq!(turns(&[(First, first), (Second, first), (First, first)]), 3);
        // The second action of a turn is not asked.
        assert_eq!(turns(&[(First, first), (First, second), (Second, first)]), 2);
        assert_eq!(turns(&[(First, first), (Second, None), (First, first)]), 1);
        assert_eq!(turns(&[(First, first), (Second, second)]), 1);
        assert_eq!(turns(&[(First, first), (Second, None)]), 0);
    }
}
