//! [`Slots`]: parts of a page that change, and the stream that keeps those of an open page current.
//!
//! A page is made of the same parts that its stream sends, so that both agree. The stream sends a part only when it has changed.

use std::{borrow::Cow, collections::BTreeMap, convert::Infallible, time::Duration};

use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt as _, stream};
use maud::{Markup, PreEscaped, html};
use serde_json::json;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::{app::App, failure::Failure};

/// Time between two checks for changes.
const INTERVAL: Duration = Duration::from_secs(1);

/// Changing parts of a page, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots(BTreeMap<Cow<'static, str>, String>);

impl Slots {
    /// Adds a part.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, content: Markup) -> Self {
        self.0.insert(name.into(), content.into_string());
        self
    }

    /// The present content of a part; nothing if there is no such part.
    pub fn content(&self, name: &str) -> PreEscaped<&str> {
        PreEscaped(self.0.get(name).map_or("", String::as_str))
    }

    /// The place of a part in a page, with its present content.
    pub fn show(&self, name: &str) -> Markup {
        html! { div.slot data-slot=(name) { (self.content(name)) } }
    }

    /// The HTML of the parts that differ from those of `before`.
    pub fn since(&self, before: &Self) -> BTreeMap<&str, &str> {
        let changed = self
            .0
            .iter()
            .filter(|(name, content)| before.0.get(*name) != Some(*content));
        changed.map(|(name, content)| (&**name, &**content)).collect()
    }

    /// All parts, as a JSON object of HTML.
    pub fn json(&self) -> axum::Json<&BTreeMap<Cow<'static, str>, String>> {
        axum::Json(&self.0)
    }
}

struct Watching<R> {
    ticks: Interval,
    sent: Slots,
    render: R,
}

/// Streams the changes of `render`, which is called once a second. The stream ends with the studio.
///
/// # Errors
/// [`Failure::Busy`] if too many streams are open.
pub fn stream<R, F>(
    app: &App,
    render: R,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<R, F>>, Failure>
where
    R: FnMut() -> F + Send + 'static,
    F: Future<Output = Slots> + Send,
{
    let permit = app.stream_permit().ok_or_else(|| {
        Failure::Busy("Too many pages are open at once; close some, and load this one again.".into())
    })?;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watching = Watching {
        ticks,
        sent: Slots::default(),
        render,
    };
    let changes = stream::unfold(watching, |mut watching| async {
        loop {
            watching.ticks.tick().await;
            let slots = (watching.render)().await;
            let changed = slots.since(&watching.sent);
            if !changed.is_empty() {
                let changes = json!(changed).to_string();
                watching.sent = slots;
                return Some((Ok(Event::default().event("slots").data(changes)), watching));
            }
        }
    });
    let changes = changes
        .take_until(app.ending.clone().cancelled_owned())
        .map(move |event| {
            let _held_while_open = &permit;
            event
        });
    Ok(Sse::new(changes).keep_alive(KeepAlive::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_parts_are_sent() {
        let before = Slots::default()
            .with("one", html! { "1" })
            .with("two", html! { b { "2" } });
        let after = before.clone().with("two", html! { b { "3 < 4" } });
        assert_eq!(after.since(&before), [("two", "<b>3 &lt; 4</b>")].into());
        assert!(after.since(&after).is_empty());
    }
}
