//! Object store that wraps a real one, and fails or stops where a test sets it to.
#![allow(dead_code, missing_docs)]

pub mod scenarios;
#[cfg(feature = "s3")]
pub mod server;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use checkpoints::{Draft, MODEL, OPTIMIZER, Repository, WEIGHTS};
use futures::stream::BoxStream;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

#[derive(Debug)]
pub struct Faulty<S> {
    pub inner: S,
    /// Number of puts that succeed. The next one never returns, as if the process had been killed.
    pub puts_left: AtomicUsize,
    /// True if every read fails.
    pub is_down: AtomicBool,
    pub reads: AtomicUsize,
    /// Number of listings of all objects.
    pub listings: AtomicUsize,
    /// True if conditional puts ignore their condition.
    pub ignores_conditions: AtomicBool,
    /// True if conditional puts are refused.
    pub has_no_conditions: AtomicBool,
}

impl<S> Faulty<S> {
    pub fn new(inner: S) -> Arc<Self> {
        Arc::new(Self {
            inner,
            puts_left: AtomicUsize::new(usize::MAX),
            is_down: AtomicBool::new(false),
            reads: AtomicUsize::new(0),
            listings: AtomicUsize::new(0),
            ignores_conditions: AtomicBool::new(false),
            has_no_conditions: AtomicBool::new(false),
        })
    }

    fn read(&self) -> Result<()> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) {
            return Err(Error::Generic {
                store: "Faulty",
                source: "down".into(),
            });
        }
        Ok(())
    }
}

impl<S> fmt::Display for Faulty<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Faulty")
    }
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for Faulty<S> {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        if self.has_no_conditions.load(Ordering::SeqCst) && options.mode != PutMode::Overwrite {
            return Err(Error::NotImplemented {
                operation: "a conditional put".into(),
                implementer: self.to_string(),
            });
        }
        if self.ignores_conditions.load(Ordering::SeqCst) {
            options.mode = PutMode::Overwrite;
        }
        if self.puts_left.load(Ordering::SeqCst) == 0 {
            futures::future::pending::<()>().await;
        }
        if self.puts_left.load(Ordering::SeqCst) != usize::MAX {
            self.puts_left.fetch_sub(1, Ordering::SeqCst);
        }
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.read()?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.read()?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Returns a repository in a folder of its own.
pub fn folder() -> (tempfile::TempDir, Repository) {
    let home = tempfile::tempdir().unwrap();
    let repository = Repository::open(home.path().join("store").to_str().unwrap()).unwrap();
    (home, repository)
}

pub fn draft(step: u64) -> Draft {
    Draft {
        game: "paco-sako".into(),
        layout: serde_json::json!({"entries": 38}),
        actions: 132,
        network: serde_json::json!({"blocks": 4, "filters": 64}),
        step,
        positions_seen: step * 256,
        games_seen: step / 10,
        trained_ms: step * 1_000,
        parent: None,
        learner_state: serde_json::json!({"batch": step}),
    }
}

/// Returns the files of a checkpoint, which differ for different `salt`.
pub fn files(salt: u8) -> Vec<(&'static str, Bytes)> {
    vec![
        (MODEL, Bytes::from(vec![salt; 1000])),
        (WEIGHTS, Bytes::from(vec![salt.wrapping_add(1); 2000])),
        (OPTIMIZER, Bytes::from(vec![salt.wrapping_add(2); 3000])),
    ]
}
