//! The load on the store: streams of games, streams of batches.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use prost::Message as _;
use proto::v1::{Purpose, SampleRequest, replay_store_client::ReplayStoreClient};
use service::connect::MAX_MESSAGE_BYTES;
use tonic::transport::Channel;

use super::pool::Pool;

/// The connections.
pub struct Load {
    clients: Vec<ReplayStoreClient<Channel>>,
}

impl Load {
    /// Prepares `streams` connections.
    pub fn new(address: &str, streams: usize) -> anyhow::Result<Self> {
        let clients = (0..streams)
            .map(|_| {
                let channel = service::connect::channel(address)?;
                Ok(ReplayStoreClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { clients })
    }

    /// Sends games for `seconds`; returns the number of positions in acknowledged games, all of them new.
    pub async fn append(&self, pool: &Pool, seconds: f64) -> anyhow::Result<u64> {
        let is_over = AtomicBool::new(false);
        let streams = self.clients.iter().map(async |client| {
            let (sender, games) = tokio::sync::mpsc::channel(32);
            let send = async {
                while !is_over.load(Ordering::Relaxed) {
                    if sender.send(pool.next()).await.is_err() {
                        break;
                    }
                }
                drop(sender);
                anyhow::Ok(())
            };
            let receive = async {
                let games = tokio_stream::wrappers::ReceiverStream::new(games);
                let mut acks = client.clone().append(games).await?.into_inner();
                let mut positions = 0;
                while let Some(ack) = acks.message().await? {
                    ensure!(
                        !ack.duplicate && ack.refused.is_empty(),
                        "a game is refused: {ack:?}"
                    );
                    positions += pool.positions(&ack.id);
                }
                Ok(positions)
            };
            let ((), positions) = tokio::try_join!(send, receive)?;
            anyhow::Ok(positions)
        });
        let clock = async {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            is_over.store(true, Ordering::Relaxed);
            Ok(())
        };
        let (positions, ()) = tokio::try_join!(try_join_all(streams), clock)?;
        Ok(positions.into_iter().sum())
    }

    /// Returns the size of a batch's message, in bytes for each of its positions.
    pub async fn batch_bytes(&self, batch_size: u32) -> anyhow::Result<f64> {
        let client = self.clients.first().context("there is no connection")?;
        let mut batches = client
            .clone()
            .sample(request(batch_size, 1, 0))
            .await?
            .into_inner();
        let batch = batches.message().await?.context("there is no batch")?;
        Ok(batch.encoded_len() as f64 / f64::from(batch.positions.max(1)))
    }

    /// Draws batches for `seconds`; returns the number of positions received.
    pub async fn sample(&self, batch_size: u32, seconds: f64) -> anyhow::Result<u64> {
        let is_over = Arc::new(AtomicBool::new(false));
        let streams = (0..).zip(&self.clients).map(|(seed, client)| {
            let (mut client, is_over) = (client.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut batches = client
                    .sample(request(batch_size, u32::MAX, seed))
                    .await?
                    .into_inner();
                let mut positions = 0;
                while let Some(batch) = batches.message().await? {
                    ensure!(
                        batch.plies.len() == batch_size as usize,
                        "a batch has too few positions"
                    );
                    positions += u64::from(batch.positions);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                Ok(positions)
            })
        });
        let streams: Vec<_> = streams.collect();
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        is_over.store(true, Ordering::Relaxed);
        let mut positions = 0;
        for stream in streams {
            positions += stream.await??;
        }
        Ok(positions)
    }
}

fn request(batch_size: u32, batches: u32, seed: u64) -> SampleRequest {
    SampleRequest {
        batch_size,
        batches,
        seed,
        purpose: Purpose::Training.into(),
        ..SampleRequest::default()
    }
}
