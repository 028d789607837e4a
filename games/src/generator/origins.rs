//! Origins of imps: for each imp after a move its number before the move.

use super::{
    clan::Clan,
    grammar::{GROUP, MAX_IMPS},
    moves::Move,
};

/// Numbers before a move of the imps after it. `None` for a new imp.
pub(super) type Origins = Vec<Option<usize>>;

impl Clan {
    /// Returns the origins of the imps after a move of `imp` that does not fail. A copy is new, and so are the group or
    /// rotation that an imp is put into.
    pub(super) fn origins(&self, imp: usize, made: Move) -> Origins {
        let mut origins: Origins = (0..self.len()).map(Some).collect();
        let end = self.end(imp);
        let insert = |origins: &mut Origins, at: usize, count: usize| {
            drop(origins.splice(at..at, std::iter::repeat_n(None, count.min(MAX_IMPS))));
        };
        match made.0 {
            Move::APPEND_DOT | Move::INSERT_DOT => insert(&mut origins, end, 5),
            Move::APPEND_DOT..=Move::INSERT_RECT => insert(&mut origins, end, 7),
            Move::DELETE => drop(origins.drain(imp..end)),
            Move::DUPLICATE => insert(&mut origins, end, end - imp),
            Move::SWAP if end < self.len() => {
                let next = self.end(end);
                origins[imp..next].rotate_left(end - imp);
            }
            Move::WRAP_GROUP | Move::GROUP_WITH_NEXT => insert(&mut origins, imp, 1),
            Move::WRAP_ROTATION => {
                insert(&mut origins, end, 4);
                insert(&mut origins, imp, 1);
            }
            Move::UNWRAP => {
                if self.values[imp] != GROUP {
                    // Turns and pivot stand behind the child.
                    drop(origins.drain(end.saturating_sub(4)..end));
                }
                origins.remove(imp);
            }
            Move::DOT_TO_LINE => insert(&mut origins, imp + 5, 2),
            Move::DOT_TO_RECT => insert(&mut origins, imp + 1, 2),
            Move::LINE_TO_DOT => drop(origins.drain(imp + 5..imp + 7)),
            Move::RECT_TO_DOT => drop(origins.drain(imp + 1..imp + 3)),
            _ => {}
        }
        origins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::grammar;

    /// Returns random clans: a walk of 30 moves from the start, by a linear congruential generator (Knuth, MMIX).
    fn walk(mut seed: u64, mut each: impl FnMut(&Clan, usize, Move, &Clan)) {
        let mut clan = Clan::start();
        for _ in 0..30 {
            let mut fitting = Vec::new();
            for imp in 0..clan.len() {
                let moves = (2..38).map(Move);
                fitting.extend(moves.filter_map(|made| Some((imp, made, clan.after(imp, made)?))));
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Every other move changes the tree.
            if seed >> 40 & 1 == 0 {
                fitting.retain(|(_, made, _)| made.0 < Move::INC);
            }
            for (imp, made, after) in &fitting {
                each(&clan, *imp, *made, after);
            }
            let Some(&(_, _, after)) = fitting.get((seed >> 33) as usize % fitting.len().max(1)) else {
                return;
            };
            clan = after;
        }
    }

    #[test]
    fn an_imp_keeps_its_value_its_parent_and_its_place_among_its_siblings() {
        let mut seen = [0u32; 38];
        for seed in 1..12 {
            walk(seed, |clan, imp, made, after| {
                seen[usize::from(made.0)] += 1;
                let origins = clan.origins(imp, made);
                let name = made.name();
                assert_eq!(origins.len(), after.len(), "{name}");
                let mut kept: Vec<usize> = origins.iter().flatten().copied().collect();
                if made.0 != Move::SWAP {
                    assert!(kept.is_sorted(), "{name}");
                }
                kept.sort_unstable();
                kept.dedup();
                assert_eq!(kept.len(), origins.iter().flatten().count(), "{name}");
                for (now, &before) in origins.iter().enumerate() {
                    let Some(before) = before else { continue };
                    let changes = made.0 >= Move::INC || (before == imp && made.0 >= Move::DOT_TO_LINE);
                    assert!(
                        changes || after.values()[now] == clan.values()[before],
                        "{name}: imp {before} became {now}"
                    );
                    let role = clan.roles()[before];
                    assert!(
                        role >= grammar::R_SHAPES || role == grammar::R_SHAPE || after.roles()[now] == role,
                        "{name}"
                    );
                    // A parent stays, unless it is the one that is put in between or taken out.
                    let parent = origins[usize::from(after.parents()[now])];
                    if let Some(parent) = parent.filter(|_| made.0 != Move::UNWRAP) {
                        assert_eq!(parent, usize::from(clan.parents()[before]), "{name}");
                    }
                }
            });
        }
        let all = seen[2..].iter().all(|&count| count > 0);
        assert!(all, "{seen:?}");
    }
}
