//! Training targets beside policy and value, by name.
//!
//! All names of targets are in this list. A store computes a target from the game record, a batch carries it as a column of
//! its name, and an auxiliary head of the network is trained towards it. The soft policy follows from the policy target, so a learner
//! computes it, and no store sends it.

use std::borrow::Cow;

use crate::{
    columns::{ColumnError, SparsePolicies, check_length},
    v1::{Batch, TargetColumn},
};

/// A training target beside policy and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Visits of the other player's reply: the first later position of the game in which the other player acted. Policy
    /// indices are those of that position's own row. Empty if nobody replied or the reply was not searched fully.
    OpponentPolicy,
    /// Number of actions to the end of the game, this position's included; at least 1.
    MovesLeft,
    /// The policy target, flattened: its shares to the power of a quarter, scaled to the sum 1.
    SoftPolicy,
}

/// Shape of a target, which decides how a symmetry changes it and which loss fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One number for each position, which no symmetry changes.
    Number,
    /// Visits of the other player's actions. A symmetry transforms the actions as it transforms the row.
    OpponentPolicy,
    /// Shares of the actions of the player to act.
    OwnPolicy,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 3] = [Self::OpponentPolicy, Self::MovesLeft, Self::SoftPolicy];

    /// Returns the name of the target, of its column, of its head and of the head's loss.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpponentPolicy => "opponent_policy",
            Self::MovesLeft => "moves_left",
            Self::SoftPolicy => "soft_policy",
        }
    }

    /// Returns the shape of the target.
    pub const fn shape(self) -> Shape {
        match self {
            Self::OpponentPolicy => Shape::OpponentPolicy,
            Self::MovesLeft => Shape::Number,
            Self::SoftPolicy => Shape::OwnPolicy,
        }
    }

    /// True if a store computes the target and sends it in a column.
    pub const fn is_sent(self) -> bool {
        !matches!(self, Self::SoftPolicy)
    }

    /// Returns the target of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }
}

impl Batch {
    fn target(&self, target: Target) -> Option<&TargetColumn> {
        self.targets.iter().find(|column| column.name == target.name())
    }

    /// Returns a target of one number for each position. A batch of an earlier release has no named columns; its own field
    /// is taken then.
    ///
    /// # Errors
    /// [`ColumnError`] if the batch does not have one number for each position.
    pub fn number_target(&self, target: Target) -> Result<Cow<'_, [f32]>, ColumnError> {
        let numbers = match (self.target(target), target) {
            (Some(column), _) => Cow::Borrowed(column.numbers.as_slice()),
            (None, Target::MovesLeft) => self.moves_left.iter().map(|&left| left as f32).collect(),
            (None, _) => Cow::Borrowed(&[][..]),
        };
        check_length(target.name(), numbers.len(), self.positions as usize)?;
        Ok(numbers)
    }

    /// Returns a target of sparse policies. A batch of an earlier release has no named columns; its own fields are taken
    /// then.
    ///
    /// # Errors
    /// [`ColumnError`] if the batch does not have one policy for each position, or the columns' lengths do not add up.
    pub fn policy_target(&self, target: Target) -> Result<SparsePolicies<'_>, ColumnError> {
        match self.target(target) {
            Some(column) => SparsePolicies::new(
                [target.name(); 3],
                [&column.counts, &column.actions, &column.visits],
                self.positions as usize,
            ),
            None => self.reply_columns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_targets_are_one_to_one() {
        for target in Target::ALL {
            assert_eq!(Target::from_name(target.name()), Some(target));
        }
        assert_eq!(Target::from_name("nosuch"), None);
    }

    #[test]
    fn named_columns_count_before_the_fields_of_earlier_releases() {
        let mut batch = Batch {
            positions: 2,
            moves_left: vec![3, 4],
            reply_counts: vec![0, 1],
            reply_actions: vec![7],
            reply_visits: vec![9],
            ..Batch::default()
        };
        assert_eq!(*batch.number_target(Target::MovesLeft).unwrap(), [3.0, 4.0]);
        let replies: Vec<_> = batch.policy_target(Target::OpponentPolicy).unwrap().collect();
        assert_eq!(replies, [(&[][..], &[][..]), (&[7], &[9])]);

        batch.targets = vec![
            TargetColumn {
                name: "moves_left".into(),
                numbers: vec![5.0, 6.0],
                ..TargetColumn::default()
            },
            TargetColumn {
                name: "opponent_policy".into(),
                counts: vec![1, 0],
                actions: vec![2],
                visits: vec![3],
                ..TargetColumn::default()
            },
        ];
        assert_eq!(*batch.number_target(Target::MovesLeft).unwrap(), [5.0, 6.0]);
        let replies: Vec<_> = batch.policy_target(Target::OpponentPolicy).unwrap().collect();
        assert_eq!(replies, [(&[2][..], &[3][..]), (&[], &[])]);

        batch.targets[0].numbers.pop();
        let error = batch.number_target(Target::MovesLeft).unwrap_err();
        assert_eq!((error.column, error.found, error.expected), ("moves_left", 1, 2));
    }
}
