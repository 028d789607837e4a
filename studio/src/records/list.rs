//! The list of games: filters, orders, pages.

use std::collections::BTreeSet;

use axum::extract::State;
use futures::{StreamExt as _, stream};
use maud::{Markup, html};
use proto::{
    ids::{hex, parse_hex},
    v1::{GameFilter, GameResult, GameSort, GameSummary, ListGamesReply},
};
use replay_store::client::Order;
use serde::{Deserialize, Serialize};

use crate::{
    app::App,
    board,
    failure::Failure,
    figures::words::{count, moment, version},
    form::Parameters,
    page::{Section, page},
    records::replay::States,
    store::Store,
};

/// Games of a page.
const LIMIT: u32 = 50;
/// Games that are fetched at once for their pictures.
const FETCHED: usize = 8;

/// Query of the list, in the terms of `minuet games list`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    sort: Sort,
    #[serde(skip_serializing_if = "String::is_empty")]
    model: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    ending: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    actor: String,
    cursor: String,
}

/// Orders of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sort {
    #[default]
    Newest,
    Oldest,
    Longest,
    Shortest,
    Surprising,
}

impl Sort {
    const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Newest, "newest", "newest first"),
        (Self::Oldest, "oldest", "oldest first"),
        (Self::Longest, "longest", "longest first"),
        (Self::Shortest, "shortest", "shortest first"),
        (Self::Surprising, "surprising", "most surprising first"),
    ];

    fn order(self) -> Order {
        let (sort, descending) = match self {
            Self::Newest => (GameSort::Time, true),
            Self::Oldest => (GameSort::Time, false),
            Self::Longest => (GameSort::Length, true),
            Self::Shortest => (GameSort::Length, false),
            Self::Surprising => (GameSort::Surprise, true),
        };
        Order { sort, descending }
    }
}

impl Wanted {
    fn filter(&self) -> GameFilter {
        let one = |text: &String| {
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned()).into_iter().collect()
        };
        GameFilter {
            model_versions: one(&self.model),
            endings: one(&self.ending),
            actors: one(&self.actor),
            ..GameFilter::default()
        }
    }

    fn is_filtered(&self) -> bool {
        self.filter() != GameFilter::default()
    }

    fn cursor(&self) -> Result<Vec<u8>, Failure> {
        let wrong = || {
            Failure::BadRequest(
                "The address of this page of the list is damaged; begin again at Games.".into(),
            )
        };
        parse_hex(&self.cursor).ok_or_else(wrong)
    }
}

/// `GET /games`.
///
/// # Errors
/// [`Failure`] if the store does not answer.
pub async fn list(State(app): State<App>, Parameters(wanted): Parameters<Wanted>) -> Result<Markup, Failure> {
    let reply = app
        .store
        .list(wanted.sort.order(), wanted.filter(), LIMIT, wanted.cursor()?)
        .await?;
    let players = app
        .run
        .game()
        .map_err(|error| Failure::Missing(error.to_string()))?
        .player_names;
    let pictures: Vec<_> = reply.games.iter().map(|game| picture(&app.store, game)).collect();
    let pictures: Vec<Markup> = stream::iter(pictures).buffered(FETCHED).collect().await;
    let body = html! {
        h1 { "Games" }
        (form(&wanted, &reply.games))
        @if reply.unreadable > 0 {
            p.warning { (reply.unreadable) " games cannot be read and are left out; " code { "minuet games list" } " says which." }
        }
        @if reply.games.is_empty() {
            p.empty {
                @if wanted.is_filtered() { "No stored game fits. " a href="/games" { "Show all" } }
                @else if !wanted.cursor.is_empty() { "These were all." }
                @else { "No game is finished yet." }
            }
        } @else {
            div.scroll tabindex="0" role="region" aria-label="Games" { (table(&reply.games, &pictures, players)) }
        }
        (next(&wanted, &reply))
    };
    Ok(page(&app, Section::Games, "Games", &["ages.js"], &body))
}

