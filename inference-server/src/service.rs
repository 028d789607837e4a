//! [`EvaluatorService`]: the gRPC service `minuet.v1.Evaluator`.

use std::{pin::Pin, sync::Arc};

use network::threads;
use proto::v1::{
    DescribeModelRequest, EvaluateReply, EvaluateRequest, ModelDescription, ThreadSpeed,
    evaluator_server::Evaluator,
};
use service::{calls::replies::Replies, listener::Peer};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::intake::{
    Intake,
    refusal::Refusal,
    request::{EvaluationRequest, deadline_of},
    stream,
};

/// The gRPC service `minuet.v1.Evaluator`.
#[derive(Clone, Debug)]
pub struct EvaluatorService {
    intake: Arc<Intake>,
}

impl EvaluatorService {
    /// Creates a service that sends its requests to `intake`.
    pub fn new(intake: Arc<Intake>) -> Self {
        Self { intake }
    }
}

#[tonic::async_trait]
impl Evaluator for EvaluatorService {
    type EvaluateStreamStream = Pin<Box<dyn Stream<Item = Result<EvaluateReply, Status>> + Send>>;

    async fn evaluate_stream(
        &self,
        request: Request<Streaming<EvaluateRequest>>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        if self.intake.shutdown.is_cancelled() {
            return Err(Refusal::Stopping.into());
        }
        let caller = self.intake.caller(Peer::of(&request));
        let replies = stream::open(self.intake.clone(), caller, request.into_inner());
        Ok(Response::new(Box::pin(replies)))
    }

    async fn evaluate(&self, request: Request<EvaluateRequest>) -> Result<Response<EvaluateReply>, Status> {
        let caller = self.intake.caller(Peer::of(&request));
        let (deadline, replies) = (deadline_of(&request), Replies::of(&request));
        let mut request = request.into_inner();
        let (id, model) = (request.id, std::mem::take(&mut request.model));
        let mut asked = EvaluationRequest::from(request);
        asked.end_by(deadline);
        // The answer has no logits, so the number of actions does not matter.
        if let Some(charge) = self.intake.charge(&caller, asked.bytes(0)).await {
            replies.keep(charge);
        }
        let answered = self.intake.evaluate(caller, &model, asked).await;
        let evaluation = answered.inspect_err(|refusal| self.intake.metrics.refused(refusal.code()))?;
        Ok(Response::new(evaluation.into_reply(id)))
    }

    async fn describe_model(
        &self,
        request: Request<DescribeModelRequest>,
    ) -> Result<Response<ModelDescription>, Status> {
        let named = self.intake.models.find(&request.into_inner().model)?;
        let info = &named.model.info;
        let layout_json =
            serde_json::to_string(&info.layout).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(ModelDescription {
            version: info.version.clone(),
            game: info.layout.game.clone(),
            layout_json,
            row_length: info.layout.row_len().unwrap_or_default() as u32,
            actions: info.layout.actions,
            step: info.step,
            provider: info.provider.to_owned(),
            digest: info.digest.clone(),
            threads: info.threads as u32,
            thread_speeds: info
                .speeds
                .iter()
                .map(|speed| ThreadSpeed {
                    threads: speed.threads as u32,
                    positions_per_second: speed.positions_per_second,
                    positions_per_cpu_second: speed.positions_per_cpu_second,
                })
                .collect(),
            measured_while_busy: !threads::was_quiet(&info.speeds),
            newest_refused: named.slot.and_then(|slot| slot.failure()).unwrap_or_default(),
        }))
    }
}
