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
    log_throttle::LogThrottle,
    security::{Named, SecurityError, tokens::bearer},
    telemetry,
};
use config::SecurityConfig;

/// Interceptor that adds the token and the current trace, if there are any, to each call. The default has no token.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    token: Option<Arc<Token>>,
}

#[derive(Debug)]
struct Token {
    file: Named,
    read: Mutex<(Instant, MetadataValue<Ascii>)>,
    /// Age at which the file is read again.
    renewal: Duration,
    unreadable: LogThrottle,
}

impl Credentials {
    /// Reads the token from the file `security.token`, and again when `renewal` has passed; no token if the key is empty.
    ///
    /// # Errors
    /// [`SecurityError`] if the file cannot be read.
    pub fn new(config: &SecurityConfig, renewal: Duration) -> Result<Self, SecurityError> {
        if config.token.as_os_str().is_empty() {
            return Ok(Self { token: None });
        }
        let file = Named::new("token", &config.token);
        let read = Mutex::new((Instant::now(), bearer(&file)?));
        Ok(Self {
            token: Some(Arc::new(Token {
                file,
                read,
                renewal,
                unreadable: LogThrottle::default(),
            })),
        })
    }
}

impl Token {
    fn value(&self) -> MetadataValue<Ascii> {
        let mut read = self.read.lock();
        if read.0.elapsed() >= self.renewal {
            // A few bytes of a local file do not need a blocking thread.
            match bearer(&self.file) {
                Ok(value) => {
                    self.unreadable.reset();
                    read.1 = value;
                }
                Err(error) if self.unreadable.allows() => {
                    tracing::error!(%error, "cannot renew the token; the previous one stays in use");
                }
                Err(_) => {}
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