fn form(wanted: &Wanted, games: &[GameSummary]) -> Markup {
    let endings: BTreeSet<&str> = games.iter().map(|game| game.ending.as_str()).collect();
    let models: BTreeSet<&str> = games
        .iter()
        .flat_map(|game| &game.model_versions)
        .map(String::as_str)
        .collect();
    let actors: BTreeSet<&str> = games.iter().map(|game| game.actor.as_str()).collect();
    let field = |name: &str, label: &str, value: &str, known: BTreeSet<&str>| {
        html! {
            label { span { (label) } input name=(name) value=(value) list=(format!("{name}s")) autocomplete="off" placeholder="any"; }
            datalist id=(format!("{name}s")) { @for known in known { option value=(known) {} } }
        }
    };
    html! {
        form.filters method="get" action="/games" {
            label {
                span { "Order" }
                select name="sort" {
                    @for (sort, name, text) in Sort::ALL { option value=(name) selected[sort == wanted.sort] { (text) } }
                }
            }
            (field("ending", "Ending", &wanted.ending, endings))
            (field("model", "Network", &wanted.model, models))
            (field("actor", "Actor", &wanted.actor, actors))
            button type="submit" { "Show" }
            @if wanted.is_filtered() { a href="/games" { "Show all" } }
        }
    }
}

/// Picture of the last position of a game. Nothing if the game has left the store since it was listed, or its rules are unknown here.
async fn picture(store: &Store, game: &GameSummary) -> Markup {
    let Ok(game) = store.game(&game.id).await else {
        return Markup::default();
    };
    let end = States::of(&game).ok().and_then(|states| {
        let last = states.all.len().checked_sub(1)?;
        states.scene(&game, last)
    });
    end.map_or_else(Markup::default, |end| board::small(&end))
}

fn table(games: &[GameSummary], pictures: &[Markup], players: [&str; 2]) -> Markup {
    html! {
        table.games {
            thead {
                tr {
                    th scope="col" { "Result" }
                    th scope="col" { "Ending" }
                    th.number scope="col" { "Moves" }
                    th.number scope="col" { abbr title="Mean divergence of the visits from the network's priors, in nats" { "Surprise" } }
                    th scope="col" { "Network" }
                    th scope="col" { "Ended" }
                    th scope="col" { "Actor" }
                }
            }
            tbody {
                @for (game, picture) in games.iter().zip(pictures) {
                    tr {
                        th scope="row" {
                            a.pictured href=(format!("/games/{}?ply=0", hex(&game.id))) { (picture) (result(game.result, players)) }
                        }
                        td { (game.ending.replace('-', " ")) }
                        td.number { (count(f64::from(game.positions))) }
                        td.number { (format!("{:.2}", game.surprise)) }
                        td { @if let Some(model) = game.model_versions.last() { (version(model)) } }
                        td { (moment(game.finished_at_ms)) }
                        td { (game.actor) }
                    }
                }
            }
        }
    }
}

fn next(wanted: &Wanted, reply: &ListGamesReply) -> Markup {
    let next = Wanted {
        cursor: hex(&reply.next_cursor),
        ..wanted.clone()
    };
    // Texts and unit variants can always be written as a query.
    let query = serde_urlencoded::to_string(&next).unwrap_or_default();
    html! {
        @if !reply.next_cursor.is_empty() {
            p { a.button href=(format!("/games?{query}")) { "More games" } }
        }
    }
}

fn result(result: i32, [first, second]: [&str; 2]) -> String {
    match GameResult::try_from(result) {
        Ok(GameResult::FirstWon) => format!("{first} won"),
        Ok(GameResult::SecondWon) => format!("{second} won"),
        Ok(GameResult::Draw) => "draw".into(),
        Ok(GameResult::Scored) => "scored".into(),
        _ => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_cursors_are_refused() {
        let with = |cursor: &str| Wanted {
            cursor: cursor.into(),
            ..Wanted::default()
        };
        assert_eq!(with("01ff").cursor().unwrap(), [1, 255]);
        assert!(with("").cursor().unwrap().is_empty());
        for wrong in ["0", "zz", "é"] {
            assert!(with(wrong).cursor().is_err(), "{wrong}");
        }
    }
}
