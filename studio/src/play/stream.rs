//! The stream of events that keeps a page current: only pieces that have changed are sent.

use std::{collections::HashMap, convert::Infallible, sync::Arc};

use axum::{
    extract::{Path, State},
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::stream::{self, Stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use super::table::{AnyTable, Watching};
use crate::{
    app::App,
    board::View,
    failure::{Failure, InJson},
    form::Parameters,
};

/// Choices of the page about its look.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Asked {
    /// True if the second player sits at the lower edge.
    #[serde(default)]
    flip: bool,
}

/// One open stream.
struct Open {
    table: Arc<dyn AnyTable>,
    view: View,
    changes: watch::Receiver<u64>,
    ending: CancellationToken,
    /// Pieces that the page has, by name.
    sent: HashMap<&'static str, String>,
    is_first: bool,
    _watching: Watching,
    _permit: OwnedSemaphorePermit,
}

pub(super) async fn events(
    State(app): State<App>,
    Path(id): Path<String>,
    Parameters(asked): Parameters<Asked>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, InJson> {
    let table = app.tables().table(&id)?;
    let permit = app
        .stream_permit()
        .ok_or_else(|| Failure::Busy("Too many pages are open; close one first.".into()))?;
    let open = Open {
        view: View {
            flipped: asked.flip,
            interactive: true,
        },
        changes: table.changes(),
        ending: app.ending().clone(),
        sent: HashMap::new(),
        is_first: true,
        _watching: Arc::clone(&table).watch(),
        _permit: permit,
        table,
    };
    let events = stream::unfold(open, |mut open| async move {
        let event = open.next().await?;
        Some((Ok(event), open))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

impl Open {
    /// Waits for a change. `None` at the end of the studio.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if !self.is_first {
                tokio::select! {
                    () = self.ending.cancelled() => return None,
                    changed = self.changes.changed() => changed.ok()?,
                }
            }
            self.changes.mark_unchanged();
            let slots = self.table.slots(self.view);
            let mut html = Map::new();
            for (name, text) in slots.html {
                if self.sent.get(name) != Some(&text) {
                    html.insert(name.into(), Value::from(text.clone()));
                    self.sent.insert(name, text);
                }
            }
            let offers = json!(slots.offers);
            let flags = json!({ "at": slots.at, "analysing": slots.analysing, "paused": slots.paused });
            let rest = format!("{offers}{flags}");
            let is_changed = self.sent.get("offers") != Some(&rest);
            if html.is_empty() && !is_changed && !self.is_first {
                continue;
            }
            self.is_first = false;
            let mut event = json!({ "slots": html, "flags": flags });
            if is_changed {
                event["offers"] = offers;
                self.sent.insert("offers", rest);
            }
            return Some(Event::default().event("table").data(event.to_string()));
        }
    }
}
