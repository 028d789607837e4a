//! The stored games: a list with filters, and the replay of one game.
//!
//! | module | contents |
//! |---|---|
//! | [`list`] | the list |
//! | [`replay`] | a game's positions, and what the search thought in each |
//! | [`page`](mod@page) | the page of a game |

pub mod list;
pub mod page;
pub mod replay;

use axum::{Router, routing::get};

use crate::app::App;

/// Routes of the games.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/games", get(list::list))
        .route("/games/{id}", get(page::game))
        .route("/games/{id}/at/{ply}", get(page::at))
}
