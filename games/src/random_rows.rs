//! Rows of positions from random play.

use crate::{StartError, Symmetry, erased::Variant};

/// One position of this number is written, on average, so that few games give different positions.
const SPACING: usize = 4;
/// Maximum length of a random game, in actions.
const LONGEST: usize = 200;
/// Highest level of the problems at which random games begin.
const HARDEST: u32 = 16;

impl dyn Variant {
    /// Returns the concatenated rows of `positions` positions of random play. `draw(n)` gives a random number below `n`. Games about
    /// problems begin at problems of levels 1 to 16.
    ///
    /// # Errors
    /// [`StartError`] if the rules are not possible.
    pub fn random_rows(
        &self,
        positions: usize,
        draw: &mut dyn FnMut(usize) -> usize,
    ) -> Result<Vec<u32>, StartError> {
        let levels = self.game().levels.min(HARDEST) as usize;
        let mut rows = Vec::with_capacity(positions * self.layout().row_lengths().start());
        let (mut legal, mut written) = (Vec::new(), 0);
        while written < positions {
            let problem = match levels {
                0 => None,
                levels => self.draw_start(1 + draw(levels) as u32, false, draw),
            };
            let mut state = match problem {
                Some(drawn) => drawn.start,
                None => self.start(None)?,
            };
            for _ in 0..LONGEST {
                if written == positions || state.outcome().is_some() {
                    break;
                }
                if draw(SPACING) == 0 {
                    state.write_row(Symmetry::IDENTITY, &mut rows);
                    written += 1;
                }
                state.legal_actions(&mut legal);
                if legal.is_empty() {
                    break;
                }
                state.play_legal(legal[draw(legal.len())]);
            }
        }
        Ok(rows)
    }
}
