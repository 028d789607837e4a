//! The token that a client sends with each call. The token's file is read again at intervals, so that tokens can be renewed.

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

/// Age of a token at which its file is read again.
const AGE: Duration = Duration::from_secs(30);

/// Interceptor that adds the token and the current trace, if there are any, to each call.
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
    /// Reads the token from the file `security.token`; no token if the key is empty.
    ///
    /// # Errors
    /// [`SecurityError`] if the file cannot be read.
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
            // A few bytes of a local file do not need a blocking thread.
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
