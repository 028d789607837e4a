//! One `Export` stream. Games are read in small steps, for which memory is reserved first.

use std::sync::Arc;

use futures::stream::BoxStream;
use prost::Message as _;
use proto::v1::{ExportRequest, StoredGame};
use service::calls::replies::{Replies, Reserved, handing_over};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{Rpc, parse_filter, shutting_down};
use crate::{record::filter::Filter, store::reading::EXPORT_BYTES};

/// Maximum number of games that one step reads, and of games that wait for the client.
const STEP: usize = 16;

type Games = mpsc::Sender<(Result<StoredGame, Status>, Reserved)>;

/// Checks the request and serves the stream in a new task.
pub(super) fn start(
    rpc: Rpc,
    replies: Replies,
    request: ExportRequest,
) -> Result<BoxStream<'static, Result<StoredGame, Status>>, Status> {
    let ExportRequest {
        from_sequence,
        to_sequence,
        filter,
    } = request;
    let filter = Arc::new(parse_filter(filter)?);
    let to = if to_sequence == 0 { u64::MAX } else { to_sequence };
    let (games, stream) = mpsc::channel(STEP);
    tokio::spawn(async move {
        let end = tokio::select! {
            end = run(&rpc, &replies, (from_sequence, to), &filter, &games) => end,
            () = rpc.shutdown.cancelled() => Err(shutting_down()),
            () = games.closed() => Ok(()),
        };
        if let Err(status) = end {
            // Sending fails if the client has disconnected.
            let _ = games.send((Err(status), Reserved::default())).await;
        }
    });
    Ok(handing_over(ReceiverStream::new(stream)))
}

/// Sends the games that the filter selects, from and to these sequence numbers, and at last the number of those that cannot be read.
async fn run(
    rpc: &Rpc,
    replies: &Replies,
    (mut from, to): (u64, u64),
    filter: &Arc<Filter>,
    games: &Games,
) -> Result<(), Status> {
    let mut unreadable = 0;
    loop {
        let filter = Arc::clone(filter);
        let mut reserved = replies.reserve(EXPORT_BYTES).await;
        let step = rpc
            .scanning(move |store| store.export((from, to), STEP, &filter))
            .await?;
        let Some(step) = step else {
            break;
        };
        from = step.next;
        unreadable += step.unreadable;
        let charged: Vec<_> = step
            .games
            .into_iter()
            .map(|game| (reserved.split(game.encoded_len()), game))
            .collect();
        drop(reserved);
        for (reserved, game) in charged {
            if games.send((Ok(game), reserved)).await.is_err() {
                return Ok(());
            }
        }
    }
    if unreadable > 0 {
        let last = StoredGame {
            unreadable,
            ..StoredGame::default()
        };
        // Sending fails if the client has disconnected.
        let _ = games.send((Ok(last), Reserved::default())).await;
    }
    Ok(())
}
