//! The stream of events that keeps a page current: only pieces that have changed are sent.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::{Path, State},
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::stream::{self, Stream};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use super::table::{Shown, Table, Watching};
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
    table: Arc<Table>,
    view: View,
    changes: watch::Receiver<u64>,
    ending: CancellationToken,
    /// Content of the page. `None`: nothing is sent yet.
    sent: Option<Shown>,
    _watching: Watching,
    _permit: OwnedSemaphorePermit,
}

pub(super) async fn events(
    State(app): State<App>,
    Path(id): Path<String>,
    Parameters(asked): Parameters<Asked>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, InJson> {
    let table = app.tables.table(&id)?;
    let permit = app
        .stream_permit()
        .ok_or_else(|| Failure::Busy("Too many pages are open; close one first.".into()))?;
    let open = Open {
        view: View {
            flipped: asked.flip,
            interactive: true,
        },
        changes: table.changes(),
        ending: app.ending.clone(),
        sent: None,
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
            if self.sent.is_some() {
                tokio::select! {
                    () = self.ending.cancelled() => return None,
                    changed = self.changes.changed() => changed.ok()?,
                }
            }
            self.changes.mark_unchanged();
            let shown = self.table.shown(self.view);
            let is_first = self.sent.is_none();
            let before = self.sent.get_or_insert_default();
            let html = shown.html.since(&before.html);
            let is_changed = is_first || (&shown.offers, &shown.flags) != (&before.offers, &before.flags);
            if html.is_empty() && !is_changed {
                continue;
            }
            let mut event = json!({ "slots": html, "flags": shown.flags });
            if is_changed {
                event["offers"] = json!(shown.offers);
            }
            *before = shown;
            return Some(Event::default().event("table").data(event.to_string()));
        }
    }
}
