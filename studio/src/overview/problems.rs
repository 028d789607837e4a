//! Progress with the problems of the run's game, by kind. Games without problems have no such part.

use maud::{Markup, html};

use super::state::State;
use crate::{
    figures::words::{percent, shown},
    play::tables::Facts,
    run::Run,
};

/// True if the run's game is about problems.
pub fn are_in(run: &Run) -> bool {
    Facts::of(&run.config.game.name).is_ok_and(|facts| facts.levels > 0)
}

/// Level, share of solved problems and length of their solutions, for each kind of problem.
pub fn problems(state: &State) -> Markup {
    let newest = state.journal.newest.as_ref();
    let kinds = newest.map_or(&[][..], |now| &now.summary.problems);
    html! {
        @if kinds.is_empty() {
            p.empty { "Level, solved problems and lengths of solutions, by kind of problem." }
        } @else {
            table.figures {
                thead {
                    tr {
                        th scope="col" { "Kind" }
                        th scope="col" { "Level" }
                        th scope="col" { "Solved" }
                        th scope="col" { "Moves" }
                    }
                }
                tbody {
                    @for kind in kinds {
                        tr {
                            th scope="row" { (kind.kind) }
                            td { (kind.shown_level()) }
                            td { (shown(kind.solve_rate, percent)) span.quiet { " of " (kind.recent) } }
                            td { (shown(kind.moves, |moves| format!("{moves:.1}"))) }
                        }
                    }
                }
            }
            p.quiet.small { "The latest problems of the present level. When enough of them are solved, the next level begins." }
        }
    }
}
