//! The token that a client sends with each call. Its file is read again from time to time, so that tokens can be renewed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::Interceptor,
};

use crate::{
    security::{Named, SecurityError, tokens::bearer},
    telemetry,
};
use config::SecurityConfig;

/// How old a token may be before its file is read again.
const AGE: Duration = Duration::from_secs(30);

/// Adds a token, where there is one, and the trace a call belongs to, where there is one.
#[derive(Clone, Debug)]
pub struct Credentials {
    token: Option<Arc<Token>>,
}

#[derive(Debug)]
struct Token {
    file: Named,
    read: Mutex<(Instant, MetadataValue<Ascii>)>,
}

impl Credentials {
    /// The token that `security.token` names; none where that is empty.
    ///
    /// # Errors
    /// [`SecurityError`] where the file cannot be read.
    pub fn new(config: &SecurityConfig) -> Result<Self, SecurityError> {
        if config.token.as_os_str().is_empty() {
            return Ok(Self { token: None });
        }
        let file = Named::new("token", &config.token);
        let read = Mutex::new((Instant::now(), bearer(&file)?));
        Ok(Self {
            token: Some(Arc::new(Token { file, read })),
        })
    }
}

impl Token {
    fn value(&self) -> MetadataValue<Ascii> {
        let mut read = self.read.lock();
        if read.0.elapsed() >= AGE {
            // A few bytes of a local file: not worth a thread of its own.
            match bearer(&self.file) {
                Ok(value) => read.1 = value,
                Err(error) => tracing::error!(%error, "cannot renew; the token read before is sent"),
            }
            read.0 = Instant::now();
        }
        read.1.clone()
    }
}

impl Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.value());
        }
        telemetry::inject(request.metadata_mut());
        Ok(request)
    }
}
