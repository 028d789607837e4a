//! The stream that keeps the [`Slots`] of an open page current.
//!
//! A page is made of the same parts that its stream sends, so that both agree. The stream sends a part only when it has changed.

use std::{convert::Infallible, time::Duration};

use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt as _, stream};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::{app::App, failure::Failure, slots::Slots};

/// Time between two looks at what has changed.
const INTERVAL: Duration = Duration::from_secs(1);

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
            let changes = slots.since(&watching.sent);
            watching.sent = slots;
            if let Some(changes) = changes {
                return Some((Ok(Event::default().event("slots").data(changes)), watching));
            }
        }
    });
    let changes = changes
        .take_until(app.ending().clone().cancelled_owned())
        .map(move |event| {
            let _held_while_open = &permit;
            event
        });
    Ok(Sse::new(changes).keep_alive(KeepAlive::default()))
}
